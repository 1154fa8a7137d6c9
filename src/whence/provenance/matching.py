"""Questions about all facts that look like one: `route("a", _, x)`.

`_` is any value; a variable is one too, the same wherever it stands. Names without quotes have always been taken for texts, as in
`reach(office, web)`, and still are where all texts are written so. They are variables where another text has quotes, and in
columns that hold no texts; `_x` is one everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from whence.lang.program import Program
from whence.lang.types import SYMBOL, Kind, Tuple, Value
from whence.provenance.base import parse_fact
from whence.provenance.graph import Fact
from whence.reference.tables import TupleSet

_ATOM = re.compile(r"\s*([\w.?]+)\s*\((.*)\)\s*\.?\s*", re.DOTALL)
_FREE = re.compile(r"_\w*")
_NAME = re.compile(r"[A-Za-z]\w*")
_VALUES = frozenset({"nil", "true", "false"})  # names of values
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
    >>> parse_pattern("link(a, n)", program)
    FactPattern(relation='link', known={0: 'a'}, same={})
    """
    found = _ATOM.fullmatch(text)
    arguments = [] if found is None else list(split_values(found[2]))
    if found is None or found[1] not in program.relations:
        return parse_fact(text, program)
    fields, hidden = program.relations[found[1]].fields, program.relations[found[1]].hidden
    if hidden and len(arguments) == len(fields) - hidden:  # what tells equal rows apart is not shown either
        arguments += ["_"] * hidden
    free = dict(_free(arguments, [each.kind for each in fields]))
    if not free:
        return parse_fact(text, program)
    if len(arguments) != len(fields):
        columns = ", ".join(f"{each.name}:{each.type}" for each in fields)
        raise ValueError(f"{text} does not fit {found[1]}({columns}): it has {len(arguments)} values")
    known = {at: _value(each, found[1], at, program) for at, each in enumerate(arguments) if at not in free}
    first: dict[str, int] = {}
    same = {at: first.setdefault(name, at) for at, name in free.items() if name != "_"}
    return FactPattern(found[1], known, {at: other for at, other in same.items() if at != other})


def _free(arguments: Sequence[str], kinds: Sequence[Kind]) -> Iterator[tuple[int, str]]:
    has_quotes = any(each[:1] in ("'", '"') for each in arguments)
    for at, (text, kind) in enumerate(zip_longest(arguments, kinds)):
        if text is None:
            return
        is_name = _NAME.fullmatch(text) is not None and text not in _VALUES
        if _FREE.fullmatch(text) or (is_name and (has_quotes or kind != SYMBOL)):
            yield at, text


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
