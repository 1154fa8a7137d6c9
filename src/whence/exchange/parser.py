"""The text of a confederation to its statements.

Peers, keys and policies have a syntax of their own; the atoms and conditions inside are Whence's, read by its parser where they
stand, so that every mistake is shown in the line that was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from whence.exchange.diagnostics import UnexpectedStatement
from whence.lang import tree
from whence.lang.diagnostics import Diagnostic
from whence.lang.parser import parse
from whence.lang.source import File, Segment, Source
from whence.lang.tree import Span

# Room in front of the first statement for the beginning of a rule: see `_formulas`.
_MARGIN = 16
_TOKEN = re.compile(
    r"(?:\s|//[^\n]*|/\*.*?\*/)+"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![A-Za-z_]))"
    r"|(?P<word>[A-Za-z_?][\w?]*(?:\.[A-Za-z_?][\w?]*)*)"
    r"|(?P<mark><->|->|→|↔|.)",
    re.DOTALL,
)
VERBS = ("distrusts", "charges", "prefers", "accepts")
TYPES = ("number", "symbol", "float", "unsigned")


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PeerBlock:
    name: str
    relations: tuple[RelationText, ...]
    key: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class RelationText:
    name: str
    columns: tuple[tuple[str, str, Span], ...]
    key: tuple[tuple[str, Span], ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class MappingText:
    name: str
    body: tree.Formula
    heads: tuple[tree.Atom, ...]
    exists: tuple[str, ...]
    both_ways: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DistrustText:
    """`PEER distrusts [base] SUBJECT [by M] [from P] [through M] [if CONDITION]`; the subject is an atom or a name."""

    name: str | None
    peer: str
    atom: tree.Atom | None
    subject: str | None
    only_base: bool
    by: str | None
    source: str | None
    through: str | None
    condition: tree.Formula | None
    span: Span


@dataclass(frozen=True, slots=True)
class ChargeText:
    """`PEER charges SUBJECT COST [if CONDITION]`; the subject is a peer, a mapping, or an atom."""

    peer: str
    subject: str | None
    atom: tree.Atom | None
    cost: float
    condition: tree.Formula | None
    span: Span


@dataclass(frozen=True, slots=True)
class PreferText:
    """`PEER prefers SUBJECT over SUBJECT …`"""

    peer: str
    subjects: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AcceptText:
    peer: str
    source: str
    span: Span


Statement = PeerBlock | MappingText | DistrustText | ChargeText | PreferText | AcceptText | tree.FunctorDecl


@dataclass
class Parsed:
    source: Source
    statements: list[Statement] = field(default_factory=list)
    errors: list[Diagnostic] = field(default_factory=list)


def join_files(files: Iterable[tuple[str, str]]) -> Source:
    """One source of several files, each with its own name and lines."""
    text, segments = " " * _MARGIN, []
    for name, content in files:
        segments.append(Segment(len(text), File(name, content), 0))
        text += f"{content}\n"
    return Source(text, tuple(segments))


def read_files(path: Path) -> list[tuple[str, str]]:
    """The file, or all files `*.peers` of a folder in the order of their names."""
    paths = sorted(path.glob("*.peers")) if path.is_dir() else [path]
    if not paths:
        raise FileNotFoundError(f"{path} holds no files *.peers")
    return [(str(each), each.read_text(encoding="utf-8-sig")) for each in paths]


def parse_confederation(files: Iterable[tuple[str, str]]) -> Parsed:
    parsed = Parsed(join_files(files))
    _Parser(parsed).run()
    return parsed


class _Wrong(Exception):
    def __init__(self, token: Token, expected: str) -> None:
        self.diagnostic = UnexpectedStatement(Span(token.start, token.end), found=_named(token), expected=expected)


def _named(token: Token) -> str:
    return "end of the text" if token.kind == "end" else f"'{token.text}'"


class _Parser:
    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.text = parsed.source.text
        self.tokens = [
            Token(match.lastgroup, match[0], match.start(), match.end())
            for match in _TOKEN.finditer(self.text)
            if match.lastgroup is not None
        ]
        size = len(self.text)
        self.tokens.append(Token("end", "", max(0, len(self.text.rstrip()) - 1), size))
        self.at = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def run(self) -> None:
        while self.token.kind != "end":
            begin = self.at
            try:
                self.parsed.statements.append(self._statement())
            except _Wrong as wrong:
                self.parsed.errors.append(wrong.diagnostic)
                self._recover(begin)
            except _Broken as broken:
                self.parsed.errors += broken.errors

    def _recover(self, begin: int) -> None:
        """Goes on behind the statement: behind its full stop, or behind the brace of a block."""
        in_block = self.tokens[begin].text == "peer"
        if self.at > begin and self.tokens[self.at - 1].text == "." and not in_block:
            return
        while self.token.kind != "end" and self.token.text != ("}" if in_block else "."):
            self.at += 1
        if self.token.kind != "end":
            self.at += 1

    # -- small steps

    def _next(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.at += 1
        return token

    def _expect(self, text: str, expected: str | None = None) -> Token:
        if self.token.text != text:
            raise _Wrong(self.token, expected or f"'{text}'")
        return self._next()

    def _word(self, expected: str) -> Token:
        if self.token.kind != "word":
            raise _Wrong(self.token, expected)
        return self._next()

    def _takes(self, text: str) -> bool:
        if self.token.text != text:
            return False
        self._next()
        return True

    def _until(self, *ends: str) -> tuple[int, int]:
        """The stretch of text before one of the marks or words, which is not taken."""
        start = end = self.token.start
        while self.token.kind != "end" and self.token.text not in ends:
            end = self._next().end
        if self.token.kind == "end":
            raise _Wrong(self.token, " or ".join(f"'{each}'" for each in ends))
        return start, end

    # -- statements

    def _statement(self) -> Statement:
        if self.token.text == "peer":
            return self._peer()
        if self.token.text == "function":
            return self._function()
        first = self._word("a peer, a mapping, a function or a policy")
        if self._takes(":"):
            if self.tokens[self.at + 1].text in VERBS:
                return self._policy(self._next(), first.text, first.start)
            return self._mapping(first)
        return self._policy(first, None, first.start)

    def _peer(self) -> PeerBlock:
        start = self._next().start
        name = self._word("the name of the peer").text
        key = None
        if self._takes("signs"):
            self._expect("with")
            if self.token.kind != "string":
                raise _Wrong(self.token, "the peer's public key, as a string")
            key = self._next().text[1:-1]
        self._expect("{", "'{', and the relations of the peer")
        relations = []
        while not self._takes("}"):
            relations.append(self._relation())
        return PeerBlock(name, tuple(relations), key, Span(start, self.tokens[self.at - 1].end))

    def _relation(self) -> RelationText:
        name = self._word("a relation, such as R(id: number, name: symbol) key (id).")
        self._expect("(")
        columns = []
        while True:
            column = self._word("a column, such as id: number")
            self._expect(":")
            type_ = self._word(f"a type: {', '.join(TYPES)}")
            if type_.text not in TYPES:
                raise _Wrong(type_, f"a type: {', '.join(TYPES)}")
            columns.append((column.text, type_.text, Span(column.start, type_.end)))
            if not self._takes(","):
                break
        self._expect(")", "',' or ')'")
        key = None
        if self._takes("key"):
            self._expect("(")
            names = [self._word("a column of the key")]
            while self._takes(","):
                names.append(self._word("a column of the key"))
            self._expect(")", "',' or ')'")
            key = tuple((each.text, Span(each.start, each.end)) for each in names)
        end = self._expect(".", "'.' at the end of the relation, or its key").end
        return RelationText(name.text, tuple(columns), key, Span(name.start, end))

    def _function(self) -> tree.FunctorDecl:
        start = self._next().start
        stretch = self._until(".")
        self._next()
        text = f"{' ' * start}.functor{self.text[start + len('function') : stretch[1]]}\n"
        found = _parsed(text)
        if len(found) != 1 or not isinstance(found[0], tree.FunctorDecl):
            raise _Wrong(self.tokens[self.at - 1], "function name(types): type.")
        return found[0]

    def _mapping(self, name: Token) -> MappingText:
        body = self._until("->", "→", "<->", "↔", ".", "}")
        arrow = self._next()
        if arrow.text not in ("->", "→", "<->", "↔"):
            raise _Wrong(arrow, "'->' between the two sides of the mapping")
        exists: list[str] = []
        if self._takes("exists"):
            exists.append(self._word("a variable").text)
            while self._takes(","):
                exists.append(self._word("a variable").text)
            self._expect(".", "'.' behind the variables of exists")
        heads = self._until(".")
        end = self._next().end
        span = Span(name.start, end)
        both_ways = arrow.text in ("<->", "↔")
        return MappingText(name.text, self._formula(body), self._atoms(heads), tuple(exists), both_ways, span)

    def _policy(self, peer: Token, name: str | None, start: int) -> Statement:
        verb = self._word("distrusts, charges, prefers or accepts")
        if verb.text == "charges":
            return self._charge(peer, start)
        if verb.text == "prefers":
            subjects = [self._word("a peer or a mapping").text]
            while self._takes("over"):
                subjects.append(self._word("a peer or a mapping").text)
            return PreferText(peer.text, tuple(subjects), Span(start, self._expect(".", "'over' or '.'").end))
        if verb.text == "accepts":
            self._expect("deletions")
            self._expect("of")
            source = self._word("a peer").text
            return AcceptText(peer.text, source, Span(start, self._expect(".").end))
        if verb.text != "distrusts":
            raise _Wrong(verb, "distrusts, charges, prefers or accepts; or ':' behind the name of a mapping")
        only_base = self._takes("base")
        atom_text: tuple[int, int] | None = None
        subject: str | None = None
        if self.token.text not in ("from", "through", "by", "if"):
            if self.tokens[self.at + 1].text == "(":
                atom_text = self._until("from", "through", "by", "if", ".")
            else:
                subject = self._word("what is distrusted: a peer, a mapping, or rows such as R(x, y)").text
        given: dict[str, str] = {}
        while self.token.text in ("from", "through", "by"):
            word = self._next().text
            given[word] = self._word("a name").text
        condition = self._until(".") if self._takes("if") else None
        span = Span(start, self._expect(".", "'from', 'through', 'by', 'if' or '.'").end)
        atoms = self._atoms(atom_text) if atom_text else (None,)
        if len(atoms) != 1:
            raise _Broken([UnexpectedStatement(span, found="several atoms", expected="one: write a policy for each")])
        return DistrustText(
            name,
            peer.text,
            atoms[0],
            subject,
            only_base,
            given.get("by"),
            given.get("from"),
            given.get("through"),
            self._formula(condition) if condition else None,
            span,
        )

    def _charge(self, peer: Token, start: int) -> ChargeText:
        subject: str | None = None
        atoms: tuple[tree.Atom | None, ...] = (None,)
        if self.tokens[self.at + 1].text == "(":
            begin = self.token.start
            while self.token.kind != "end" and self._next().text != ")":
                pass
            atoms = self._atoms((begin, self.tokens[self.at - 1].end))
        else:
            subject = self._word("a peer, a mapping, or rows such as R(x, y)").text
        if self.token.kind != "number":
            raise _Wrong(self.token, "what it costs, a number")
        cost = float(self._next().text)
        condition = self._until(".") if self._takes("if") else None
        span = Span(start, self._expect(".", "'if' or '.'").end)
        formula = self._formula(condition) if condition else None
        return ChargeText(peer.text, subject, atoms[0], cost, formula, span)

    # -- what Whence's own parser reads

    def _formula(self, stretch: tuple[int, int]) -> tree.Formula:
        start, end = stretch
        if start == end:
            raise _Broken([UnexpectedStatement(Span(start, start + 1), found="nothing here", expected="an atom")])
        found = _parsed(f"{' ' * (start - 6)}x() :-{self.text[start:end]}.")
        assert len(found) == 1
        assert isinstance(found[0], tree.Rule)
        assert found[0].body is not None
        return found[0].body

    def _atoms(self, stretch: tuple[int, int]) -> tuple[tree.Atom, ...]:
        start, end = stretch
        found = _parsed(f"{' ' * start}{self.text[start:end]}.")
        if len(found) != 1 or not isinstance(found[0], tree.Rule) or found[0].body is not None:
            raise _Broken([UnexpectedStatement(Span(start, end), found="this", expected="atoms such as R(x, y)")])
        return found[0].heads


class _Broken(Exception):
    """A statement of which a part is wrong; what follows it can be read."""

    def __init__(self, errors: list[Diagnostic]) -> None:
        self.errors = errors


def _parsed(text: str) -> tuple[tree.Statement, ...]:
    """The statements of a text that is blank but for one, whose places are those in the confederation's."""
    found = parse(Source(text, (Segment(0, File("", text), 0),)))
    if found.errors:
        raise _Broken(found.errors)
    return found.module.statements
