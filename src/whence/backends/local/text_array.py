"""Texts by number, many at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whence.lang.types import Value


class TextArray:
    """An array that follows a list of texts, which is longer whenever it is asked for.

    To take many texts out of an array takes half the time that a list does. There is none before somebody wants that.
    """

    def __init__(self, listed: list[str | None]) -> None:
        self._listed = listed
        self._array: NDArray[np.object_] = np.empty(0, dtype=np.object_)
        self._known = 0  # so many of the list are in it

    def take(self, numbers: NDArray[np.int64]) -> list[Value]:
        known, wanted = self._known, len(self._listed)
        if len(self._array) < wanted:
            larger = np.empty(wanted + wanted // 2, dtype=np.object_)
            larger[:known] = self._array[:known]
            self._array = larger
        if known < wanted:
            self._array[known:wanted] = self._listed[known:]
            self._known = wanted
        found: list[Value] = self._array[numbers].tolist()
        return found

    def change(self, number: int) -> None:
        """The list has another text in this place."""
        if number < self._known:
            self._array[number] = self._listed[number]

    @property
    def nbytes(self) -> int:
        return self._array.nbytes
