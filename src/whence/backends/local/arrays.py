"""The arrays that batches are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Lines = NDArray[np.int64]  # two-dimensional: a line is a row or a key
Ids = NDArray[np.int32]  # row numbers


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
