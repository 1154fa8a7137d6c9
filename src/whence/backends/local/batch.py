"""Assignments on their way through a plan: a column for each slot."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.words import Words

UNRANKED = -1


class Batch:
    """Assignments to slots, and the highest rank among the recursive rows used so far."""

    __slots__ = ("columns", "ranks", "size")

    def __init__(self, slots: int, size: int) -> None:
        self.columns: list[Words | None] = [None] * slots
        self.size = size
        self.ranks: Ids = np.full(size, UNRANKED, dtype=np.int32)

    def resize(self, size: int) -> None:
        """For a batch that holds nothing yet."""
        self.size = size
        self.ranks = np.full(size, UNRANKED, dtype=np.int32)

    def copy(self) -> Self:
        other = type(self)(0, 0)
        other.columns, other.ranks, other.size = self.columns, self.ranks, self.size
        return other

    def keep(self, picks: NDArray[np.int32] | NDArray[np.bool_] | NDArray[np.intp]) -> None:
        """Keeps (or repeats) the assignments picked."""
        self.columns = [None if column is None else column[picks] for column in self.columns]
        self.ranks = self.ranks[picks]
        self.size = len(self.ranks)

    def note_rows(self, position: int, rows: Ids) -> None:
        """Told which rows the literal at a position was satisfied by, one for each assignment."""

    def note_absent(self, position: int, keys: Lines) -> None:
        """Told which rows the negation at a position asked for."""


class TracedBatch(Batch):
    """Also keeps which rows each assignment used and which it found absent, by position in the body."""

    __slots__ = ("absent", "rows")

    def __init__(self, slots: int, size: int) -> None:
        super().__init__(slots, size)
        self.rows: dict[int, Ids] = {}
        self.absent: dict[int, Lines] = {}

    def copy(self) -> Self:
        other = super().copy()
        other.rows, other.absent = self.rows, self.absent
        return other

    def keep(self, picks: NDArray[np.int32] | NDArray[np.bool_] | NDArray[np.intp]) -> None:
        super().keep(picks)
        self.rows = {position: rows[picks] for position, rows in self.rows.items()}
        self.absent = {position: keys[picks] for position, keys in self.absent.items()}

    def note_rows(self, position: int, rows: Ids) -> None:
        self.rows[position] = rows

    def note_absent(self, position: int, keys: Lines) -> None:
        self.absent[position] = keys
