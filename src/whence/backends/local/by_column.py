"""Rows that come by column, as Parquet has them, and go into a table without being put together first.

Memory that is touched for the first time costs more than anything that is done with it: columns are read where they are, and
written where the table has its lines. Rows that are there twice are looked for in a filter of a few bits a row; only those that
the filter cannot tell apart are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import parallel
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.hashing import COLUMNS, LINES, STEP, WIDTH
from whence.backends.local.kernels import OWN_HALVES, write_state
from whence.backends.local.memory import address_of, compiled, halves_at, kernel, prefetch, words_at
from whence.io.plain_columns import Pieces, repetitions

Words = NDArray[np.int64]

BLOCK = 1024  # so many rows are written column by column: they stay in the nearest cache
BITS_PER_ROW = 24  # of the filter, at least; it takes a few percent of the rows for doubtful
AGAIN = 1 << 24  # bits of the second filter, which stays in a cache


class Listed(NamedTuple):
    """A column whose words are in a list: their places in it."""

    places: Ids
    words: Words


class _Part(NamedTuple):
    """Rows whose columns are in one piece each, from the row `first` on. `sources` tells loops where they are: the address of a
    column's words, or of its places and of the list."""

    first: int
    size: int
    columns: list[Words | Listed]
    sources: Words


class Columns:
    """Rows by column. A column may be in pieces, as Arrow has them; those of several may end at different rows."""

    def __init__(self, columns: Sequence[Words | Listed | Pieces]) -> None:
        self.arity = len(columns)
        ends = {0}
        for each in columns:
            sizes = map(len, each.pieces if isinstance(each, Pieces) else [_places(each)])
            ends.update(accumulate(sizes))
        cuts = sorted(ends)
        found = [_cut(each, cuts) for each in columns]
        self.parts = [
            _part(first, last - first, [column[at] for column in found])
            for at, (first, last) in enumerate(pairwise(cuts))
        ]
        self._size = cuts[-1]

    def __len__(self) -> int:
        return self._size

    def lines(self, rows: Ids | None = None) -> Lines:
        """Some of the rows, in order, or all of them, put together."""
        found: Lines = np.empty((len(self) if rows is None else len(rows), self.arity), dtype=np.int64)
        for part in self.parts:
            chosen: Ids | slice = slice(None)
            begin, end = part.first, part.first + part.size
            if rows is not None:
                begin, end = np.searchsorted(rows, (begin, end)).tolist()
                chosen = rows[begin:end] - np.int32(part.first)
            for at, each in enumerate(part.columns):
                found[begin:end, at] = each.words[each.places[chosen]] if isinstance(each, Listed) else each[chosen]
        return found

    def fit_halves(self) -> bool:
        """Whether all words fit 32 bits."""
        bounds = np.iinfo(np.int32)
        words = (each.words if isinstance(each, Listed) else each for part in self.parts for each in part.columns)
        return all(not len(each) or (each.min() >= bounds.min and each.max() <= bounds.max) for each in words)

    def distinct(self) -> Columns | Lines:
        """Each row once; put together only if some were there twice."""
        if len(self) < 2:
            return self
        doubtful = self._doubtful()
        if not len(doubtful):
            return self
        again = repetitions(self.lines(doubtful))[:, 0]
        if not len(again):
            return self
        keep = np.ones(len(self), dtype=np.bool_)
        keep[doubtful[again]] = False
        return self.lines(np.flatnonzero(keep).astype(np.int32))

    def _doubtful(self) -> Ids:
        """The rows of which there may be others with the same words, in order."""
        spans = self._spans()
        threads, bits = len(spans), 64
        while bits < BITS_PER_ROW * len(self) // threads:
            bits *= 2
        seen = np.zeros((threads, bits // 64), dtype=np.int64)
        marks = np.zeros((threads, AGAIN // 64), dtype=np.int64)

        def mark(at: int) -> int:
            return sum([mark_rows(part.sources, part.size, at, threads, seen[at], marks[at]) for part in self.parts])

        if not any(parallel.run([partial(mark, at) for at in range(threads)])):
            return np.empty(0, dtype=np.int32)
        again = np.bitwise_or.reduce(marks)

        def choose(span: list[tuple[_Part, int, int]]) -> Ids:
            found: list[Ids] = []
            for part, begin, end in span:
                chosen: Ids = np.empty(end - begin, dtype=np.int32)
                found.append(chosen[: choose_marked(part.sources, begin, again, chosen)] + np.int32(part.first))
            return np.concatenate(found)

        return np.concatenate(parallel.run([partial(choose, span) for span in spans]))

    def append_to(self, address: int, first: int) -> None:
        """Writes the rows into the lines of a table from the first on: there must be room, and columns wide enough."""

        def write(span: list[tuple[_Part, int, int]]) -> None:
            for part, begin, end in span:
                write_columns(address, part.sources, first + part.first, begin, end)

        parallel.run([partial(write, span) for span in self._spans()])

    def _spans(self) -> list[list[tuple[_Part, int, int]]]:
        """The rows for each of the threads that share them: parts, and from where to where in each."""
        threads = parallel.threads(len(self))
        ends = [len(self) * at // threads for at in range(threads + 1)]
        return [
            [
                (part, max(begin - part.first, 0), min(end - part.first, part.size))
                for part in self.parts
                if begin < part.first + part.size and part.first < end
            ]
            for begin, end in pairwise(ends)
        ]


def _places(column: Words | Listed) -> Words | Ids:
    return column.places if isinstance(column, Listed) else column


def _cut(column: Words | Listed | Pieces, cuts: list[int]) -> list[Words | Listed]:
    """A column in more pieces: they end at the cuts, among which are the ends of those that it is in."""
    if isinstance(column, Listed):
        places = np.ascontiguousarray(column.places, dtype=np.int32)
        words = np.ascontiguousarray(column.words)
        return [Listed(places[first:last], words) for first, last in pairwise(cuts)]
    found: list[Words | Listed] = []
    begin, pieces = 0, iter(column.pieces if isinstance(column, Pieces) else (column,))
    piece: Words = np.empty(0, dtype=np.int64)
    for first, last in pairwise(cuts):
        while first >= begin + len(piece):
            begin += len(piece)
            piece = np.ascontiguousarray(next(pieces))
        found.append(piece[first - begin : last - begin])
    return found


def _part(first: int, size: int, columns: list[Words | Listed]) -> _Part:
    sources: Words = np.zeros(2 * len(columns), dtype=np.int64)
    for at, each in enumerate(columns):
        sources[2 * at] = address_of(_places(each))
        if isinstance(each, Listed):
            sources[2 * at + 1] = address_of(each.words)
    return _Part(first, size, columns, sources)


# Loops over a block of one column are short and plain, so that the compiler makes the most of them.


@compiled
def digest_block(sources: Any, start: int, size: int, digests: Any) -> None:
    """A number of 64 bits for each row of a block."""
    for at in range(size):
        digests[at] = np.uint64(0x2545F4914F6CDD1D)
    for column in range(0, len(sources), 2):
        if sources[column + 1]:
            places, listed = halves_at(sources[column]), words_at(sources[column + 1])
            for at in range(size):
                mixed = (digests[at] ^ np.uint64(listed[places[start + at]])) * np.uint64(0x9E3779B97F4A7C15)
                digests[at] = mixed ^ (mixed >> np.uint64(29))
        else:
            words = words_at(sources[column])
            for at in range(size):
                mixed = (digests[at] ^ np.uint64(words[start + at])) * np.uint64(0x9E3779B97F4A7C15)
                digests[at] = mixed ^ (mixed >> np.uint64(29))
    for at in range(size):
        digests[at] *= np.uint64(0xD6E8FEB86659FD93)


@kernel("words int int int words words")
def mark_rows(sources: Any, count: int, thread: int, threads: int, seen: Any, again: Any) -> int:
    """Sets a bit of `seen` for each row, and one of `again` where it was set before; how many those were.

    Threads share the work: each takes the rows that are its own by the first bits of their digests, and has filters of its own.
    """
    digests = np.empty(BLOCK, dtype=np.uint64)
    mask, again_mask, met = np.uint64(64 * len(seen) - 1), np.uint64(64 * len(again) - 1), 0
    seen_at = seen.ctypes.data
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        digest_block(sources, start, size, digests)
        own = size
        if threads > 1:
            own = 0
            for at in range(size):
                digest = digests[at]
                digests[own] = digest
                own += np.int64(((digest >> np.uint64(48)) * np.uint64(threads)) >> np.uint64(16)) == thread
        for at in range(own):
            prefetch(seen_at + np.int64(((digests[at] >> np.uint64(24)) & mask) >> np.uint64(6)) * 8)
        for at in range(own):
            digest = digests[at]
            place = (digest >> np.uint64(24)) & mask
            word, bit = np.int64(place >> np.uint64(6)), np.int64(1) << np.int64(place & np.uint64(63))
            if seen[word] & bit:
                met += 1
                other = digest & again_mask
                again[np.int64(other >> np.uint64(6))] |= np.int64(1) << np.int64(other & np.uint64(63))
            else:
                seen[word] |= bit
    return met


@kernel("words int words ids")
def choose_marked(sources: Any, begin: int, again: Any, chosen: Any) -> int:
    """The rows from the first on, as many as `chosen` has room for, whose bit of `again` is set."""
    digests = np.empty(BLOCK, dtype=np.uint64)
    mask, end, count = np.uint64(64 * len(again) - 1), 0, len(chosen)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        digest_block(sources, begin + start, size, digests)
        for at in range(size):
            other = digests[at] & mask
            if (again[np.int64(other >> np.uint64(6))] >> np.int64(other & np.uint64(63))) & 1:
                chosen[end] = begin + start + at
                end += 1
    return end


@kernel("int words int int int")
def write_columns(address: int, sources: Any, first: int, begin: int, end: int) -> None:
    """The rows from `begin` to `end`, each with one derivation and a line for itself."""
    table = words_at(address)
    lines, width, step, halves = halves_at(table[LINES]), table[WIDTH], table[STEP], table[COLUMNS] * table[STEP]
    block = np.empty(BLOCK, dtype=np.int64)
    for start in range(begin, end, BLOCK):
        size = min(BLOCK, end - start)
        for column in range(0, len(sources), 2):
            if sources[column + 1]:
                places, listed = halves_at(sources[column]), words_at(sources[column + 1])
                for at in range(size):
                    block[at] = listed[places[start + at]]
            else:
                words = words_at(sources[column])
                for at in range(size):
                    block[at] = words[start + at]
            half = (first + start) * width + (column >> 1) * step
            if step == 1:
                for at in range(size):
                    lines[half + at * width] = np.int32(block[at])
            else:
                for at in range(size):
                    lines[half + at * width] = np.int32(block[at])
                    lines[half + at * width + 1] = np.int32(block[at] >> 32)
        behind = (first + start) * width + halves + OWN_HALVES
        for at in range(size):
            write_state(lines, behind + at * width)
