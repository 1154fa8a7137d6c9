"""The order of rows in an output: by value, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whence.lang.compare import order_key
from whence.lang.types import FLOAT, Kind, Primitive, Tuple


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
        in_order.sort(key=order_key)
    return in_order
