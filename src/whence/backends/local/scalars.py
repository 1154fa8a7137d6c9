"""Functors of decimals, dates and timestamps on columns of words, in NumPy; what has no quick way here is None.

All of them are whole numbers: units of decimals, days, microseconds. What is computed is exactly what the language's
definition gives, value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.words import Words
from whence.lang.types import DATE, NUMBER, TIMESTAMP, DecimalKind, Kind

Mask = NDArray[np.bool_]
_DAY = 24 * 3600 * 10**6
# Up to here, every whole number is a float, and the quotient of two is rounded once.
_EXACT = 2**53


class Result(NamedTuple):
    """`defined` is None if all lines have a value; otherwise `reason` says why one has none."""

    words: Words
    defined: Mask | None = None
    reason: str = ""


Way = Callable[[Sequence[Words], Sequence[Kind], Kind], Result | None]


def digits_checked(units: Words, is_far: Mask | None, kind: DecimalKind) -> Result:
    """The units, but for those that are too many for the kind, or may have wrapped around."""
    undefined = np.abs(units) >= 10**kind.precision
    if is_far is not None:
        undefined |= is_far
    reason = f"the result has too many digits for {kind}"
    return Result(units, ~undefined, reason) if undefined.any() else Result(units)


def product(left: Words, right: Words) -> tuple[Words, Mask | None]:
    """The units of products, and which of them may have wrapped around: all of those are too large anyway."""
    return left * right, np.abs(left.astype(np.float64) * right.astype(np.float64)) > 2.0**62


def _scale(kind: Kind) -> int | None:
    """How many digits behind the point a number has."""
    return kind.scale if isinstance(kind, DecimalKind) else 0 if kind == NUMBER else None


def _as_decimal(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
    """Rounded, half a unit away from zero."""
    scale = _scale(kinds[0])
    if scale is None or not isinstance(kind, DecimalKind):
        return None
    value = columns[0]
    if scale <= kind.scale:
        factor = np.full(len(value), 10 ** (kind.scale - scale), dtype=np.int64)
        return digits_checked(*product(value, factor), kind)
    size = 10 ** (scale - kind.scale)
    return digits_checked(np.sign(value) * ((np.abs(value) + size // 2) // size), None, kind)


def _whole(up: int) -> Way:
    """`floor`, or with -1 `ceil`."""

    def whole(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
        del kind
        if not isinstance(kinds[0], DecimalKind):
            return None
        return Result(up * ((up * columns[0]) // 10 ** kinds[0].scale))

    return whole


def _compare(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
    """Without making both of one scale, for which 64 bits may be too few."""
    del kind
    left, right = (_scale(each) for each in kinds)
    if left is None or right is None:
        return None
    if left > right:
        return Result(-_compared(columns[1], columns[0], 10 ** (left - right)))
    return Result(_compared(columns[0], columns[1], 10 ** (right - left)))


def _compared(coarse: Words, fine: Words, size: int) -> Words:
    whole = fine // size
    rest = fine - whole * size
    return np.where(coarse == whole, -(rest > 0).astype(np.int64), np.where(coarse < whole, -1, 1)).astype(np.int64)


def _remainder(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
    del kind
    if not isinstance(kinds[0], DecimalKind):
        return None
    left, right = columns
    is_zero = right == 0
    rest = np.fmod(left, np.where(is_zero, 1, right))
    return Result(rest, ~is_zero, "division by zero") if is_zero.any() else Result(rest)


def _to_float(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
    del kind
    if not isinstance(kinds[0], DecimalKind) or (np.abs(columns[0]) > _EXACT).any():
        return None
    return Result((columns[0] / np.float64(10 ** kinds[0].scale)).view(np.int64))


def _quotient(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
    del kind
    left, right = kinds
    if not isinstance(left, DecimalKind) or not isinstance(right, DecimalKind) or left.scale != right.scale:
        return None
    if any((np.abs(column) > _EXACT).any() for column in columns):
        return None
    is_zero = columns[1] == 0
    ratio = (columns[0] / np.where(is_zero, 1, columns[1]) + 0.0).view(np.int64)
    return Result(ratio, ~is_zero, "division by zero") if is_zero.any() else Result(ratio)


def _to_timestamp(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
    del kind
    return Result(columns[0] * _DAY) if kinds[0] == DATE else None


def _to_date(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
    del kind
    return Result(columns[0] // _DAY) if kinds[0] == TIMESTAMP else None


def _part(of_days: Callable[[Words], Words]) -> Way:
    def part(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
        del kind
        return Result(of_days(columns[0] if kinds[0] == DATE else columns[0] // _DAY))

    return part


def _time(size: int, count: int) -> Way:
    def time(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
        del kind
        return Result(columns[0] // size % count if kinds[0] == TIMESTAMP else np.zeros_like(columns[0]))

    return time


def _months(days: Words) -> Words:
    """Since 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _day_of_month(days: Words) -> Words:
    starts = _months(days).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return days - starts + 1


def _days_between(columns: Sequence[Words], kinds: Sequence[Kind], kind: Kind) -> Result | None:
    del kind
    start, end = (column if kinds[0] == DATE else column // _DAY for column in columns)
    return Result(end - start)


WAYS: Mapping[str, Way] = {
    "as": _as_decimal,
    "floor": _whole(1),
    "ceil": _whole(-1),
    "compare": _compare,
    "%": _remainder,
    "/": _quotient,
    "to_float": _to_float,
    "to_timestamp": _to_timestamp,
    "to_date": _to_date,
    "year": _part(lambda days: _months(days) // 12 + 1970),
    "month": _part(lambda days: _months(days) % 12 + 1),
    "day": _part(_day_of_month),
    "hour": _time(3600 * 10**6, 24),
    "minute": _time(60 * 10**6, 60),
    "second": _time(10**6, 60),
    "days_between": _days_between,
}
