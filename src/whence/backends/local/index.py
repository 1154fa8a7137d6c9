"""An index of a table on some of its columns, kept under insertion and deletion."""

from __future__ import annotations

import numpy as np

from whence.backends.local import links
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.hashing import BLOCK, USED, HashedLines
from whence.backends.local.memory import Growing, address_of


class Index:
    """In the layout that `links` describes. Keys always take two halves a column."""

    def __init__(self, columns: tuple[int, ...], table: HashedLines) -> None:
        self.columns = columns
        self.keys = HashedLines(len(columns), 2, links.OWN_HALVES, links.PROJECTION - links.ARENA + len(columns))
        self.handle, self.address = self.keys.handle, self.keys.address
        self.handle[links.TABLE] = table.address
        self.handle[links.PROJECTION :] = columns
        self.arena = Growing(0, 1)
        self.place = Growing(0, 1)
        self._moved()

    def _moved(self) -> None:
        self.handle[links.ARENA], self.handle[links.ARENA_SIZE] = address_of(self.arena.array), len(self.arena.array)
        self.handle[links.PLACE], self.handle[links.PLACE_SIZE] = address_of(self.place.array), len(self.place.array)

    def link(self, ids: Ids, lines: int) -> None:
        """Puts rows in, which are below `lines`, but not those that are in already."""
        if 0 < len(self.place.array) < lines:
            self.place.grow(lines + lines // 4)
            self._moved()
        done, self.handle[links.READY] = int(self.handle[links.READY]), 0
        while (done := links.link_rows(self.address, ids, done)) < len(ids):
            self._make_room_for_keys()
            wanted = int(self.handle[links.ARENA_WANTED])
            if wanted > len(self.arena.array):
                self.arena.grow(wanted + wanted // 4)
                self._moved()
            if self.handle[links.LONGEST] > links.SHORT and not len(self.place.array):
                self.place.grow(lines + lines // 4)
                self._moved()
                links.note_places(self.address)

    def rebuild(self, ids: Ids, lines: int) -> None:
        """Links these rows, below `lines`, and no others, leaving no gaps."""
        self.keys.clear()
        self.place, self.arena = Growing(lines, 1), Growing(len(ids), 1)
        self._moved()
        done = self.handle[links.READY] = 0
        while (done := links.count_keys(self.address, ids, done)) < len(ids):
            self._make_room_for_keys()
        links.fill_blocks(self.address, ids)
        if self.handle[links.LONGEST] <= links.SHORT:
            self.place = Growing(0, 1)
            self._moved()

    def unlink(self, ids: Ids) -> None:
        links.unlink_rows(self.address, ids)

    def had_better_be_rebuilt(self, more: int) -> bool:
        """Rather than have so many rows put in: they are most of it, or most of the arena is what blocks that moved left."""
        handle = self.handle
        return bool(more > handle[links.ROWS] or handle[links.ARENA_USED] > 3 * handle[links.ROWS] + 1024)

    def probe(self, wanted: Lines, forbid: int) -> tuple[Ids, Ids]:
        """The pairs (line of `wanted`, row) with equal keys, without rows that have a forbidden flag."""
        first: Ids = np.empty(len(wanted), dtype=np.int32)
        last: Ids = np.empty(len(wanted), dtype=np.int32)
        total = links.find_blocks(self.address, wanted, first, last)
        picks: Ids = np.empty(total, dtype=np.int32)
        matches: Ids = np.empty(total, dtype=np.int32)
        end = links.expand_blocks(self.address, first, last, forbid, picks, matches)
        return picks[:end], matches[:end]

    def longest(self) -> int:
        """How many rows the key has that most rows have."""
        return int(self.keys.lines[: self.handle[USED], -links.LENGTH].max(initial=0))

    def make_room(self, more: int, lines: int) -> None:
        """For so many more rows, below `lines`."""
        if 0 < len(self.place.array) < lines:
            self.place.grow(lines)
        if len(self.arena.array) < (wanted := int(self.handle[links.ARENA_USED]) + 2 * more):
            self.arena.grow(wanted)
        self._moved()
        self._make_room_for_keys(more)

    def _make_room_for_keys(self, more: int = BLOCK) -> None:
        self.keys.make_room(int(self.handle[USED]), 0, 0, more)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.arena.array.nbytes + self.place.array.nbytes
