"""The aggregates: their meaning on Python values."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from whence.lang.compare import order_key
from whence.lang.deep import compound
from whence.lang.functors import to_signed, to_unsigned
from whence.lang.scalars import of_whole, to_whole
from whence.lang.types import FLOAT, NUMBER, DecimalKind, Kind, Value
from whence.lang.undefined import Undefined

AGGREGATES = ("count", "sum", "min", "max", "mean", "collect")


def combine(op: str, values: list[Value], kind: Kind) -> Value:
    """The aggregate of values; of nothing, all but `count` and `sum` are None. Nothing depends on the order of the values."""
    numbers: list[int | float] = values  # type: ignore[assignment]
    match op:
        case "count":
            return float(len(numbers)) if kind == FLOAT else len(numbers)
        case "sum" if isinstance(kind, DecimalKind):
            return _decimal_sum(values, kind)
        case "mean" if values and isinstance(values[0], Decimal):
            return float(sum(map(Fraction, values)) / len(values))  # type: ignore[arg-type]
        case "sum" if kind == FLOAT:
            return _float_sum(numbers, 1)
        case "sum":
            return to_signed(sum(numbers)) if kind == NUMBER else to_unsigned(sum(numbers))  # type: ignore[arg-type]
        case "min" | "max":
            return (min if op == "min" else max)(numbers, default=None)
        case "mean":
            return _float_sum(numbers, len(numbers)) if numbers else None
        case "collect":
            return compound(sorted(values, key=lambda value: order_key((value,)))) if values else None
        case _:
            raise AssertionError(op)


def _decimal_sum(values: list[Value], kind: DecimalKind) -> Value:
    units = sum(map(to_whole(kind), values))
    if abs(units) >= 10**kind.precision:
        raise Undefined(f"the sum has too many digits for {kind}")
    return of_whole(kind)(units)


def _float_sum(numbers: list[int | float], share: int) -> float:
    """The exact sum, divided and rounded."""
    infinite = {number for number in numbers if math.isinf(number)}
    if len(infinite) > 1:
        raise Undefined("the sum of inf and -inf is not a number")
    if infinite:
        return infinite.pop()
    try:
        return math.fsum(numbers) / share
    except OverflowError:  # on the way, or at the end
        return math.fsum(number * 2.0**-64 for number in numbers) / share * 2.0**64
