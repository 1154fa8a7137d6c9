"""Calling registered Python functions: what they return is checked against what the program expects of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from whence.lang.functors import to_signed, to_unsigned
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind, Value, Variant


class FunctionError(Exception):
    """A registered Python function failed, or returned something that its declaration rules out."""


def checked_call(name: str, function: Callable[..., object], values: Sequence[Value], kind: Kind) -> Value:
    """The function's value as a value of the kind. Raises `FunctionError`."""
    shown = f"{name}({', '.join(repr(value) for value in values)})"
    try:
        result = function(*values)
    except Exception as error:
        raise FunctionError(f"{shown} raised {type(error).__name__}: {error}") from error
    if kind in (NUMBER, UNSIGNED) and isinstance(result, int):
        return to_signed(result) if kind == NUMBER else to_unsigned(result)
    if kind == FLOAT and isinstance(result, int | float):
        return float(result)
    if kind == SYMBOL and isinstance(result, str):
        return result
    if kind not in (NUMBER, UNSIGNED, FLOAT, SYMBOL) and (result is None or isinstance(result, tuple | Variant)):
        return result
    raise FunctionError(f"{shown} returned {result!r}, which is no {kind}")
