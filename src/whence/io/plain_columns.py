"""Rows by column, as far as they are plain: numbers as words, texts by their places in a list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of texts: the place of each in `values`, which holds each text once. Columns may share a list."""

    places: NDArray[np.int32]
    values: list[str]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A column of words as it was found: in pieces, one behind the other. Putting them together is left to who needs it so."""

    pieces: tuple[Words, ...]

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def whole(self) -> Words:
        return np.concatenate(self.pieces)


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """Rows by column, numbers as words; a row may be there more than once."""

    columns: tuple[Words | Coded | Pieces, ...]

    def __len__(self) -> int:
        first = self.columns[0]
        return len(first.places if isinstance(first, Coded) else first)

    def whole(self, at: int) -> Words | Coded:
        """A column in one piece."""
        column = self.columns[at]
        return column.whole() if isinstance(column, Pieces) else column


def numbered_lines(lines: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each line once, in the order of their first; and those that come again, each with the number of the copy behind it."""
    again = repetitions(lines)
    if not len(again):
        return lines, np.empty((0, lines.shape[1] + 1), dtype=np.int64)
    keep = np.ones(len(lines), dtype=np.bool_)
    keep[again[:, 0]] = False
    return lines[keep], np.column_stack([lines[again[:, 0]], again[:, 2]])


def repetitions(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lines that are there before: the place of each, that of the first that is equal, and the number of the copy."""
    none = np.empty((0, 3), dtype=np.int64)
    if len(lines) < 2:
        return none
    if not lines.shape[1]:
        later = np.arange(1, len(lines))
        return np.column_stack([later, np.zeros_like(later), later + 1])
    # Lines of which no other has the same digest are there once: only the rest is compared.
    digests = _digests(lines)
    ordered = np.sort(digests)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return none
    doubtful = np.flatnonzero(np.isin(digests, twice))
    seen = lines[doubtful]
    order = np.lexsort((doubtful, *(seen[:, at] for at in range(lines.shape[1]))))
    seen, places = seen[order], doubtful[order]
    begins = np.ones(len(seen), dtype=np.bool_)
    begins[1:] = (seen[1:] != seen[:-1]).any(axis=1)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(seen)), 0))
    number = np.arange(len(seen)) - first + 1
    return np.column_stack([places, places[first], number])[~begins]


def _digests(lines: NDArray[np.int64]) -> NDArray[np.uint64]:
    digests = np.zeros(len(lines), dtype=np.uint64)
    for at in range(lines.shape[1]):
        digests ^= lines[:, at].view(np.uint64) if lines[:, at].flags.c_contiguous else lines[:, at].astype(np.uint64)
        digests *= np.uint64(0x9E3779B97F4A7C15)  # odd, so that nothing is lost
        digests ^= digests >> np.uint64(29)
    return digests
