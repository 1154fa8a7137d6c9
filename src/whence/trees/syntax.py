"""The text of a query to its tree: XQuery's core without order, and `annot`.

    query  ::= single (, single)*
    single ::= for $x in single (, $y in single)* (where single = single (and …)*)? return single
             | let $x := single (, …)* return single
             | if (single = single) then single else single
             | annot VALUE single | path
    path   ::= part ((/ | //) (AXIS::)? (LABEL | *))*          AXIS: self, child, descendant
    part   ::= LABEL | "text" | $x | () | ( query ) | name(single) | element LABEL { query } | <a> { query } </a>

The label of an element may also be any expression for one: `element name($x) { … }`. Comments are `(: … :)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from whence.lang.diagnostics import Diagnostic, ProgramError
from whence.lang.source import Source
from whence.lang.tree import Span
from whence.trees.diagnostics import TooDeep, UnbalancedTags, UnexpectedText

AXES = ("self", "child", "descendant")
ANY = "*"
_WORDS = frozenset(("for", "let", "if", "annot", "element", "name", "return", "in", "where", "and", "then", "else"))
_TOKEN = re.compile(
    r"(?:\s|\(:(?:[^:]|:(?!\)))*:\))+"
    r'|(?P<string>"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')'
    r"|(?P<variable>\$[A-Za-z_]\w*)"
    r"|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<word>@?[^\W\d][\w.-]*)"
    r"|(?P<mark>::|:=|//|</|/>|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Label:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class For:
    bindings: tuple[tuple[Variable, Expression], ...]
    conditions: tuple[Comparison, ...]
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    bindings: tuple[tuple[Variable, Expression], ...]
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    condition: Comparison
    then: Expression
    otherwise: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Element:
    label: Expression
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Name:
    tree: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Annot:
    value: Label
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Step:
    source: Expression
    axis: str
    test: str
    span: Span


Expression = Label | Variable | Sequence | For | Let | If | Element | Name | Annot | Step


class Token(NamedTuple):
    kind: str
    text: str
    span: Span


def parse(source: Source) -> Expression:
    """Raises `ProgramError` at the first place that does not fit."""
    try:
        parser = _Parser(source)
        found = parser.sequence()
        parser.expect_end()
    except RecursionError:
        advice = "bind parts of it by let"
        raise ProgramError(source, (TooDeep(Span(0, 1), limit="a few hundred", advice=advice),)) from None
    return found


class PathStep(NamedTuple):
    """`deep` says that any number of levels may lie between."""

    deep: bool
    test: str


def parse_path(source: Source, span: Span) -> tuple[PathStep, ...]:
    """A path from the top of a document, as in `/patients//name`."""
    parser = _Parser(source, span)
    steps: list[PathStep] = []
    while not steps or parser.at("/", "//"):
        deep = parser.expect("/", "//").text == "//"
        steps.append(PathStep(deep, parser.test()))
    parser.expect_end()
    return tuple(steps)


class _Parser:
    def __init__(self, source: Source, span: Span | None = None) -> None:
        self.source = source
        start, end = span or Span(0, len(source.text))
        self.tokens = [
            Token(str(each.lastgroup), each[0], Span(each.start(), each.end()))
            for each in _TOKEN.finditer(source.text, start, end)
            if each.lastgroup is not None
        ]
        self.tokens.append(Token("end", "", Span(end, end)))
        self.position = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def fail(self, expected: str) -> ProgramError:
        token = self.token
        found = "the end of the text" if token.kind == "end" else token.text
        return self.error(UnexpectedText(token.span, found=found, expected=expected))

    def error(self, diagnostic: Diagnostic) -> ProgramError:
        return ProgramError(self.source, (diagnostic,))

    def at(self, *texts: str) -> bool:
        return self.token.kind in ("mark", "word") and self.token.text in texts

    def take(self) -> Token:
        token = self.token
        self.position += 1
        return token

    def expect(self, *texts: str) -> Token:
        if not self.at(*texts):
            raise self.fail(" or ".join(texts))
        return self.take()

    def expect_end(self) -> None:
        if self.token.kind != "end":
            raise self.fail("an operator or the end")

    def since(self, start: Token) -> Span:
        return Span(start.span.start, self.tokens[self.position - 1].span.end)

    # -- expressions

    def sequence(self) -> Expression:
        start = self.token
        parts = [self.single()]
        while self.at(","):
            self.take()
            parts.append(self.single())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts), self.since(start))

    def single(self) -> Expression:
        start = self.token
        if self.at("for"):
            bindings = self.bindings("in")
            conditions: list[Comparison] = []
            while self.at("and" if conditions else "where"):
                self.take()
                conditions.append(self.comparison())
            self.expect("return")
            body = self.single()
            return For(bindings, tuple(conditions), body, self.since(start))
        if self.at("let"):
            bindings = self.bindings(":=")
            self.expect("return")
            body = self.single()
            return Let(bindings, body, self.since(start))
        if self.at("if"):
            self.take()
            self.expect("(")
            condition = self.comparison()
            self.expect(")")
            self.expect("then")
            then = self.single()
            self.expect("else")
            otherwise = self.single()
            return If(condition, then, otherwise, self.since(start))
        if self.at("annot"):
            self.take()
            if self.token.kind not in ("word", "number", "string"):
                raise self.fail("an annotation")
            value = self.label()
            body = self.single()
            return Annot(value, body, self.since(start))
        return self.path()

    def bindings(self, word: str) -> tuple[tuple[Variable, Expression], ...]:
        found: list[tuple[Variable, Expression]] = []
        while not found or self.at(","):
            self.take()
            if self.token.kind != "variable":
                raise self.fail("a variable, such as $x")
            token = self.take()
            self.expect(word)
            found.append((Variable(token.text[1:], token.span), self.single()))
        return tuple(found)

    def comparison(self) -> Comparison:
        left = self.single()
        self.expect("=")
        return Comparison(left, self.single())

    def path(self) -> Expression:
        start = self.token
        found = self.part()
        while self.at("/", "//"):
            axis = "descendant" if self.take().text == "//" else "child"
            following = self.tokens[self.position + 1]
            if following.text == "::":
                if axis == "descendant" or not self.at(*AXES):
                    raise self.fail("/ and an axis: self::, child:: or descendant::")
                axis = self.take().text
                self.take()
            test = self.test()
            found = Step(found, axis, test, self.since(start))
        return found

    def test(self) -> str:
        if self.at(ANY):
            return self.take().text
        if self.token.kind not in ("word", "number", "string"):
            raise self.fail("a label or *")
        return self.label().text

    def label(self) -> Label:
        token = self.take()
        text = re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL) if token.kind == "string" else token.text
        return Label(text, token.span)

    def part(self) -> Expression:
        start = self.token
        if start.kind == "variable":
            self.take()
            return Variable(start.text[1:], start.span)
        if self.at("("):
            self.take()
            inner: Expression = Sequence((), start.span) if self.at(")") else self.sequence()
            self.expect(")")
            return inner
        if self.at("element"):
            self.take()
            label = self.part()
            self.expect("{")
            body = self.content()
            return Element(label, body, self.since(start))
        if self.at("name"):
            self.take()
            self.expect("(")
            tree = self.single()
            self.expect(")")
            return Name(tree, self.since(start))
        if self.at("<"):
            return self.tagged()
        if start.kind in ("string", "number") or (start.kind == "word" and start.text not in _WORDS):
            return self.label()
        raise self.fail("an expression: a label, $x, a path, for, let, if, element or annot")

    def content(self) -> Expression:
        start = self.token
        body: Expression = Sequence((), start.span) if self.at("}") else self.sequence()
        self.expect("}")
        return body

    def tagged(self) -> Element:
        start = self.expect("<")
        if self.token.kind != "word":
            raise self.fail("a label")
        opened = self.label()
        parts: list[Expression] = []
        if self.at("/>"):
            self.take()
            return Element(opened, Sequence((), opened.span), self.since(start))
        self.expect(">")
        while not self.at("</"):
            if self.at("{"):
                self.take()
                parts.append(self.content())
            elif self.at("<"):
                parts.append(self.tagged())
            else:
                raise self.fail(f'{{ a query }}, {{ "a text" }}, another element or </{opened.text}>')
        self.take()
        if self.token.kind == "word":
            closed = self.take()
            if closed.text != opened.text:
                raise self.error(UnbalancedTags(closed.span, opened=opened.text, closed=closed.text))
        self.expect(">")
        span = self.since(start)
        return Element(opened, Sequence(tuple(parts), span), span)
