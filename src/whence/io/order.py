"""The order of rows in an output: by value, column by column.

Numbers go by size (nan last), symbols by code point, nil before records, records and lists item by item, branches by
name and then by their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan

from whence.lang.types import FLOAT, Kind, Primitive, Tuple, Value, Variant

# Two keys agree in length and in the type at each position up to where they first differ.
_Key = tuple[int | float | str, ...]


def sort_rows(rows: Iterable[Tuple], kinds: Sequence[Kind]) -> list[Tuple]:
    """
    >>> from whence.lang.types import RecordKind
    >>> sort_rows({((2, 1),), (None,), ((1, 2),)}, [RecordKind("Pair")])
    [(None,), ((1, 2),), ((2, 1),)]
    """
    in_order = list(rows)
    floats = [at for at, kind in enumerate(kinds) if kind == FLOAT]
    # nan compares with nothing, itself included.
    plain = all(isinstance(kind, Primitive) for kind in kinds)
    if plain and all(row[at] == row[at] for at in floats for row in in_order):
        in_order.sort()
    else:
        in_order.sort(key=_key)
    return in_order


def _key(row: Tuple) -> _Key:
    """The row flattened, so that comparing two keys nests no deeper than comparing two lists of numbers."""
    key: list[int | float | str] = []
    pending: list[Value] = list(reversed(row))
    while pending:
        match pending.pop():
            case None:
                key.append(0)
            case tuple() as items:
                key.append(1)
                # 1 before each item and 0 at the end put a list before its continuations.
                pending.append(0)
                for item in reversed(items):
                    pending += (item, 1)
            case Variant(branch, args):
                key.append(branch)
                pending.append(args)
            case float() as number if isnan(number):
                key += (1, 0.0)
            case float() as number:
                key += (0, number)
            case primitive:
                key.append(primitive)
    return tuple(key)
