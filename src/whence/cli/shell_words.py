"""Completion and colours for `whence shell`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer

from whence.cli.shell_lines import Shell
from whence.lang.bags import named_relations
from whence.lookup import LiveTable
from whence.provenance.matching import split_values
from whence.provenance.show import show_value
from whence.query import is_select

_QUESTIONS = ("why", "how", "whynot", "whatif")
_LOOKED_AT = 2_000  # rows whose values are offered
_OFFERED = 30
_INSIDE = re.compile(r"([\w.?]+)\s*\(([^()]*)$")
_WORD = re.compile(r"[\w.?]*$")
_COLOURS = (
    ("ansigreen", re.compile(r'"(?:[^"\\]|\\.)*"?|\'[^\']*\'')),
    ("ansimagenta bold", re.compile(r"^\s*(?:why|how|whynot|whatif|\.\w+)\b|^\s*[+-]")),
    (
        "ansimagenta",
        re.compile(r"(?i)\b(?:select|with|recursive|from|where|group|by|order|join|on|and|or|not|union|as)\b"),
    ),
    ("ansicyan", re.compile(r"[\w.?]+(?=\s*\()")),
    ("ansiblue", re.compile(r"\b\d+(?:\.\d+)?\b")),
    ("ansiyellow", re.compile(r":-|!=|<=|>=|[!<>=]")),
)


class Words(Completer):
    """Commands and relations, values where an argument stands, and in a SELECT the names of columns."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        before = document.text_before_cursor
        program = self.shell.session.program
        inside = _INSIDE.search(before)
        if inside is not None and inside[1] in program.relations and not is_select(before):
            yield from self._values(inside[1], list(split_values(inside[2])))
            return
        named = named_relations(program)
        found = _WORD.search(before)
        word = "" if found is None else found[0]
        if is_select(before):
            columns = (each.name for name in named for each in program.relations[name].fields)
            offered = [*named, *dict.fromkeys(columns)]
        else:
            offered = [f"{name}(" for name in named]
            if before.strip() == word:
                offered += [*self.shell.commands, *(f"{each} " for each in _QUESTIONS)]
        for each in offered:
            if each.startswith(word):
                yield Completion(each, start_position=-len(word), display=each.strip(" ("))

    def _values(self, relation: str, written: list[str]) -> Iterator[Completion]:
        """The values that stand in the column which is being written, as far as some rows tell."""
        session = self.shell.session
        column, begun = len(written) - 1, written[-1]
        if column >= session.program.relations[relation].arity or relation not in session.backend.tables:
            return
        field = session.program.relations[relation].fields[column]
        rows = LiveTable(session.backend, relation).some(_LOOKED_AT)
        texts = sorted({show_value(row[column]) for row in rows})
        for text in [each for each in texts if each.startswith((begun, f'"{begun}'))][:_OFFERED]:
            yield Completion(text, start_position=-len(begun), display_meta=f"{field.name}:{field.type}")


class Colours(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        return lambda number: list(painted(document.lines[number]))


def painted(line: str) -> Iterator[tuple[str, str]]:
    """The line in pieces with their styles.

    >>> list(painted("p(1)"))
    [('ansicyan', 'p'), ('', '('), ('ansiblue', '1'), ('', ')')]
    """
    at = 0
    while at < len(line):
        found = [(match.start(), match.end(), style) for style, how in _COLOURS if (match := how.search(line, at))]
        start, end, style = min(found, default=(len(line), len(line), ""), key=lambda each: each[0])
        if start > at:
            yield "", line[at:start]
        if end > start:
            yield style, line[start:end]
        at = max(end, start)
