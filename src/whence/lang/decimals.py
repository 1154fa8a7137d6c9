"""The functors of decimals, on Python values: exact, or without a value where a result has more digits than its kind."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from whence.lang.scalars import EXACT, rounded, text_of
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, DecimalKind, Kind, Value
from whence.lang.undefined import Undefined

_TEXT = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})")
_OPERATORS: Mapping[str, Callable[..., Decimal]] = {
    "+": EXACT.add,
    "-": lambda left, right=None: EXACT.minus(left) if right is None else EXACT.subtract(left, right),
    "*": EXACT.multiply,
}


def on_decimals(functor: str, argument: DecimalKind, result: Kind) -> Callable[..., Value] | None:
    """The function behind a functor of decimals, if they have one of their own."""
    if functor in _OPERATORS and isinstance(result, DecimalKind):
        operate, kind = _OPERATORS[functor], result
        return lambda *args: _fitting(operate(*args), kind)
    others: Mapping[str, Callable[..., Value]] = {
        "/": _divide,
        "%": _remainder,
        "floor": lambda value: Decimal(math.floor(value)),
        "ceil": lambda value: Decimal(math.ceil(value)),
        "to_number": _cut_off,
        "to_float": float,
        "to_string": lambda value: text_of(value, argument),
    }
    return others.get(functor)


def to_decimal(source: Kind, target: DecimalKind) -> Callable[..., Value] | None:
    """What `as(value, decimal(p,s))` makes of values of a kind: rounded, half a unit away from zero."""
    if source == SYMBOL:
        return lambda text: _fitting(_in_text(text), target)
    if source == FLOAT:
        return lambda value: _fitting(Decimal(repr(float(value))), target)
    if source in (NUMBER, UNSIGNED) or isinstance(source, DecimalKind):
        return lambda value: _fitting(Decimal(value), target)
    return None


def _fitting(value: Decimal, kind: DecimalKind) -> Decimal:
    near = rounded(value, kind)
    if near is None:
        raise Undefined(f"the result has too many digits for {kind}")
    return near


def _divide(left: Decimal, right: Decimal) -> float:
    if right == 0:
        raise Undefined("division by zero")
    return float(Fraction(left) / Fraction(right))


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    """What a division that cuts off leaves: it has the sign of what is divided."""
    if right == 0:
        raise Undefined("division by zero")
    return EXACT.add(EXACT.remainder(left, right), Decimal(0))  # -0 is 0


def _cut_off(value: Decimal) -> int:
    return int(value)


def _in_text(text: str) -> Decimal:
    if _TEXT.fullmatch(text.strip()) is None:
        raise Undefined(f'"{text}" is not a decimal')
    return Decimal(text.strip())
