"""Functors on columns of words: arithmetic in NumPy, everything else value by value through the language's definition.

Where a functor has no value, its result says for which lines, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.scalars import WAYS, Mask, Result, digits_checked, product
from whence.backends.local.words import Dictionary, Words, nil_word
from whence.engine.protocol import Watch
from whence.lang.functors import implementation, matches
from whence.lang.scalars import of_whole
from whence.lang.types import (
    FLOAT,
    NUMBER,
    SYMBOL,
    UNSIGNED,
    DecimalKind,
    Kind,
    ListKind,
    Nullable,
    Value,
    base,
    is_whole,
    may_be_nil,
)
from whence.lang.undefined import Undefined

# So many values between two looks at the time.
FEW = 256
# From so many lines on it pays to look for those that ask for the same.
SOME = 16


_DIRECT: Mapping[str, Callable[..., NDArray[np.int64]]] = {
    "+": np.add,
    "*": np.multiply,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
    "bnot": np.invert,
    "land": lambda left, right: ((left != 0) & (right != 0)).astype(np.int64),
    "lor": lambda left, right: ((left != 0) | (right != 0)).astype(np.int64),
    "lxor": lambda left, right: ((left != 0) != (right != 0)).astype(np.int64),
    "lnot": lambda value: (value == 0).astype(np.int64),
}
_REAL: Mapping[str, Callable[..., NDArray[np.float64]]] = {"+": np.add, "*": np.multiply}


def apply_functor(
    functor: str,
    columns: Sequence[Words],
    arg_kinds: Sequence[Kind],
    kind: Kind,
    dictionary: Dictionary,
    *,
    watch: Watch,
) -> Result:
    if functor == "constant":
        return Result(columns[0])
    if functor == "coalesce":
        return Result(_first_present(columns, arg_kinds))
    if kind in (NUMBER, UNSIGNED) and all(each == kind for each in arg_kinds):
        if functor in _DIRECT:
            return Result(_DIRECT[functor](*columns))
        if functor == "-":
            return Result(-columns[0] if len(columns) == 1 else columns[0] - columns[1])
    if is_whole(kind) and functor in ("min", "max"):
        return Result(_fold(np.minimum if functor == "min" else np.maximum, columns))
    if isinstance(kind, DecimalKind) and functor in _OF_DECIMALS and isinstance(arg_kinds[0], DecimalKind):
        return digits_checked(*_OF_DECIMALS[functor](*columns), kind)
    if functor in WAYS and (found := WAYS[functor](columns, arg_kinds, kind)) is not None:
        return found
    if kind == FLOAT and all(each == FLOAT for each in arg_kinds):
        reals = [np.ascontiguousarray(column).view(np.float64) for column in columns]
        if functor in _REAL:
            return _defined(_REAL[functor](*reals))
        if functor == "-":
            return _defined(-reals[0] if len(reals) == 1 else reals[0] - reals[1])
        if functor in ("min", "max"):
            return _defined(_fold(np.minimum if functor == "min" else np.maximum, reals))
    function = implementation(functor, base(arg_kinds[0]) if arg_kinds else None, base(kind))
    return apply_function(function, columns, arg_kinds, kind, dictionary, watch=watch)


# Sums and differences of two decimals always fit 64 bits.
_OF_DECIMALS: Mapping[str, Callable[..., tuple[Words, Mask | None]]] = {
    "+": lambda left, right: (left + right, None),
    "-": lambda left, right=None: (-left if right is None else left - right, None),
    "*": product,
}


def placeholder_of(kind: Kind) -> Value:
    """A value that stands where there is none."""
    if may_be_nil(kind):
        return None
    if isinstance(kind, ListKind):
        return ()
    return of_whole(kind)(0) if is_whole(kind) else 0 if kind == UNSIGNED else 0.0 if kind == FLOAT else ""


def _first_present(columns: Sequence[Words], kinds: Sequence[Kind]) -> Words:
    result = columns[-1]
    for column, kind in zip(columns[-2::-1], kinds[-2::-1], strict=True):
        result = np.where(column == nil_word(kind), result, column) if isinstance(kind, Nullable) else column
    return result


def _fold(combine: Callable[..., NDArray], columns: Sequence[NDArray]) -> NDArray:  # type: ignore[type-arg]
    result = columns[0]
    for column in columns[1:]:
        result = combine(result, column)
    return result


def _defined(reals: NDArray[np.float64]) -> Result:
    undefined = np.isnan(reals)
    words = (reals + 0.0).view(np.int64)
    return Result(words, ~undefined, "the result is not a number") if undefined.any() else Result(words)


def apply_function(
    function: Callable[..., Value],
    columns: Sequence[Words],
    arg_kinds: Sequence[Kind],
    kind: Kind,
    dictionary: Dictionary,
    *,
    watch: Watch,
) -> Result:
    """A function of values applied line by line; where it raises `Undefined` there is no result."""
    if len(columns) == 1 and len(columns[0]) >= SOME:
        distinct, places = np.unique(columns[0], return_inverse=True)
        if len(distinct) < len(places):
            found = apply_function(function, [distinct], arg_kinds, kind, dictionary, watch=watch)
            defined = None if found.defined is None else found.defined[places]
            return Result(found.words[places], defined, found.reason)
    decoded = [dictionary.decode_column(column, each) for column, each in zip(columns, arg_kinds, strict=True)]
    values: list[Value] = []
    is_defined = np.ones(len(columns[0]) if columns else 1, dtype=np.bool_)
    reason = ""
    placeholder = placeholder_of(kind)
    for at, args in enumerate(zip(*decoded, strict=True)):
        if at % FEW == 0:
            watch.look()
        try:
            values.append(function(*args))
        except Undefined as why:
            is_defined[at] = False
            reason = str(why)
            values.append(placeholder)
    return Result(dictionary.encode_column(values, kind), is_defined if reason else None, reason)


def compare(
    op: str, left: Words, right: Words, kind: Kind, dictionary: Dictionary, *, watch: Watch
) -> tuple[Mask, str]:
    """Which lines satisfy a comparison; and, if one of them asks for something undefined, why it does not."""
    if op == "=":
        return np.equal(left, right), ""
    if op == "!=":
        return np.not_equal(left, right), ""
    if kind in _VIEWS or is_whole(kind):
        view = _VIEWS.get(kind, np.int64)
        return _ORDER[op](np.ascontiguousarray(left).view(view), np.ascontiguousarray(right).view(view)), ""
    assert kind == SYMBOL
    mask, reason = np.zeros(len(left), dtype=np.bool_), ""
    test = _TEXT[op]
    pairs = zip(dictionary.decode_column(left, kind), dictionary.decode_column(right, kind), strict=True)
    for at, (one, other) in enumerate(pairs):
        if at % FEW == 0:
            watch.look()
        try:
            mask[at] = test(str(one), str(other), watch)
        except Undefined as why:
            reason = str(why)
    return mask, reason


_VIEWS: Mapping[Kind, type[np.generic]] = {NUMBER: np.int64, UNSIGNED: np.uint64, FLOAT: np.float64}
_ORDER: Mapping[str, Callable[..., Mask]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _matches(pattern: str, text: str, watch: Watch) -> bool:
    try:
        return matches(pattern, text, watch.seconds_left())
    except TimeoutError:
        watch.look()
        raise


_TEXT: Mapping[str, Callable[[str, str, Watch], bool]] = {
    "<": lambda left, right, _: left < right,
    "<=": lambda left, right, _: left <= right,
    ">": lambda left, right, _: left > right,
    ">=": lambda left, right, _: left >= right,
    "match": _matches,
    "!match": lambda pattern, text, watch: not _matches(pattern, text, watch),
    "contains": lambda part, text, _: part in text,
    "!contains": lambda part, text, _: part not in text,
}
