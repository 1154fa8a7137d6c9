"""A program in an editor: what is wrong with it, and what the word under the cursor is. Places are offsets into its text.

A program that is being typed is wrong most of the time. What is known of relations and types is then that of the last time it was
right; words and statements are always those that are there now.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from whence.lang import Program, ProgramError, load, tree
from whence.lang.aggregates import AGGREGATES
from whence.lang.diagnostics import Diagnostic
from whence.lang.format import Token, Written, format_program
from whence.lang.program import Atom, Rule, Var
from whence.lang.signatures import SIGNATURES
from whence.lang.source import Source

_TYPES = ("number", "unsigned", "float", "symbol")
_DIRECTIVES = (
    "decl",
    "type",
    "input",
    "output",
    "printsize",
    "comp",
    "init",
    "override",
    "functor",
    "window",
    "lifetime",
)
_NAMING = tree.Directive | tree.Window | tree.Lifetime | tree.Override


@dataclass(frozen=True)
class Problem:
    start: int
    end: int
    severity: str
    code: str
    text: str


@dataclass(frozen=True)
class Word:
    """A name and what it is: a relation, variable, type, functor or rule. `statement` is the one it stands in."""

    token: Token
    role: str
    statement: tree.Statement | None

    @property
    def name(self) -> str:
        return self.token.text


@dataclass(frozen=True)
class Completion:
    label: str
    role: str
    detail: str = ""


class Document:
    """`before` is the document as it was, for what is only known of programs that are right."""

    def __init__(self, text: str, path: Path, before: Document | None = None) -> None:
        self.text, self.path = text, path
        self.program: Program | None = None if before is None else before.program
        self._diagnostics: Sequence[Diagnostic] = ()
        self._source: Source | None = None
        dialect = "sql" if path.suffix == ".sql" else "datalog"
        self.is_rules = dialect == "datalog"
        try:
            program = load(text, name=path.name, dialect=dialect, folder=path.parent)
        except ProgramError as error:
            self._diagnostics, self._source = error.diagnostics, error.source
        else:
            self.program = program
            self._diagnostics, self._source = program.warnings, program.source

    @cached_property
    def written(self) -> Written:
        return Written.of(self.text)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(at + 1 for at, char in enumerate(self.text) if char == "\n")]

    # -- what is wrong

    def problems(self) -> Iterator[Problem]:
        for each in self._diagnostics:
            assert self._source is not None
            place = self._source.place(each.span)
            hint = f"\nhint: {each.advice}" if each.advice else ""
            is_here = place.file.name == self.path.name
            start = self._offset(place.line, place.column) if is_here else 0
            end = self._offset(place.end_line, place.end_column) if is_here else 0
            text = f"{each.text}{hint}" if is_here else f"{place.file.name}:{place.line}: {each.text}{hint}"
            yield Problem(start, max(end, start), each.severity, each.code, text)

    def _offset(self, line: int, column: int) -> int:
        starts = self._line_starts
        return min(starts[min(line, len(starts)) - 1] + column - 1, len(self.text))

    # -- words

    def word_at(self, offset: int) -> Word | None:
        found = self.written.tokens
        at = bisect_right([token.start for token in found], offset) - 1
        for candidate in (at, at - 1):  # the cursor may stand right behind a word
            if candidate >= 0 and found[candidate].kind == "name" and offset <= found[candidate].end:
                return self._word(candidate)
        return None

    def words(self) -> Iterator[Word]:
        for at, token in enumerate(self.written.tokens):
            if token.kind == "name":
                yield self._word(at)

    def _word(self, at: int) -> Word:
        found = self.written.tokens
        token = found[at]
        statement = self._statement_at(token.start)
        before = found[at - 1].text if at else ""
        after = found[at + 1].text if at + 1 < len(found) else ""
        return Word(token, _role(token, before, after, statement), statement)

    def _statement_at(self, offset: int) -> tree.Statement | None:
        inside: tree.Statement | None = None
        statements: Sequence[tree.Statement] = self.written.module.statements
        while True:
            found = next((each for each in statements if each.span.start <= offset < each.span.end), None)
            if found is None:
                return inside
            if not isinstance(found, tree.Component):
                return found
            inside, statements = found, found.statements

    def _statements(self) -> Iterator[tree.Statement]:
        pending = list(self.written.module.statements)
        while pending:
            each = pending.pop(0)
            yield each
            if isinstance(each, tree.Component):
                pending[:0] = each.statements

    # -- answers

    def hover(self, offset: int) -> str | None:
        word = self.word_at(offset)
        if word is None:
            return None
        if word.role == "relation":
            return self._about_relation(word.name)
        if word.role == "variable":
            return self._about_variable(word)
        if word.role == "functor" and word.name in SIGNATURES:
            return f"functor `{word.name}`"
        return f"{word.role} `{word.name}`"

    def _about_relation(self, name: str) -> str | None:
        relation = None if self.program is None else self.program.relations.get(name)
        if relation is None or self.program is None:
            return f"relation `{name}`"
        rules = sum(not rule.is_fact for rule in self.program.rules_for(name))
        kind = f"view, {rules} rule{'s' * (rules != 1)}" if rules else "base relation"
        comment = self._comment_above(name)
        return f"```\n{relation.signature}\n```\n{kind}" + (f"\n\n{comment}" if comment else "")

    def _comment_above(self, name: str) -> str:
        place = self.definition_of(name)
        if place is None:
            return ""
        lines = self.text[: place[0]].split("\n")[:-1]
        found: list[str] = []
        while lines and (line := lines.pop().strip()).startswith("//"):
            found.insert(0, line.lstrip("/ "))
        return "\n".join(found)

    def _about_variable(self, word: Word) -> str:
        for rule in self._rules_of(word.statement):
            for atom in _atoms(rule.body, rule.head):
                relation = None if self.program is None else self.program.relations.get(atom.relation)
                for at, arg in enumerate(atom.args):
                    if isinstance(arg, Var) and arg.name == word.name and relation is not None:
                        field = relation.fields[at]
                        return f"```\n{word.name}: {field.type}\n```\ncolumn {field.name} of {relation.name}"
            for part in tree.walk(rule):
                if isinstance(part, Var) and part.name == word.name:
                    return f"```\n{word.name}: {part.kind}\n```"
        return f"variable `{word.name}`"

    def _rules_of(self, statement: tree.Statement | None) -> Iterator[Rule]:
        """The rules that were made of a statement, if the program has been right with it."""
        if self.program is None or statement is None:
            return
        at = self._line_and_column(statement.span.start)
        for rule in self.program.rules:
            place = self.program.source.place(rule.span)
            if place.file.name == self.path.name and (place.line, place.column) == at:
                yield rule

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def definition(self, offset: int) -> tuple[Path, int, int] | tuple[Path, tuple[int, int, int, int]] | None:
        """Where a name comes from: offsets in this file, or lines and columns of another."""
        word = self.word_at(offset)
        if word is None:
            return None
        if word.role == "variable":
            first = self.occurrences(offset)[0]
            return self.path, *first
        found = self.definition_of(word.name, word.role)
        if found is not None:
            return self.path, *found
        relation = None if self.program is None else self.program.relations.get(word.name)
        if relation is None or self.program is None:
            return None
        place = self.program.source.place(relation.span)
        other = self.path.parent / place.file.name
        return (other, (place.line, place.column, place.end_line, place.end_column)) if other.is_file() else None

    def definition_of(self, name: str, role: str = "relation") -> tuple[int, int] | None:
        declared = (tree.TypeDecl,) if role == "type" else (tree.RelationDecl, tree.FunctorDecl, tree.Component)
        heads: list[tuple[int, int]] = []
        for word in self.words():
            if word.name == name and word.role == role:
                place = (word.token.start, word.token.end)
                if isinstance(word.statement, declared):
                    return place
                heads.append(place)
        return heads[0] if heads else None

    def occurrences(self, offset: int) -> list[tuple[int, int]]:
        """Where the name under the cursor stands: in its rule if it is a variable, everywhere if not."""
        word = self.word_at(offset)
        if word is None:
            return []
        same = (each for each in self.words() if each.name == word.name and each.role == word.role)
        if word.role == "variable":
            same = (each for each in same if each.statement is word.statement)
        return [(each.token.start, each.token.end) for each in same]

    def completions(self, offset: int) -> Iterator[Completion]:
        line = self.text[:offset].rpartition("\n")[2]
        if re.match(r"\s*\.\w*$", line):
            yield from (Completion(each, "keyword") for each in _DIRECTIVES)
            return
        types = [] if self.program is None else list(self.program.types.kinds)
        if re.search(r"\.(?:decl|type|functor|comp)\b.*[:|<=]\s*\w*$", line):
            yield from (Completion(each, "type") for each in dict.fromkeys([*_TYPES, *types]))
            return
        known = {} if self.program is None else self.program.relations
        names = dict.fromkeys([*known, *(word.name for word in self.words() if word.role == "relation")])
        for name in names:
            if "!" not in name:
                yield Completion(name, "relation", known[name].signature if name in known else "")
        if re.match(r"\s*\.", line):
            return
        statement = self._statement_at(max(0, offset - 1))
        start = self.text.rfind("\n\n", 0, offset) if statement is None else statement.span.start
        inside = [word for word in self.words() if start <= word.token.start < offset and word.role == "variable"]
        yield from (Completion(each, "variable") for each in dict.fromkeys(word.name for word in inside))
        yield from (Completion(each, "functor") for each in (*SIGNATURES, *AGGREGATES) if each[0].isalpha())

    def formatted(self) -> str:
        return format_program(self.text) if self.is_rules else self.text


def _atoms(body: Sequence[object], head: Atom) -> Iterator[Atom]:
    for part in (*body, head):
        yield from (each for each in tree.walk(part) if isinstance(each, Atom))


def _role(token: Token, before: str, after: str, statement: tree.Statement | None) -> str:
    match statement:
        case tree.RelationDecl():
            return "type" if before in (":", "<") else "relation" if token.text in statement.names else "column"
        case tree.TypeDecl():
            return "column" if after == ":" else "type"
        case tree.FunctorDecl():
            return "functor" if token.text == statement.name else "type"
        case tree.Component() | tree.Init():
            return "component"
        case _ if isinstance(statement, _NAMING):
            return "parameter" if "=" in (before, after) else "relation"
        case tree.Rule() | tree.Subsumption() | None:
            if after == ":" and statement is not None and token.start == statement.span.start:
                return "rule"
            if after != "(":
                return "variable"
            return "functor" if before == "@" or token.text in SIGNATURES or token.text in AGGREGATES else "relation"
    return "word"
