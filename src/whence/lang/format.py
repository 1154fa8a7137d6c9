"""Programs laid out the same way, whoever wrote them: spaces and line breaks change, and nothing else.

Statements are found by the parser, and their words stay as they are written, comments included. A statement that has a comment
inside, or that would mean something else, is left as it is; so are macros and what cannot be parsed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from whence.lang import tree
from whence.lang.parser import parse
from whence.lang.source import Source

WIDTH = 120
INDENT = "    "
_DIRECTIVES = (
    "decl type input output printsize limitsize comp init override pragma functor window lifetime event slow plan include once "
    "number_type symbol_type"
).split()
_TOKEN = re.compile(
    rf"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<macro>(?<![^\n])[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<directive>\.(?:{"|".join(_DIRECTIVES)})\b)
  | (?P<number>\d[\w]*(?:\.\d[\w]*)?(?:(?<=[eE])[+-]\d+)?)
  | (?P<name>[A-Za-z_?][\w?]*(?:(?:\.|-)(?=[A-Za-z_?])[A-Za-z_?][\w?]*)*)
  | (?P<sign><->|<-|->|:-|:=|<:|<=|>=|!=|==|.)
""",
    re.VERBOSE | re.DOTALL,
)
_SPACED = frozenset(":- := <: <= >= != == = < > + * / % ^ | ; <-> -> <-".split())
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_WORDS = frozenset("band bor bxor bnot bshl bshr bshru land lor lxor lnot".split())


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(text: str) -> Iterator[Token]:
    """The words of a text; blanks between them are left out."""
    at = 0
    while at < len(text):
        if text[at].isspace() and not (text[at] in " \t" and _TOKEN.match(text, at) and _starts_macro(text, at)):
            at += 1
            continue
        found = _TOKEN.match(text, at)
        assert found is not None
        yield Token(str(found.lastgroup), found[0], at)
        at = found.end()


def _starts_macro(text: str, at: int) -> bool:
    found = _TOKEN.match(text, at)
    return found is not None and found.lastgroup == "macro"


def format_program(text: str) -> str:
    """The text laid out anew. It means the same, and doing it again changes nothing.

    >>> print(format_program("reach( x,z ):-reach(x,y) ,\\n  link(y,z),x!=z . // far"), end="")
    reach(x, z) :- reach(x, y), link(y, z), x != z.  // far
    """
    written = Written.of(text)
    return _Layout(text, written.tokens).module(written.module.statements)


@dataclass(frozen=True)
class Written:
    """A program as it is written: its words, and its statements where they stand, without includes and macros."""

    tokens: Sequence[Token]
    module: tree.Module

    @classmethod
    def of(cls, text: str) -> Written:
        listed = list(tokens(text))
        return cls(listed, parse(Source.of(_without_macros(text, listed))).module)


def _without_macros(text: str, listed: Sequence[Token]) -> str:
    """Blanks for lines of the preprocessor, so that the rest can be parsed where it stands."""
    parts = list(text)
    for token in listed:
        if token.kind == "macro":
            parts[token.start : token.end] = [char if char == "\n" else " " for char in token.text]
    return "".join(parts)


class _Layout:
    def __init__(self, text: str, listed: Sequence[Token]) -> None:
        self.text, self.tokens = text, listed
        self.starts = [token.start for token in listed]
        self.lines: list[str] = []
        self.is_on_a_line = False  # the statement before

    def module(self, statements: Sequence[tree.Statement]) -> str:
        self._region(statements, 0, len(self.text), "")
        return "\n".join(self.lines).strip("\n") + "\n" if "".join(self.lines).strip() else ""

    def _region(self, statements: Sequence[tree.Statement], start: int, end: int, indent: str) -> None:
        at = start
        limits = [*(each.span.start for each in statements[1:]), end][: len(statements)]
        for statement, limit in zip(statements, limits, strict=True):
            self._between(at, statement.span.start, indent)
            joins = at > start and "\n" not in self.text[at : statement.span.start]
            at = self._end(statement, limit)
            self._put(statement, at, indent, joins=joins)
        self._between(at, end, indent)

    def _end(self, statement: tree.Statement, limit: int) -> int:
        """Spans are what errors underline: of directives and declarations something may be behind them."""
        end = statement.span.end
        if isinstance(statement, tree.Rule | tree.Subsumption | tree.Component):
            return end
        for token in self._inside(end, limit):
            if token.kind in ("comment", "macro"):
                break
            end = token.end
        if end == statement.span.end or _is(statement, self.text[statement.span.start : end]):
            return end
        return statement.span.end

    def _inside(self, start: int, end: int) -> Sequence[Token]:
        return self.tokens[bisect_right(self.starts, start - 1) : bisect_right(self.starts, end - 1)]

    def _between(self, start: int, end: int, indent: str) -> None:
        """Comments, macros and what could not be parsed: each on its line, with at most one empty line before it."""
        at = start
        for token in self._inside(start, end):
            gap = self.text[at : token.start]
            if "\n" not in gap and at > 0 and self.lines and token.kind == "comment":
                self.lines[-1] += f"  {token.text}"
            elif "\n" not in gap and at > start and self.lines:
                self.lines[-1] += (" " if gap else "") + token.text
            else:
                self._gap(gap)
                own = "" if token.kind == "macro" else indent
                self.lines.append(own + (token.text.strip() if token.kind == "macro" else token.text.rstrip()))
            at = token.end
        self._gap(self.text[at:end])

    def _gap(self, gap: str) -> None:
        if gap.count("\n") > 1 and self.lines and self.lines[-1]:
            self.lines.append("")

    def _put(self, statement: tree.Statement, end: int, indent: str, *, joins: bool) -> None:
        if isinstance(statement, tree.Component):
            self._component(statement, indent)
            return
        laid_out = self._laid_out(statement, end, indent)
        fits = joins and self.is_on_a_line and len(self.lines[-1]) + 1 + len(laid_out[0]) <= WIDTH
        self.is_on_a_line = len(laid_out) == 1
        if fits and self.is_on_a_line and "//" not in self.lines[-1]:
            self.lines[-1] += f" {laid_out[0]}"
        else:
            self.lines += [indent + line if line else "" for line in laid_out]

    def _component(self, component: tree.Component, indent: str) -> None:
        inside = self._inside(component.span.start, component.span.end)
        opening = next(token for token in inside if token.text == "{")
        closing = inside[-1]
        head = _spaced([token for token in inside if token.start <= opening.start], "comp")
        self.lines.append(indent + head)
        first = len(self.lines)
        self._region(component.statements, opening.end, closing.start, indent + INDENT)
        while len(self.lines) > first and not self.lines[-1]:
            self.lines.pop()
        self.lines.append(f"{indent}}}")

    def _laid_out(self, statement: tree.Statement, end: int, indent: str) -> list[str]:
        as_written = self.text[statement.span.start : end]
        inside = self._inside(statement.span.start, end)
        if any(token.kind in ("comment", "macro") for token in inside):
            return _kept(as_written)
        kind = inside[0].text.removeprefix(".") if inside[0].kind == "directive" else "rule"
        lines = _lines(inside, kind, WIDTH - len(indent), as_list=_begins_body_on_a_line(inside, self.text))
        return lines if _is(statement, "\n".join(lines)) else _kept(as_written)


def _is(statement: tree.Statement, text: str) -> bool:
    """Whether the text is this statement, and nothing else."""
    read = parse(Source.of(text))
    return not read.errors and read.module.statements == (statement,)


def _kept(text: str) -> list[str]:
    first, *rest = text.split("\n")
    return [first.rstrip(), *(f"{INDENT}{line.strip()}" if line.strip() else "" for line in rest)]


def _begins_body_on_a_line(inside: Sequence[Token], text: str) -> bool:
    """Whether the body of a rule begins on a line of its own: then each literal has one."""
    for token, following in pairwise(inside):
        if token.text in (":-", "<-"):
            return "\n" in text[token.end : following.start]
    return False


def _lines(inside: Sequence[Token], kind: str, width: int, *, as_list: bool) -> list[str]:
    whole = _spaced(inside, kind)
    if kind != "rule" or (len(whole) <= width and not as_list):
        return [whole]
    turn = next((at for at, token in enumerate(inside) if token.text in (":-", "<-")), None)
    if turn is None:
        return [whole]
    literals = (_spaced(each, kind, inner=True) for each in _literals(inside[turn + 1 :]))
    return [_spaced(inside[: turn + 1], kind), *(INDENT + each for each in literals)]


def _literals(inside: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Each up to the comma behind it, the last up to the end."""
    depth, start = 0, 0
    for at, token in enumerate(inside):
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if token.text == "," and not depth:
            yield inside[start : at + 1]
            start = at + 1
    yield inside[start:]


def _spaced(inside: Sequence[Token], kind: str, *, inner: bool = False) -> str:
    """The words of a statement on one line. `inner` words are not the beginning of it."""
    text = ""
    depth = 0
    for at, token in enumerate(inside):
        before = inside[at - 1] if at else None
        if before is not None and _is_apart(inside, at, kind, depth, is_first=at == 1 and not inner):
            text += " "
        text += token.text
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
    return text


def _is_apart(inside: Sequence[Token], at: int, kind: str, depth: int, *, is_first: bool) -> bool:
    before, token = inside[at - 1], inside[at]
    one, two = before.text, token.text
    is_call = before.kind == "name" and one not in _WORDS and two == "(" and before.end == token.start
    if two in (",", ")", "]") or one in ("(", "[", "!", "@", "$") or (two == "." and at == len(inside) - 1) or is_call:
        return False
    if one == "," or before.kind == "directive" or token.kind == "directive":
        return True
    if ":" in (one, two):
        return _around_colon(before, kind, depth, is_label=(is_first and two == ":") or (one == ":" and at == 2))
    if "{" in (one, two) or "}" in (one, two):
        return not (kind in ("type", "functor") and (one == "{" or two == "}"))
    if kind in ("comp", "init", "decl", "functor") and {one, two} & {"<", ">"}:
        return two == "{"
    if kind in ("input", "output", "printsize", "limitsize", "window") and "=" in (one, two):
        return False
    if one == "-":
        return not _is_unary(inside, at - 1)
    if two == "-" or one in _SPACED or two in _SPACED:
        return True
    return before.end != token.start


def _around_colon(before: Token, kind: str, depth: int, *, is_label: bool) -> bool:
    if kind != "rule":
        return kind == "comp" and depth == 0
    return before.text == ":" if is_label and depth == 0 else True


def _is_unary(inside: Sequence[Token], at: int) -> bool:
    if not at:
        return True
    before = inside[at - 1].text
    return before in _SPACED or before in _OPENING or before in (",", ":", "-") or before in _WORDS
