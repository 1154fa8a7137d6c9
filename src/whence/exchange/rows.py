"""Rows as users have them, as the engine has them, and as published files have them.

To a user a column holds its values, and where a mapping invented one, a labelled null: `Variant("m1_b", ("Osci",))`, shown as
`$m1_b("Osci")`. Two nulls are equal if function and arguments are; nothing else is part of their identity, so they survive
files, restarts and changes of other mappings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from whence.exchange.compile import LOCAL, Compiled, known
from whence.exchange.model import Relation
from whence.io.json_text import Json
from whence.lang import tree
from whence.lang.fit import check_rows
from whence.lang.parser import parse
from whence.lang.printer import print_node
from whence.lang.source import Source
from whence.lang.types import Tuple, Value, Variant
from whence.provenance.show import show_value

_PREFIX = known("")
_BOUNDS = {"number": (-(2**63), 2**63 - 1), "unsigned": (0, 2**64 - 1)}


def is_null(value: Value) -> bool:
    return isinstance(value, Variant)


def has_null(row: Tuple) -> bool:
    return any(is_null(value) for value in row)


class NotInvented(ValueError):
    """A null that no mapping invents, or not for this column."""


class Rows:
    """Translates between users' rows and those of the tables of a compiled confederation."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        relations = compiled.confederation.relations
        self._kinds: Mapping[str, Sequence[tuple[str, bool]]] = {
            name: [(column.type, (name, at) in compiled.nullable) for at, column in enumerate(relation.columns)]
            for name, relation in relations.items()
        }

    def to_engine(self, relation: str, row: Tuple) -> Tuple:
        """Raises ValueError for a row that does not fit."""
        kinds = self._kinds[relation]
        if len(row) != len(kinds):
            raise ValueError(f"{relation} has {len(kinds)} columns, not {len(row)}")
        return tuple(self._wrap(value, *kind) for value, kind in zip(row, kinds, strict=True))

    def all_to_engine(self, relation: str, rows: Sequence[Tuple]) -> Sequence[Tuple | None]:
        """The same for many rows of a relation; None for one with a null that no mapping invents."""
        kinds = self._kinds[relation]
        if not any(nullable or type_ == "float" for type_, nullable in kinds):
            program = self._compiled.program
            try:
                check_rows(program.relations[f"{relation}.{LOCAL}"], rows, program.types)
            except ValueError:
                pass  # row by row it is told which, and why
            else:
                return rows
        return [self._unless_unknown(relation, row) for row in rows]

    def _unless_unknown(self, relation: str, row: Tuple) -> Tuple | None:
        try:
            return self.to_engine(relation, row)
        except NotInvented:
            return None

    def from_engine(self, row: Tuple, width: int) -> Tuple:
        """The first columns of an engine's row; behind them may be marks."""
        return tuple(unwrap(value) for value in row[:width])

    def _wrap(self, value: Value, type_: str, nullable: bool) -> Value:
        if isinstance(value, Variant):
            if not nullable:
                raise NotInvented(f"{show_value(value)} is an invented value, which no mapping brings here")
            args = self._compiled.skolems.get(value.branch)
            if args is None or len(args) != len(value.args):
                raise NotInvented(f"no mapping invents {show_value(value)}")
            wrapped = (self._wrap(arg, *kind) for arg, kind in zip(value.args, args, strict=True))
            return Variant(value.branch, tuple(wrapped))
        fitting = fitted(value, type_)
        return Variant(known(type_), (fitting,)) if nullable else fitting


def unwrap(value: Value) -> Value:
    if not isinstance(value, Variant):
        return value
    if value.branch.startswith(_PREFIX):
        return value.args[0]
    return Variant(value.branch, tuple(unwrap(arg) for arg in value.args))


def fitted(value: object, type_: str) -> Value:
    """The value, as a column of the type holds it. Raises ValueError."""
    if type_ == "symbol" and isinstance(value, str):
        return value
    if type_ == "float" and isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    if type_ in _BOUNDS and isinstance(value, int) and not isinstance(value, bool):
        low, high = _BOUNDS[type_]
        if low <= value <= high:
            return value
    raise ValueError(f"{value!r} is not a {type_}")


# -- as JSON ----------------------------------------------------------------------------------------------------------


def value_to_json(value: Value) -> Json:
    if isinstance(value, Variant):
        return {"null": value.branch, "of": [value_to_json(arg) for arg in value.args]}
    assert value is None or isinstance(value, int | float | str)
    return value


def value_from_json(value: Json) -> Value:
    """Raises ValueError."""
    if isinstance(value, dict):
        name, args = value.get("null"), value.get("of")
        if isinstance(name, str) and isinstance(args, list):
            return Variant(name, tuple(value_from_json(arg) for arg in args))
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is not a value")


def row_to_json(row: Tuple) -> list[Json]:
    if {int, str}.issuperset(map(type, row)):
        return list(row)  # type: ignore[arg-type] # most are, and there may be many
    return [value_to_json(value) for value in row]


def row_from_json(row: Sequence[Json]) -> Tuple:
    """Raises ValueError."""
    if {int, str}.issuperset(map(type, row)):
        return tuple(row)  # type: ignore[arg-type]
    return tuple(value_from_json(value) for value in row)


# -- as text ----------------------------------------------------------------------------------------------------------


def show_row(relation: str, row: Tuple) -> str:
    """
    >>> show_row("B", (Variant("m1_b", ("Osci",)), "Osci"))
    'B($m1_b("Osci"), "Osci")'
    """
    return f"{relation}({', '.join(show_value(value) for value in row)})"


def parse_row(text: str) -> tuple[str, Tuple]:
    """A row as it is shown. Raises ValueError.

    >>> parse_row('B($m1_b("Osci"), -3)')
    ('B', (Variant(branch='m1_b', args=('Osci',)), -3))
    """
    source = text if text.rstrip().endswith(".") else f"{text}."
    parsed = parse(Source.of(source))
    statement = parsed.module.statements[0] if len(parsed.module.statements) == 1 and not parsed.errors else None
    if not isinstance(statement, tree.Rule) or statement.body is not None or len(statement.heads) != 1:
        raise ValueError(f'{text} is not a row: write it as in R(1, "a")')
    head = statement.heads[0]
    return head.relation, tuple(_constant(arg) for arg in head.args)


def _constant(term: tree.Term) -> Value:
    match term:
        case tree.Number(value) | tree.String(value):
            return value
        case tree.Call("-", (tree.Number(value),)):
            return -value
        case tree.Branch(name, args):
            return Variant(name, tuple(_constant(arg) for arg in args))
    raise ValueError(f"{print_node(term)} is not a value")


def key_of(relation: Relation, row: Tuple) -> Tuple:
    return tuple(row[at] for at in relation.key)


def sort_rows(rows: Iterable[Tuple]) -> list[Tuple]:
    """In an order that holds for values of any kind: numbers, then text, then nulls."""
    return sorted(rows, key=lambda row: [_place(value) for value in row])


def _place(value: Value) -> tuple[int, float | str | list[object]]:
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, Variant):
        return 2, [value.branch, *map(_place, value.args)]
    return 1, str(value)
