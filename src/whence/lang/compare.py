"""The order of values of one kind.

Numbers go by size (nan last), symbols by code point, nil before everything, records and lists item by item, branches by
name and then by their arguments.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from math import isnan

from whence.lang.types import Tuple, Value, Variant


class _Nothing:
    """What `nil` is to an order: before everything."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return other is not self

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False

    def __ge__(self, other: object) -> bool:
        return other is self


_NIL = _Nothing()

# Two keys agree in length and in the type at each position up to where they first differ, but for nil.
_Part = int | float | str | date | Decimal | _Nothing
Key = tuple[_Part, ...]


def order_key(row: Tuple) -> Key:
    """The row flattened, so that comparing two keys nests no deeper than comparing two lists of numbers."""
    key: list[_Part] = []
    pending: list[Value] = list(reversed(row))
    while pending:
        match pending.pop():
            case None:
                key.append(_NIL)
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
