"""Arrays that grow."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import kernels

Lines = NDArray[np.int64]  # two-dimensional: a line is a row or a key
Ids = NDArray[np.int32]  # row numbers
A = TypeVar("A", bound=np.generic)


def enlarge(array: NDArray[A], capacity: int) -> None:
    """Makes room for more lines in place: the system moves large arrays without copying them.

    No view of the array may be in use.
    """
    array.resize((capacity, *array.shape[1:]), refcheck=False)


def hashes_of(keys: Lines) -> Ids:
    hashes: Ids = np.empty(len(keys), dtype=np.int32)
    kernels.hash_lines(keys, hashes)
    return hashes


def distinct(ids: Ids) -> Ids:
    """Each row number once, in order."""
    ordered = np.sort(ids)
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
