"""The Language Server Protocol over standard input and output, by pygls."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

import whence
from whence.lang.format import tokens
from whence.lsp.document import Document, Problem

_SEVERITIES = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}
_KINDS = {
    "relation": lsp.CompletionItemKind.Class,
    "variable": lsp.CompletionItemKind.Variable,
    "functor": lsp.CompletionItemKind.Function,
    "type": lsp.CompletionItemKind.TypeParameter,
    "keyword": lsp.CompletionItemKind.Keyword,
}


class Server(LanguageServer):
    """Programs that an editor has open, each as it is now."""

    def __init__(self) -> None:
        super().__init__("whence", whence.__version__)
        self.documents: dict[str, Document] = {}

    def refresh(self, uri: str) -> None:
        """Reads a program again, and says what is wrong with it."""
        held = self.workspace.get_text_document(uri)
        path = Path(to_fs_path(uri) or "program.dl")
        document = self.documents[uri] = Document(held.source, path, self.documents.get(uri))
        found = [_diagnostic(held, each) for each in document.problems()]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, held.version))

    def at(self, uri: str, position: lsp.Position) -> tuple[Document, TextDocument, int]:
        held = self.workspace.get_text_document(uri)
        if uri not in self.documents:
            self.refresh(uri)
        return self.documents[uri], held, held.offset_at_position(position)


def _range(held: TextDocument, start: int, end: int) -> lsp.Range:
    return lsp.Range(held.client_position_at_offset(start), held.client_position_at_offset(end))


def _diagnostic(held: TextDocument, problem: Problem) -> lsp.Diagnostic:
    place = _range(held, problem.start, problem.end)
    return lsp.Diagnostic(place, problem.text, _SEVERITIES[problem.severity], problem.code, source="whence")


def made_server() -> Server:
    server = Server()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.refresh(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.refresh(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.documents.pop(params.text_document.uri, None)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document, _, offset = server.at(params.text_document.uri, params.position)
        text = document.hover(offset)
        return None if text is None else lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        document, held, offset = server.at(params.text_document.uri, params.position)
        found = document.definition(offset)
        if found is None:
            return None
        if len(found) == 3:
            return lsp.Location(params.text_document.uri, _range(held, found[1], found[2]))
        path, (line, column, end_line, end_column) = found
        place = lsp.Range(lsp.Position(line - 1, column - 1), lsp.Position(end_line - 1, end_column - 1))
        return lsp.Location(from_fs_path(str(path)) or "", place)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        document, held, offset = server.at(params.text_document.uri, params.position)
        uri = params.text_document.uri
        return [lsp.Location(uri, _range(held, *each)) for each in document.occurrences(offset)]

    @server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        document, held, offset = server.at(params.text_document.uri, params.position)
        listed = list(tokens(params.new_name))
        if len(listed) != 1 or listed[0].kind != "name":
            raise ValueError(f"{params.new_name} is not a name")
        edits = [lsp.TextEdit(_range(held, *each), params.new_name) for each in document.occurrences(offset)]
        return lsp.WorkspaceEdit({params.text_document.uri: edits}) if edits else None

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", ":"]))
    def completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document, _, offset = server.at(params.text_document.uri, params.position)
        return [
            lsp.CompletionItem(each.label, kind=_KINDS[each.role], detail=each.detail or None)
            for each in document.completions(offset)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        document, held, _ = server.at(params.text_document.uri, lsp.Position(0, 0))
        formatted = document.formatted()
        if formatted == document.text:
            return []
        return [lsp.TextEdit(_range(held, 0, len(document.text)), formatted)]

    return server


def serve() -> None:
    made_server().start_io()
