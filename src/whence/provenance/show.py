"""Facts, rules and proofs as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from whence.lang.program import Program
from whence.lang.tree import Span
from whence.lang.types import Value, Variant
from whence.provenance.graph import Absence, Aggregated, Derivation, Fact, Wildcard

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')
_SELECT = re.compile(r"\bSELECT\s+(?:DISTINCT\s+)?$", re.IGNORECASE)
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
    match value:
        case None:
            return "nil"
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case Variant(branch=branch, args=args):
            return f"${branch}({_listed(args)})" if args else f"${branch}"
        case (*items, Wildcard.REST):
            return f"[{_listed(items)} | _]"
        case tuple():
            return f"[{_listed(value)}]"
        case _:
            return repr(value)


def show_fact(fact: Fact | Absence) -> str:
    """
    >>> show_fact(Fact("link", ("a", 2)))
    'link("a", 2)'
    """
    relation, values = fact
    return f"{relation}({_listed(values)})"


def _listed(values: Iterable[Value | Wildcard]) -> str:
    return ", ".join(show_value(value) for value in values)


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
        RuleText(rule.name, place.file.name, place.line, source_text(program, rule.span).removeprefix(f"{rule.name}: "))
        for rule in program.rules
        if rule.name in wanted
        for place in [program.source.place(rule.span)]
    ]


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
