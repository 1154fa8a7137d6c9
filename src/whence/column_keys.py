"""The keys of tables whose rows come as columns: looked at without a tuple for each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from whence.constraints import Broken, ConstraintError, Constraints, ValuesIn
from whence.io.plain_columns import Coded, PlainColumns, Words, repetitions
from whence.lang.program import Relation
from whence.lang.tables import Key
from whence.lang.types import FLOAT, LEAST, UNSIGNED, Field, Kind, Nullable, Tuple, Value, base

_BITS: Mapping[Kind, type[np.generic]] = {UNSIGNED: np.uint64, FLOAT: np.float64}


def check_columns(given: Mapping[str, PlainColumns], constraints: Constraints) -> None:
    """Raises ConstraintError if two rows of a table have the same key."""
    for name, columns in given.items():
        fields = constraints.program.relations[name].fields
        for key in constraints.tables[name].keys if name in constraints.tables else ():
            found = _repeated(columns, key, fields)
            if found is not None:
                row, other = (_row(columns, at, fields) for at in found)
                raise ConstraintError(Broken(found[0], name, row, key.text, other), f"row {found[0] + 1}")


def _repeated(columns: PlainColumns, key: Key, fields: Sequence[Field]) -> tuple[int, int] | None:
    """The first row whose key another has before it, and that one. Where a key is nil it is equal to none."""
    known = np.ones(len(columns), dtype=np.bool_)
    words: list[NDArray[np.int64]] = []
    for at in key.columns:
        each, may_be_nil = columns.whole(at), isinstance(fields[at].kind, Nullable)
        words.append(each.places.astype(np.int64) if isinstance(each, Coded) else each)
        if may_be_nil and isinstance(each, Coded):
            known &= np.array([value is not None for value in each.values], dtype=np.bool_)[each.places]
        elif may_be_nil:
            known &= words[-1] != LEAST
    places = np.flatnonzero(known)
    again = repetitions(np.column_stack([each[known] for each in words]))
    if not len(again):
        return None
    at, other, _ = again[np.argmin(again[:, 0])]
    return int(places[at]), int(places[other])


def values_in_columns(columns: PlainColumns, relation: Relation) -> ValuesIn:
    def values(places: tuple[int, ...]) -> Iterator[tuple[Value, ...]]:
        return zip(*(_values(columns.whole(at), relation.fields[at].kind) for at in places), strict=True)

    return values


def _values(column: Words | Coded, kind: Kind) -> list[Value]:
    if isinstance(column, Coded):
        texts: list[Value] = [column.values[place] for place in column.places.tolist()]
        return texts
    found: list[Value] = column.view(_BITS.get(base(kind), np.int64)).tolist()
    if isinstance(kind, Nullable):
        return [None if word == LEAST else value for word, value in zip(column.tolist(), found, strict=True)]
    return found


def _row(columns: PlainColumns, at: int, fields: Sequence[Field]) -> Tuple:
    return tuple([_value(columns.whole(column), at, field.kind) for column, field in enumerate(fields)])


def _value(column: Words | Coded, at: int, kind: Kind) -> Value:
    if isinstance(column, Coded):
        found: Value = column.values[int(column.places[at])]
        return found
    word = column[at : at + 1]
    if isinstance(kind, Nullable) and word[0] == LEAST:
        return None
    bits = _BITS.get(base(kind), np.int64)
    return cast("Value", word.view(bits)[0].item())
