"""The arrays that batches are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

Lines = NDArray[np.int64]  # two-dimensional: a line is a row or a key
Ids = NDArray[np.int32]  # row numbers


class Unlisted:
    """Rows of which so far only their number is known.

    Of a large first evaluation often nobody asks more, and the list takes a seventh of what the table does.
    """

    def __init__(self, size: int, ids: Callable[[], Ids]) -> None:
        self.size, self.ids = size, ids

    def __len__(self) -> int:
        return self.size


def unlisted(size: int, ids: Callable[[], Ids]) -> Ids:
    """Rows for those who count them and pass them on; who looks at them has them `listed`."""
    return cast("Ids", Unlisted(size, ids))


def listed(ids: Ids) -> Ids:
    return ids.ids() if isinstance(ids, Unlisted) else ids


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
