"""Questions about all facts that look like one: `route("a", _, _)`; a name such as `_x` is the same value wherever it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from whence.lang.program import Program
from whence.lang.types import Tuple, Value
from whence.provenance.base import check_relation, parse_fact
from whence.provenance.graph import Fact
from whence.reference.tables import TupleSet

_ATOM = re.compile(r"\s*([\w.?]+)\s*\((.*)\)\s*\.?\s*", re.DOTALL)
_FREE = re.compile(r"_\w*")
_BRACKETS = {"(": 1, "[": 1, ")": -1, "]": -1}


@dataclass(frozen=True)
class FactPattern:
    """`known` are the columns that have a value, `same` those that have to be equal to an earlier one."""

    relation: str
    known: Mapping[int, Value]
    same: Mapping[int, int]

    def among(self, table: TupleSet) -> Iterator[Fact]:
        columns = tuple(self.known)
        for row in table.lookup(columns, tuple(self.known.values())):
            if self._is_even(row):
                yield Fact(self.relation, row)

    def _is_even(self, row: Tuple) -> bool:
        return all(row[at] == row[first] for at, first in self.same.items())


def parse_pattern(text: str, program: Program) -> FactPattern | Fact:
    """A fact, or a pattern if there is something free in it. Raises ValueError, saying what is wrong with it.

    >>> from whence import load
    >>> program = load(".decl link(x:symbol, y:number) .input link .output link")
    >>> parse_pattern('link("a, b", _)', program)
    FactPattern(relation='link', known={0: 'a, b'}, same={})
    """
    found = _ATOM.fullmatch(text)
    arguments = [] if found is None else list(split_values(found[2]))
    free = {at: each for at, each in enumerate(arguments) if _FREE.fullmatch(each)}
    if found is None or not free:
        return parse_fact(text, program)
    check_relation(found[1], program)
    fields = program.relations[found[1]].fields
    if len(arguments) != len(fields):
        columns = ", ".join(f"{each.name}:{each.type}" for each in fields)
        raise ValueError(f"{text} does not fit {found[1]}({columns}): it has {len(arguments)} values")
    known = {at: _value(each, found[1], at, program) for at, each in enumerate(arguments) if at not in free}
    first: dict[str, int] = {}
    same = {at: first.setdefault(name, at) for at, name in free.items() if name != "_"}
    return FactPattern(found[1], known, {at: other for at, other in same.items() if at != other})


def _value(text: str, relation: str, at: int, program: Program) -> Value:
    """The value of one column, read as that of a relation with this column alone."""
    declared = program.relations[relation]
    narrow = replace(declared, fields=declared.fields[at : at + 1])
    return parse_fact(f"{relation}({text})", replace(program, relations={relation: narrow})).tuple[0]


def split_values(text: str) -> Iterator[str]:
    """At commas that stand in no string and in no brackets."""
    depth, quote, start, at = 0, "", 0, 0
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif (char in "\"'" and not text[start:at].strip()) or char == '"':
            quote = char
        elif char == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
        else:
            depth += _BRACKETS.get(char, 0)
        at += 1
    yield text[start:].strip()
