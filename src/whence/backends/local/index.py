"""An index of a table on some of its columns, kept under insertion and deletion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import kernels
from whence.backends.local.arrays import Ids, Lines, enlarge, hashes_of


class Index:
    def __init__(self, columns: tuple[int, ...]) -> None:
        self.columns = columns
        self.key_slots: Ids = np.full(16, kernels.EMPTY, dtype=np.int32)
        self.keys: Lines = np.empty((8, len(columns)), dtype=np.int64)
        self.begin = np.empty(8, dtype=np.int64)
        self.length: Ids = np.empty(8, dtype=np.int32)
        self.room: Ids = np.empty(8, dtype=np.int32)
        self.arena: Ids = np.empty(16, dtype=np.int32)
        self.place: Ids = np.empty(16, dtype=np.int32)
        self.state = np.zeros(2, dtype=np.int64)
        self.moves = 0  # how often the arrays have moved

    def link(self, lines: Lines, ids: Ids) -> None:
        if len(self.place) < len(lines):
            enlarge(self.place, len(lines))
        wanted = self._keys_of(lines, ids)
        hashes = hashes_of(wanted)
        done = 0
        while True:
            done = kernels.link_rows(
                self.key_slots, self.keys, self.begin, self.length, self.room, self.arena, self.place, self.state,
                wanted, hashes, ids, done,
            )  # fmt: skip
            if done == len(ids):
                return
            self._grow(len(ids) - done)

    def unlink(self, lines: Lines, ids: Ids) -> None:
        found = self._find(self._keys_of(lines, ids))[0]
        kernels.unlink_rows(found, self.begin, self.length, self.arena, self.place, ids)

    def probe(self, wanted: Lines, small: NDArray[np.int32], forbid: int) -> tuple[Ids, Ids]:
        """The pairs (line of `wanted`, row) with equal keys, without rows that have a forbidden flag."""
        found, total = self._find(wanted)
        picks: Ids = np.empty(total, dtype=np.int32)
        matches: Ids = np.empty(total, dtype=np.int32)
        end = kernels.expand_keys(found, self.begin, self.length, self.arena, small, forbid, picks, matches)
        return picks[:end], matches[:end]

    def _keys_of(self, lines: Lines, ids: Ids) -> Lines:
        wanted: Lines = np.empty((len(ids), len(self.columns)), dtype=np.int64)
        for at, column in enumerate(self.columns):
            wanted[:, at] = lines[ids, column]
        return wanted

    def _find(self, wanted: Lines) -> tuple[Ids, int]:
        found: Ids = np.empty(len(wanted), dtype=np.int32)
        total = kernels.find_keys(self.key_slots, self.keys, self.length, wanted, hashes_of(wanted), found)
        return found, total

    def _grow(self, wanted: int) -> None:
        self.moves += 1
        used = int(self.state[0])
        if used >= min(len(self.keys), (len(self.key_slots) * 5) // 8):
            keys = 2 * len(self.keys)
            for array in (self.keys, self.begin, self.length, self.room):
                enlarge(array, keys)
            self.key_slots = np.full(2 * len(self.key_slots), kernels.EMPTY, dtype=np.int32)
            kernels.rehash_keys(self.key_slots, self.keys, used)
        longest = int(self.room[:used].max()) if used else 1
        needed = int(self.state[1]) + 2 * longest + min(wanted, 1024)
        if needed > len(self.arena):
            enlarge(self.arena, max(needed, len(self.arena) * 3 // 2))

    @property
    def addresses(self) -> list[int]:
        """For the machine: the slots and the mask of a hash, the keys, and where the rows of each are."""
        arrays = (self.keys, self.begin, self.length, self.arena)
        return [self.key_slots.ctypes.data, len(self.key_slots) - 1, *(array.ctypes.data for array in arrays)]

    @property
    def nbytes(self) -> int:
        arrays = (self.key_slots, self.keys, self.begin, self.length, self.room, self.arena, self.place)
        return sum(array.nbytes for array in arrays)
