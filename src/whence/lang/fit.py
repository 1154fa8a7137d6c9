"""Whether values that come from Python are values of the kind that the program expects."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Integral, Real
from sys import float_info
from typing import Any

from whence.lang.deep import compounded
from whence.lang.program import Relation
from whence.lang.scalars import is_scalar
from whence.lang.types import (
    FLOAT,
    NUMBER,
    RESERVED,
    SYMBOL,
    UNSIGNED,
    AdtKind,
    Kind,
    ListKind,
    Nullable,
    Primitive,
    RecordKind,
    Tuple,
    Types,
    Variant,
    base,
    is_plain,
)

_RANGES: dict[Kind, tuple[int, int]] = {NUMBER: (-(2**63), 2**63 - 1), UNSIGNED: (0, 2**64 - 1)}
_FLOATS = (-float_info.max, float_info.max)


def fits(value: object, kind: Kind, types: Types) -> bool:
    """Without recursion: a linked list of records nests as deep as it is long.

    >>> fits(1, NUMBER, Types()), fits(1.5, NUMBER, Types()), fits((1, 2), ListKind(NUMBER), Types())
    (True, False, True)
    """
    pending: list[tuple[object, Kind]] = [(value, kind)]
    while pending:
        value, kind = pending.pop()
        match kind:
            case Primitive():
                if not _is_primitive(value, kind):
                    return False
            case Nullable(of):
                if value is not None and not (_is_primitive(value, of) and value != RESERVED.get(of)):
                    return False
            case ListKind(element):
                if not isinstance(value, tuple):
                    return False
                pending += [(item, element) for item in value]
            case RecordKind(name) | AdtKind(name):
                if value is None and isinstance(kind, RecordKind):
                    continue
                if isinstance(kind, RecordKind):
                    parts, fields = value, types.records[name]
                elif isinstance(value, Variant) and value.branch in types.adts[name]:
                    parts, fields = value.args, types.adts[name][value.branch]
                else:
                    return False
                if not isinstance(parts, tuple) or len(parts) != len(fields):
                    return False
                pending += [(part, each.kind) for part, each in zip(parts, fields, strict=True)]
    return True


def _is_primitive(value: Any, kind: Primitive) -> bool:
    if kind == SYMBOL:
        return isinstance(value, str)
    if kind == FLOAT:  # an integer may be too large or too long, and nan is not a value
        return (
            isinstance(value, Real) and (_is_within(value, _FLOATS) or value in (inf, -inf)) and float(value) == value
        )
    if kind in _RANGES:
        return isinstance(value, Integral) and _is_within(value, _RANGES[kind])
    return is_scalar(value, kind)


def _is_within(value: Any, bounds: tuple[float, float]) -> bool:
    return bool(bounds[0] <= value <= bounds[1])


def check_rows(relation: Relation, rows: Sequence[Tuple], types: Types) -> None:
    """Raises ValueError for a row that the relation cannot hold."""
    for row in rows:
        if not isinstance(row, tuple):
            raise ValueError(f"{relation.name} takes tuples, not {row!r}")  # noqa: TRY004 - what does not fit is a ValueError
        if len(row) != relation.arity:
            raise ValueError(f"{relation.name} has {relation.arity} columns, not {len(row)}: {row!r}")
    for at, each in enumerate(relation.fields):
        column = [row[at] for row in rows]
        if _are_plain(column, each.kind):
            continue
        value: Any
        for value in column:
            if not fits(value, each.kind, types):
                is_far = base(each.kind) in _RANGES and isinstance(value, Integral)
                why = "out of range for" if is_far else "not of type"
                raise ValueError(
                    f"{relation.name}: column {each.name} cannot hold {compounded(value)!r}, which is {why} {each.kind}"
                )


def holds_compounds(relation: Relation) -> bool:
    """Whether there are records, branches or lists in its rows."""
    return not all(is_plain(each.kind) for each in relation.fields)


def with_compounds(row: Tuple) -> Tuple:
    """A row that fits, with its records, branches and lists as everything else makes them: however deep they are."""
    return tuple(compounded(value) for value in row)


def _are_plain(values: Sequence[Any], kind: Kind) -> bool:
    """A quick look that says yes to most columns of integers and text."""
    found = set(map(type, values))
    if kind == SYMBOL:
        return found == {str}
    if kind not in _RANGES or found != {int}:
        return False
    return _is_within(min(values), _RANGES[kind]) and _is_within(max(values), _RANGES[kind])
