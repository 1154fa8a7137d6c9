"""Calling registered Python functions: what they return is checked against what the program expects of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral

from whence.lang.deep import compounded
from whence.lang.fit import fits
from whence.lang.functors import to_signed, to_unsigned
from whence.lang.sizes import check_structure, check_text
from whence.lang.types import FLOAT, NUMBER, UNSIGNED, Kind, Types, Value, base


class FunctionError(Exception):
    """A registered Python function failed, or returned something that its declaration rules out."""


def checked_call(
    name: str, function: Callable[..., object], values: Sequence[Value], kind: Kind, types: Types
) -> Value:
    """The function's value as a value of the kind. Raises `FunctionError`, and `TooLarge` if it is."""
    try:
        result = function(*values)
    except Exception as error:
        raise FunctionError(f"{_shown(name, values)} raised {type(error).__name__}: {error}") from error
    if base(kind) in (NUMBER, UNSIGNED) and isinstance(result, Integral):
        result = to_signed(int(result)) if base(kind) == NUMBER else to_unsigned(int(result))
        if kind in (NUMBER, UNSIGNED):
            return result
    if fits(result, kind, types):
        if isinstance(result, str):
            check_text(len(result))
        if base(kind) == FLOAT and result is not None:
            return float(result) + 0.0  # type: ignore[arg-type]
        return check_structure(compounded(result))  # type: ignore[arg-type]
    raise FunctionError(f"{_shown(name, values)} returned {result!r}, which is not of type {kind}")


def _shown(name: str, values: Sequence[Value]) -> str:
    return f"{name}({', '.join(repr(value) for value in values)})"
