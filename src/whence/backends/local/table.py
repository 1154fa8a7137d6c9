"""A relation in memory: rows of 64-bit words, found by value, counted, flagged, and indexed as the plans ask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import kernels
from whence.backends.local.arrays import Ids, Lines, enlarge, hashes_of
from whence.backends.local.index import Index
from whence.engine.protocol import FREE


class Table:
    """Rows and what is known of them, in the layout that `kernels` describes."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.lines: Lines = np.zeros((16, arity + 2), dtype=np.int64)
        self.slots: Ids = np.full(32, kernels.EMPTY, dtype=np.int32)
        self.free: Ids = np.empty(16, dtype=np.int32)
        self.state = np.zeros(3, dtype=np.int64)
        self.indexes: dict[tuple[int, ...], Index] = {}
        self.moves = 0  # how often the arrays have moved

    def __len__(self) -> int:
        return int(self.state[0] - self.state[1])

    @property
    def small(self) -> NDArray[np.int32]:
        return self.lines.view(np.int32)

    # -- reading

    def ids(self, forbid: int = 0) -> Ids:
        """The rows that have none of the forbidden flags."""
        flags = self.small[: self.state[0], -1]
        return np.flatnonzero((flags & (forbid | FREE)) == 0).astype(np.int32)

    def column(self, ids: Ids, column: int) -> NDArray[np.int64]:
        values = np.empty(len(ids), dtype=np.int64)
        kernels.gather(self.lines, ids, column, values)
        return values

    def part(self, ids: Ids, columns: tuple[int, ...]) -> Lines:
        """Some columns of rows."""
        lines: Lines = np.empty((len(ids), len(columns)), dtype=np.int64)
        for at, column in enumerate(columns):
            lines[:, at] = self.column(ids, column)
        return lines

    def ranks(self, ids: Ids) -> Ids:
        ranks: Ids = self.small[ids, -2]
        return ranks

    def with_flags(self, ids: Ids, *, on: int = 0, off: int = 0) -> Ids:
        """Those of the rows that have all flags of `on` and none of `off`."""
        flags: Ids = self.small[ids, -1]
        chosen: Ids = ids[((flags & on) == on) & ((flags & off) == 0)]
        return chosen

    def derivable(self, ids: Ids) -> Ids:
        """Those of the rows that have a derivation."""
        chosen: Ids = ids[self.small[ids, -4] > 0]
        return chosen

    def find(self, keys: Lines, forbid: int = 0) -> Ids:
        """For each line of `keys` the equal row, or -1 if there is none without a forbidden flag."""
        found: Ids = np.empty(len(keys), dtype=np.int32)
        kernels.find_lines(self.slots, self.lines, self.small, forbid, keys, hashes_of(keys), found)
        return found

    def index(self, columns: tuple[int, ...]) -> Index:
        index = self.indexes.get(columns)
        if index is None:
            index = self.indexes[columns] = Index(columns)
            index.link(self.lines, self.ids())
        return index

    # -- writing

    def add_supports(self, keys: Lines, ranks: Ids) -> Ids:
        """One more derivation per line of `keys`; the rows that are not present and were not queued yet."""
        made: Ids = np.empty(len(keys), dtype=np.int32)
        queue: Ids = np.empty(len(keys), dtype=np.int32)
        ends = np.zeros(3, dtype=np.int64)
        hashes = hashes_of(keys)
        done = 0
        while True:
            done = kernels.claim_rows(
                self.slots, self.lines, self.small, self.free, self.state, keys, hashes, ranks, done, made, queue, ends
            )
            if done == len(keys):
                break
            self._grow(len(keys) - done)
        for index in self.indexes.values():
            index.link(self.lines, made[: ends[0]])
        return queue[: ends[1]].copy()

    def drop_supports(self, keys: Lines, ranks: Ids) -> Ids:
        """One derivation less per line of `keys`, which are all there; the rows that this suspended."""
        lost: Ids = np.empty(len(keys), dtype=np.int32)
        end = kernels.drop_supports(self.small, self.find(keys), ranks, lost)
        return lost[:end].copy()

    def activate(self, ids: Ids, rank: int) -> None:
        """Makes rows present, as part of the current batch."""
        kernels.activate(self.small, ids, rank)

    def change_flags(self, ids: Ids, *, on: int = 0, off: int = 0) -> None:
        kernels.change_flags(self.small, ids, on, off)

    def erase(self, ids: Ids) -> None:
        for index in self.indexes.values():
            index.unlink(self.lines, ids)
        if len(self.free) < self.state[1] + len(ids):
            enlarge(self.free, int(self.state[1]) + 2 * len(ids))
        kernels.erase_rows(self.slots, self.lines, self.small, self.free, self.state, ids)

    def _grow(self, wanted: int) -> None:
        self.moves += 1
        used = int(self.state[0])
        if used >= len(self.lines):
            capacity = used + max(min(wanted, used), used // 2, 16)
            enlarge(self.lines, capacity)
        if self.state[2] >= (len(self.slots) * 5) // 8:
            live = len(self)
            size = len(self.slots) if live < len(self.slots) // 4 else 2 * len(self.slots)
            self.slots = np.full(size, kernels.EMPTY, dtype=np.int32)
            kernels.rehash(self.slots, self.lines, self.small, used)
            self.state[2] = live

    @property
    def addresses(self) -> list[int]:
        """For the machine: the lines and their width, the slots and the mask of a hash."""
        return [self.lines.ctypes.data, self.lines.shape[1], self.slots.ctypes.data, len(self.slots) - 1]

    @property
    def nbytes(self) -> int:
        own = self.lines.nbytes + self.slots.nbytes + self.free.nbytes
        return own + sum(index.nbytes for index in self.indexes.values())
