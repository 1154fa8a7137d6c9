"""Arrays that grow."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import kernels

Lines = NDArray[np.int64]  # two-dimensional: a line is a row or a key
Ids = NDArray[np.int32]  # row numbers
A = TypeVar("A", bound=np.generic)


def enlarged(array: NDArray[A], capacity: int) -> NDArray[A]:
    """A copy with room for more lines; what is beyond the old ones is not set."""
    result = np.empty((capacity, *array.shape[1:]), dtype=array.dtype)
    result[: len(array)] = array
    return result


def hashes_of(keys: Lines) -> Ids:
    hashes: Ids = np.empty(len(keys), dtype=np.int32)
    kernels.hash_lines(keys, hashes)
    return hashes
