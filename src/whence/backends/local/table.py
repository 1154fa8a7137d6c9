"""A relation in memory: rows of words, found by value, counted, flagged, and indexed as the plans ask."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import hashing, kernels, parallel
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.hashing import FILLED, STEP, USED, Halves, HashedLines
from whence.backends.local.index import Index
from whence.backends.local.kernels import FREE_COUNT, FREE_LINES, FREE_TOP, LINKED, LISTED, TOO_WIDE
from whence.backends.local.memory import Growing, address_of
from whence.engine.protocol import FREE


class Table:
    """Rows and what is known of them, in the layout that `kernels` describes."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.rows = HashedLines(arity, 1, kernels.OWN_HALVES, kernels.OWN_WORDS)
        self.handle, self.address = self.rows.handle, self.rows.address
        self.fields = self.handle.data  # the same words, quicker to read one at a time
        self.free = Growing(0, 1)
        self.is_hashed = False  # as long as no row is looked up by value, none is in a slot
        self.indexes: dict[tuple[int, ...], Index] = {}

    def __len__(self) -> int:
        return self.fields[USED] - self.fields[FREE_COUNT]

    # -- reading

    def ids(self, forbid: int = 0) -> Ids:
        """The rows that have none of the forbidden flags."""
        flags = self.rows.lines[: self.handle[USED], -kernels.FLAGS]
        return np.flatnonzero((flags & (forbid | FREE)) == 0).astype(np.int32)

    def keys(self, ids: Ids) -> Lines:
        """The rows by value."""
        keys: Lines = np.empty((len(ids), self.arity), dtype=np.int64)
        hashing.read_lines(self.address, ids, keys)
        return keys

    def column(self, ids: Ids, column: int) -> NDArray[np.int64]:
        values = np.empty(len(ids), dtype=np.int64)
        hashing.read_column(self.address, ids, column, values)
        return values

    def part(self, ids: Ids, columns: tuple[int, ...]) -> Lines:
        """Some columns of rows."""
        lines: Lines = np.empty((len(ids), len(columns)), dtype=np.int64)
        for at, column in enumerate(columns):
            lines[:, at] = self.column(ids, column)
        return lines

    def ranks(self, ids: Ids) -> Ids:
        return self._halves(ids, kernels.RANK)

    def flags(self, ids: Ids) -> Ids:
        return self._halves(ids, kernels.FLAGS)

    def with_flags(self, ids: Ids, *, on: int = 0, off: int = 0) -> Ids:
        """Those of the rows that have all flags of `on` and none of `off`."""
        if not len(ids):
            return ids
        chosen: Ids = np.empty(len(ids), dtype=np.int32)
        return chosen[: kernels.choose_flags(self.address, ids, on, off, chosen)]

    def derivable(self, ids: Ids) -> Ids:
        """Those of the rows that have a derivation."""
        chosen: Ids = ids[self.counts(ids) > 0]
        return chosen

    def counts(self, ids: Ids) -> Ids:
        """How many derivations the rows have."""
        return self._halves(ids, kernels.COUNT)

    def find(self, keys: Lines, forbid: int = 0) -> Ids:
        """For each line of `keys` the equal row, or -1 if there is none without a forbidden flag."""
        found: Ids = np.empty(len(keys), dtype=np.int32)
        kernels.find_rows(self.by_value(), forbid, keys, found)
        return found

    def by_value(self) -> int:
        """The address of the handle, for loops that look rows up. From now on rows go into slots as they come."""
        if not self.is_hashed:
            self.is_hashed = True
            if self.fields[USED]:
                self.rows.fill_anew(len(self) + hashing.BLOCK, len(self.rows.slots), *self._unwanted())
        return self.address

    def _halves(self, ids: Ids, which: int) -> Ids:
        halves: Ids = np.empty(len(ids), dtype=np.int32)
        kernels.read_halves(self.address, ids, which, halves)
        return halves

    # -- writing

    def width_of(self, step: int) -> int:
        """How many halves a line has whose columns take `step` each."""
        return self.arity * step + kernels.OWN_HALVES

    def restore(self, lines: Halves, step: int) -> None:
        """Takes over the rows of a table like this one, with what is known of them. There may be none yet."""
        if step > self.fields[STEP]:
            self.rows.widen()
        self.rows.take_over(lines)

    def add_supports(self, keys: Lines, ranks: Ids) -> Ids:
        """One more derivation per line of `keys`; the rows that are not present and were not queued yet."""
        self.by_value()
        if parallel.is_worthwhile(len(keys)) and self.fields[USED] > len(keys) and not self.fields[FREE_COUNT]:
            return self._add_by_halves(keys, ranks)
        return self._add(keys, ranks)

    def add_new(self, keys: Lines, ranks: Ids) -> Ids:
        """The same for lines that are all different and not there yet, so that nothing needs to be looked up."""
        if self.is_hashed:
            return self.add_supports(keys, ranks)
        first, done = self.fields[USED], 0
        self.rows.make_lines(len(keys))
        while (done := kernels.append_rows(self.address, keys, done)) < len(keys):
            self.rows.widen()
        return np.arange(first, first + len(keys), dtype=np.int32)

    def _add(self, keys: Lines, ranks: Ids) -> Ids:
        queue: Ids = np.empty(len(keys), dtype=np.int32)
        self.fields[LISTED] = done = 0
        while (done := kernels.claim_rows(self.address, keys, ranks, done, queue)) < len(keys):
            self.make_room()
        return queue[: self.fields[LISTED]].copy()

    def _add_by_halves(self, keys: Lines, ranks: Ids) -> Ids:
        """`add_supports` with two threads."""
        size, handle = len(keys), self.handle
        self._make_room(2 * size)
        used = int(handle[USED])
        queue, taken, left = np.empty((3, 2, size), dtype=np.int32)
        ends = np.empty((2, 4), dtype=np.int64)

        def claim(half: int) -> None:
            first = used + half * size
            kernels.claim_half(self.address, keys, ranks, half, first, queue[half], taken[half], left[half], ends[half])

        parallel.run([partial(claim, 0), partial(claim, 1)])
        (listed, made, later, filled), (listed_too, made_too, later_too, filled_too) = ends.tolist()
        # The rows that the second thread made go right behind those of the first.
        kernels.move_rows(self.address, used + size, size - made, taken[1], made_too, queue[1], listed_too)
        handle[USED] = used + made + made_too
        handle[FILLED] += filled + filled_too
        queued = [queue[0, :listed], queue[1, :listed_too]]
        if later or later_too:
            rest = np.concatenate([left[0, :later], left[1, :later_too]])
            queued.append(self._add(keys[rest], ranks[rest]))
        return np.concatenate(queued)

    def make_room(self) -> None:
        """For what `claim_rows` stopped for."""
        if self.fields[TOO_WIDE]:
            self.rows.widen()
        else:
            self._make_room(hashing.BLOCK)

    def _make_room(self, more: int) -> None:
        self.rows.make_room(len(self), *self._unwanted(), more)

    def _unwanted(self) -> tuple[int, int]:
        """The half with the flags, and the flag of lines that are no rows."""
        return self.rows.lines.shape[1] - kernels.FLAGS, FREE

    def drop_supports(self, keys: Lines, ranks: Ids) -> Ids:
        """One derivation less per line of `keys`, which are all there; the rows that this suspended."""
        lost: Ids = np.empty(len(keys), dtype=np.int32)
        return lost[: kernels.drop_supports(self.by_value(), keys, ranks, lost)].copy()

    def activate(self, ids: Ids, rank: int) -> None:
        """Makes rows present, as part of the current batch."""
        kernels.activate(self.address, ids, rank)

    def change_flags(self, ids: Ids, *, on: int = 0, off: int = 0) -> None:
        if len(ids):
            kernels.change_flags(self.address, ids, on, off)

    def erase(self, ids: Ids) -> None:
        if not len(ids):
            return
        self.link_new()
        for index in self.indexes.values():
            index.unlink(ids)
        needed = int(self.handle[FREE_COUNT]) + len(ids)
        if len(self.free.array) < needed:
            self.free.grow(needed + needed // 2)
            self.handle[FREE_LINES] = address_of(self.free.array)
        kernels.erase_rows(self.by_value(), ids)

    # -- indexes

    def index(self, columns: tuple[int, ...]) -> Index:
        """An index that knows all rows."""
        index = self.indexes.get(columns)
        if index is None:
            self.link_new()
            index = self.indexes[columns] = Index(columns, self.rows)
            index.rebuild(self.ids(), int(self.handle[USED]))
        else:
            self.link_new()
        return index

    def link_new(self) -> None:
        """Puts the rows made since into the indexes."""
        fields = self.fields
        used, linked, count, top = fields[USED], fields[LINKED], fields[FREE_COUNT], fields[FREE_TOP]
        if used == linked and count == top:
            return
        fields[LINKED], fields[FREE_TOP] = used, count
        if not self.indexes:
            return
        new = np.concatenate([self.free.array[count:top, 0], np.arange(linked, used, dtype=np.int32)])
        for index in self.indexes.values():
            if index.had_better_be_rebuilt(len(new)):
                index.rebuild(self.ids(), used)
            else:
                index.link(new, used)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.free.array.nbytes + sum(index.nbytes for index in self.indexes.values())
