"""The arrays that batches are made of."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Lines = NDArray[np.int64]  # two-dimensional: a line is a row or a key
Ids = NDArray[np.int32]  # row numbers
A = TypeVar("A", np.int32, np.int64)


def distinct(ids: Ids) -> Ids:
    """Each row number once, in order."""
    return _distinct(ids)


def distinct_lines(lines: Lines) -> Lines:
    """Each line once. Two columns of small words are sorted as one."""
    if len(lines) < 2 or not lines.shape[1]:
        return lines[:1]
    if lines.shape[1] == 1:
        return _distinct(lines[:, 0]).reshape(-1, 1)
    if lines.shape[1] == 2 and lines.min() >= 0 and lines.max() < 1 << 31:
        both = _distinct(lines[:, 0] << 32 | lines[:, 1])
        return np.stack((both >> 32, both & 0xFFFFFFFF), axis=1)
    order = np.lexsort(lines.T[::-1])
    ordered = lines[order]
    first = np.ones(len(lines), dtype=np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.ascontiguousarray(ordered[first])


def _distinct(values: NDArray[A]) -> NDArray[A]:
    ordered = np.sort(values)
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def without(ids: Ids, others: Ids) -> Ids:
    """Those of `ids` that are not among `others`."""
    if not len(others) or not len(ids):
        return ids
    ordered = np.sort(others)
    places = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
    kept: Ids = ids[ordered[places] != ids]
    return kept
