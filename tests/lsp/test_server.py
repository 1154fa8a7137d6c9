"""A real client, over the standard input and output of `whence lsp`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

PROGRAM = """\
// Which places are linked.
.decl link(src:symbol, dst:symbol)
.input link
.decl reach(src:symbol, dst:symbol)
reach(x, y) :- link(x, y).
reach(x,z):-reach(x,y),link(y,z),z!="nowhere".
.output reach
"""


class Editor:
    """What an editor does with one file."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client, self.uri, self.version = client, uri, 1
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

    async def open(self, text: str) -> list[lsp.Diagnostic]:
        item = lsp.TextDocumentItem(self.uri, "whence", self.version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return list((await asyncio.wait_for(self.published.get(), 60)).diagnostics)

    async def change(self, text: str) -> list[lsp.Diagnostic]:
        self.version += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.version, self.uri),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return list((await asyncio.wait_for(self.published.get(), 60)).diagnostics)

    @property
    def document(self) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri)


def edit(path: Path, script: Callable[[Editor], Awaitable[None]]) -> None:
    async def run() -> None:
        client = LanguageClient("test", "1")
        editor = Editor(client, path.as_uri())

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            editor.published.put_nowait(params)

        await client.start_io(sys.executable, "-m", "whence", "lsp")
        try:
            await client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities()))
            client.initialized(lsp.InitializedParams())
            await script(editor)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    asyncio.run(asyncio.wait_for(run(), 120))


def position(text: str, before: str, behind: int = 0) -> lsp.Position:
    """Where a piece of text begins, and so many characters further."""
    at = text.index(before) + behind
    line = text.count("\n", 0, at)
    return lsp.Position(line, at - text.rfind("\n", 0, at) - 1)


def text_at(text: str, place: lsp.Range) -> str:
    lines = text.split("\n")
    assert place.start.line == place.end.line
    return lines[place.start.line][place.start.character : place.end.character]


def applied(text: str, edits: list[lsp.TextEdit]) -> str:
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:at]) for at in range(len(lines) + 1)]

    def offset(place: lsp.Position) -> int:
        return starts[place.line] + place.character

    for each in sorted(edits, key=lambda each: -offset(each.range.start)):
        text = text[: offset(each.range.start)] + each.new_text + text[offset(each.range.end) :]
    return text


def test_an_editor_is_answered(tmp_path: Path) -> None:
    async def script(editor: Editor) -> None:
        client, document = editor.client, editor.document
        assert await editor.open(PROGRAM) == []

        wrong = PROGRAM.replace("link(y,z)", "lnik(y,z)")
        (problem,) = await editor.change(wrong)
        assert problem.code == "W0201"
        assert text_at(wrong, problem.range) == "lnik"
        assert "did you mean link?" in problem.message

        # Types are still known from when it was right.
        about = await client.text_document_hover_async(lsp.HoverParams(document, position(wrong, "reach(x,z)")))
        assert "reach(src:symbol, dst:symbol)" in about.contents.value
        assert "view, 2 rules" in about.contents.value

        assert await editor.change(PROGRAM) == []
        about = await client.text_document_hover_async(lsp.HoverParams(document, position(PROGRAM, "y,z)")))
        assert "y: symbol" in about.contents.value
        about = await client.text_document_hover_async(lsp.HoverParams(document, position(PROGRAM, "link(x, y)", 2)))
        assert "Which places are linked." in about.contents.value

        place = await client.text_document_definition_async(
            lsp.DefinitionParams(document, position(PROGRAM, "link(y,z)"))
        )
        assert place.range.start == position(PROGRAM, "link(src")

        edit = await client.text_document_rename_async(
            lsp.RenameParams(document, position(PROGRAM, "link(x, y)"), "edge")
        )
        renamed = applied(PROGRAM, edit.changes[editor.uri])
        assert renamed == PROGRAM.replace("link(", "edge(").replace("input link", "input edge")
        assert "linked" in renamed

        edit = await client.text_document_rename_async(lsp.RenameParams(document, position(PROGRAM, "x,z)"), "from"))
        assert "reach(from,z):-reach(from,y)," in applied(PROGRAM, edit.changes[editor.uri])
        assert "reach(x, y) :-" in applied(PROGRAM, edit.changes[editor.uri])
        with pytest.raises(Exception, match="is not a name"):
            await client.text_document_rename_async(lsp.RenameParams(document, position(PROGRAM, "x,z)"), "not a name"))

        typed = PROGRAM + "both(x) :- li"
        await editor.change(typed)
        listed = await client.text_document_completion_async(
            lsp.CompletionParams(document, position(typed, ":- li", 5))
        )
        found = {each.label: each.detail for each in listed}
        assert found["link"] == "link(src:symbol, dst:symbol)"
        assert "x" in found
        assert "count" in found
        await editor.change(".")
        listed = await client.text_document_completion_async(lsp.CompletionParams(document, lsp.Position(0, 1)))
        assert "decl" in {each.label for each in listed}

        await editor.change(PROGRAM)
        edits = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, lsp.FormattingOptions(4, insert_spaces=True))
        )
        assert 'reach(x, z) :- reach(x, y), link(y, z), z != "nowhere".\n' in applied(PROGRAM, edits)
        await editor.change(applied(PROGRAM, edits))
        again = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, lsp.FormattingOptions(4, insert_spaces=True))
        )
        assert not again

    edit(tmp_path / "program.dl", script)


def test_places_are_right_behind_characters_outside_of_the_first_plane(tmp_path: Path) -> None:
    text = 'p("😀", x) :- q(x).\n'

    async def script(editor: Editor) -> None:
        (problem,) = await editor.open(text)
        # Editors count in UTF-16: the smiling face takes two.
        assert (problem.range.start.character, problem.range.end.character) == (14, 15)

    edit(tmp_path / "program.dl", script)
