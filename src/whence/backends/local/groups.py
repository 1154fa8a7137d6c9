"""Aggregating groups of rows: all values of a group at once, as the language defines each aggregate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Ids
from whence.backends.local.words import Dictionary, Words
from whence.lang.aggregates import combine
from whence.lang.functors import Undefined
from whence.lang.types import NUMBER, SYMBOL, UNSIGNED, Value
from whence.plan.extract_aggregates import AggregateSpec


def aggregate_groups(
    spec: AggregateSpec, groups: Ids, values: Words | None, count: int, dictionary: Dictionary
) -> tuple[Words, NDArray[np.bool_]]:
    """For each of `count` groups its aggregate, and whether it has one. `groups` says which group each value is in, in order."""
    op, value_kind, kind = spec.op, spec.value_kind, spec.kind
    sizes = np.bincount(groups, minlength=count)
    if values is None or value_kind is None:
        return dictionary.encode_column(sizes.tolist(), kind), np.ones(count, dtype=np.bool_)
    defined = np.ones(count, dtype=np.bool_) if op == "sum" else sizes > 0
    if value_kind == NUMBER and op in ("sum", "min", "max"):
        return _reduce(op, values, sizes), defined
    if value_kind == UNSIGNED and op in ("sum", "min", "max"):
        return _reduce(op, values.view(np.uint64), sizes).view(np.int64), defined
    decoded = dictionary.decode_column(values, value_kind)
    ends = np.cumsum(sizes).tolist()
    placeholder: Value = "" if kind == SYMBOL else 0.0
    results: list[Value] = []
    for group, (end, size) in enumerate(zip(ends, sizes.tolist(), strict=True)):
        try:
            result = combine(op, decoded[end - size : end], kind)
        except Undefined:
            result = None
        defined[group] = result is not None
        results.append(placeholder if result is None else result)
    return dictionary.encode_column(results, kind), defined


def _reduce(op: str, values: NDArray[np.int64] | NDArray[np.uint64], sizes: NDArray[np.intp]) -> Words:
    """Groups are runs of the values; an empty one gives zero."""
    result = np.zeros(len(sizes), dtype=values.dtype)
    filled = np.flatnonzero(sizes)
    if len(filled):
        starts = (np.cumsum(sizes) - sizes)[filled]
        ufunc = {"sum": np.add, "min": np.minimum, "max": np.maximum}[op]
        result[filled] = ufunc.reduceat(values, starts)
    return result  # type: ignore[return-value]
