"""Facts, rules and proofs as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from whence.lang.bags import bag_rows
from whence.lang.program import Program, Rule
from whence.lang.scalars import text_of
from whence.lang.tree import Span
from whence.lang.types import Value, Variant
from whence.provenance.graph import Absence, Aggregated, Derivation, Fact, UnnamedAbsence, Wildcard

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')
_SELECT = re.compile(r"\b(?:SELECT\s+(?:DISTINCT\s+)?|WITH\s+(?:RECURSIVE\s+)?)$", re.IGNORECASE)
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"})


def printable(text: str) -> str:
    """The text with escapes for control characters, lone surrogates and all else that neither XML nor HTML can hold.

    >>> printable("bell\\a, tab\\t")
    'bell\\\\u0007, tab\\t'
    """
    return _NOT_IN_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def show_value(value: Value | Wildcard) -> str:
    """As it is written in a program.

    >>> show_value((1, "a", None))
    '[1, "a", nil]'
    """
    # Values may be deeper than Python can recurse: texts, and values still to be shown, last first.
    texts: list[str] = []
    pending: list[Value | Wildcard | _Text] = [value]
    while pending:
        each = pending.pop()
        match each:
            case _Text():
                texts.append(each)
            case None:
                texts.append("nil")
            case str():
                texts.append(f'"{each.translate(_ESCAPES)}"')
            case Variant(branch=branch, args=()):
                texts.append(f"${branch}")
            case Variant(branch=branch, args=args):
                pending += reversed([_Text(f"${branch}("), *_separated(args), _Text(")")])
            case (*items, Wildcard.REST):
                pending += reversed([_Text("["), *_separated(items), _Text(" | _]")])
            case tuple():
                pending += reversed([_Text("["), *_separated(each), _Text("]")])
            case bool() | date() | Decimal():
                texts.append(text_of(each))
            case _:
                texts.append(repr(each))
    return "".join(texts)


class _Text(str):
    """A part of what is shown, and not a value."""

    __slots__ = ()


def _separated(values: Iterable[Value | Wildcard]) -> Iterator[Value | Wildcard | _Text]:
    for at, value in enumerate(values):
        if at:
            yield _Text(", ")
        yield value


def show_fact(fact: Fact | Absence) -> str:
    """
    >>> show_fact(Fact("link", ("a", 2)))
    'link("a", 2)'
    """
    relation, values = fact
    if isinstance(fact, UnnamedAbsence):
        return relation
    return f"{relation}({', '.join(map(show_value, values))})"


def shown(facts: Iterable[Fact | Absence]) -> str:
    """Facts as one text, which orders what is made of them."""
    return " ".join(map(show_fact, facts))


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule as the user wrote it, and where."""

    name: str
    file: str
    line: int
    text: str


def rule_texts(program: Program, names: Iterable[str]) -> list[RuleText]:
    """The rules of these names, in the order of the program."""
    wanted = set(names)
    return [
        RuleText(name, place.file.name, place.line, source_text(program, rule.span).removeprefix(f"{name}: "))
        for name, rule in by_shown_name(program)
        if name in wanted
        for place in [program.source.place(rule.span)]
    ]


def by_shown_name(program: Program) -> Iterator[tuple[str, Rule]]:
    """A view that is a bag only restates its rows: their rules, which hold the query, go by the name of its own."""
    views = dict(bag_rows(program))
    for rule in program.rules:
        view = views.get(rule.head.relation)
        if view is not None:
            yield f"{view}#{rule.name.rpartition('#')[2]}", rule
        if rule.head.relation not in views.values():
            yield rule.name, rule


def source_text(program: Program, span: Span) -> str:
    """What the user wrote there, on one line.

    Places in SQL begin and end with a name or a literal: the word before them and the parentheses behind are added.
    """
    text = program.source.text
    found = text[span.start : span.end]
    bare = _QUOTED.sub("", found)
    for close in list(re.finditer(r"\)", text[span.end :]))[: max(0, bare.count("(") - bare.count(")"))]:
        found = text[span.start : span.end + close.end()]
    if not found.endswith(".") and (select := _SELECT.search(text[: span.start])):
        found = select[0] + found
    return " ".join(found.split())


def show_rules(program: Program, names: Iterable[str]) -> Iterator[str]:
    """A line for each rule, in columns."""
    rules = rule_texts(program, names)
    places = [f"{rule.file}:{rule.line}" for rule in rules]
    for rule, place in zip(rules, places, strict=True):
        width = max(len(each.name) for each in rules)
        yield f"{rule.name:<{width}}  {place:<{max(map(len, places))}}  {rule.text}"


def absences(firing: Derivation) -> list[str]:
    return [f"no {show_fact(each)}" for each in firing.absent]


def show_aggregate(aggregated: Aggregated) -> str:
    return f"{aggregated.op} = {show_value(aggregated.value)}"
