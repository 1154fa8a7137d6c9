"""The kinds of values by name: which kind holds the values of two others, and what comes of computing with them.

What is computed of decimals has 18 digits, whatever its operands have; only columns and casts have fewer.
"""

from __future__ import annotations

from collections.abc import Sequence

from whence.lang.declare import decimal_of
from whence.lang.types import MOST_DIGITS, decimal_kind

# An integer literal: it takes the kind of what it meets, or else it is a number.
INTEGER = "integer"
WHOLE = frozenset({INTEGER, "number", "unsigned"})
NUMERIC = WHOLE | {"float"}
MOMENTS = frozenset({"date", "timestamp"})


def decimal(scale: int) -> str:
    return str(decimal_kind(MOST_DIGITS, min(scale, MOST_DIGITS)))


def is_decimal(kind: str | None) -> bool:
    return kind is not None and kind.startswith("decimal(")


def scale_of(kind: str | None) -> int | None:
    """The digits behind the point of an exact number; None for every other kind."""
    known = decimal_of(kind) if kind is not None else None
    return known.scale if known is not None else 0 if kind in WHOLE else None


def is_number(kind: str | None) -> bool:
    return kind in NUMERIC or is_decimal(kind)


def join(left: str | None, right: str | None) -> str | None:
    """The kind that holds both; where there is none, the first: the checks of the program report the conflict.

    >>> join("decimal(15,2)", "number"), join("decimal(15,2)", "float"), join("date", "timestamp")
    ('decimal(18,2)', 'float', 'timestamp')
    """
    if left is None or left == right:
        return right
    if right is None:
        return left
    if is_number(left) and is_number(right):
        return _number(left, right)
    if {left, right} == MOMENTS:
        return "timestamp"
    # A text literal is what it meets.
    if left == "symbol" and (right in MOMENTS or is_decimal(right)):
        return right
    return left


def _number(left: str, right: str) -> str:
    if "float" in (left, right):
        return "float"
    scales = scale_of(left), scale_of(right)
    if is_decimal(left) or is_decimal(right):
        return decimal(max(scale or 0 for scale in scales))
    return right if left == INTEGER else left


def of_operation(name: str, kinds: Sequence[str | None]) -> str | None:
    """The kind of what an operator or a functor of numbers and moments gives."""
    both: str | None = None
    for kind in kinds:
        both = join(both, kind)
    scales = [scale_of(kind) for kind in kinds]
    if name in ("floor", "ceil"):
        return decimal(0) if is_decimal(both) else "float"
    if name in ("+", "-") and "date" in kinds:
        if name == "-" and list(kinds) == ["date", "date"]:
            return "number"
        return "date" if any(kind in WHOLE for kind in kinds) else both
    if not is_decimal(both) or len(kinds) == 1:
        return both
    if name == "/":
        return "float"
    if name == "*":
        return decimal(sum(scale or 0 for scale in scales))
    return decimal(max(scale or 0 for scale in scales)) if name in ("+", "-") else both


def widened(kind: str | None) -> str | None:
    """A kind for sums: with all digits that there can be."""
    scale = scale_of(kind)
    return decimal(scale) if is_decimal(kind) and scale is not None else kind
