"""A relation in memory: rows of words, found by value, counted, flagged, and indexed as the plans ask."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import blocks, bundles, hashing, kernels, parallel
from whence.backends.local.arrays import Ids, Lines, unlisted
from whence.backends.local.bundles import Bundles
from whence.backends.local.by_column import Columns
from whence.backends.local.hashing import BITS, FILLED, LIMIT, STEP, USED, Halves, HashedLines
from whence.backends.local.index import Index
from whence.backends.local.kernels import (
    FREE_COUNT,
    FREE_LINES,
    KEEPS_NEW,
    LISTED,
    NEW,
    NEW_COUNT,
    NEW_SIZE,
    ROWS,
    TOO_WIDE,
)
from whence.backends.local.links import READY
from whence.backends.local.memory import Growing, address_of
from whence.engine.protocol import ADDED, BATCH, FREE, SUSPENDED

# So many rows that wait for indexes are not listed if these have fewer.
MANY_NEW = 1 << 16
# Of so many lines that are expected, there is one more.
EXPECTED_MORE = 8
# So many lines are copied from table to table before their memory is given back.
COPIED = 1 << 16


class Table:
    """Rows and what is known of them, in the layout that `kernels` describes."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.rows = HashedLines(arity, 1, kernels.OWN_HALVES, kernels.OWN_WORDS)
        self.handle, self.address = self.rows.handle, self.rows.address
        self.fields = self.handle.data  # the same words, quicker to read one at a time
        self.free = Growing(0, 1)
        self.new = Growing(0, 1)  # rows that wait for being put into indexes
        self.is_hashed = False  # as long as no row is looked up by value, none is in a slot
        self.looked_at = 0  # how many rows there were when it was last asked whether they should share lines
        self.is_to_share = False  # whatever the answer is
        if bits := blocks.first_bits(arity):
            self._empty(bits)
        self.indexes: dict[tuple[int, ...], Index] = {}

    def __len__(self) -> int:
        return self.fields[ROWS]

    # -- reading

    def ids(self, forbid: int = 0) -> Ids:
        """The rows that have none of the forbidden flags."""
        chosen: Ids = np.empty(len(self), dtype=np.int32)
        return chosen[: kernels.choose_rows(self.address, forbid, chosen)]

    def unlisted(self, rank: int) -> Ids:
        """All rows there are now, which rank no higher than this, as any that come later in the epoch do."""

        def ids(size: int = len(self)) -> Ids:
            if len(self) == size:
                return self.ids()
            present = self.with_flags(self.ids(), off=SUSPENDED)
            found: Ids = present[self.ranks(present) <= rank]
            return found

        return unlisted(len(self), ids)

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

    def queue_derivable(self, ids: Ids) -> Ids:
        """Those of the rows that are suspended, have a derivation and were not queued, each once. They are queued now."""
        queued: Ids = np.empty(len(ids), dtype=np.int32)
        return queued[: kernels.queue_derivable(self.address, ids, queued)]

    def counts(self, ids: Ids) -> Ids:
        """How many derivations the rows have."""
        return self._halves(ids, kernels.COUNT)

    def find(self, keys: Lines, forbid: int = 0, *, having: int = 0) -> Ids:
        """For each line of `keys` the equal row, or -1 if there is none without a forbidden flag and with those to be had."""
        found: Ids = np.empty(len(keys), dtype=np.int32)
        kernels.find_rows(self.by_value(), forbid, having, keys, found)
        return found

    def by_value(self) -> int:
        """The address of the handle, for loops that look rows up. From now on rows go into slots as they come."""
        if not self.is_hashed:
            self.is_hashed = True
            if self.fields[USED]:
                self.rows.fill_anew(self._lines + hashing.BLOCK, len(self.rows.slots), *self._unwanted())
        return self.address

    @property
    def _lines(self) -> int:
        """Those in slots."""
        return self.fields[USED] - self.fields[FREE_COUNT]

    def _halves(self, ids: Ids, which: int) -> Ids:
        halves: Ids = np.empty(len(ids), dtype=np.int32)
        kernels.read_halves(self.address, ids, which, halves)
        return halves

    # -- writing

    def width_of(self, step: int, bits: int) -> int:
        """How many halves a line has whose columns take `step` each, and that so many bits of rows share."""
        return self.arity * step + (kernels.OWN_HALVES << bits)

    def used_lines(self) -> Halves:
        """The lines that have rows."""
        lines = self.rows.lines[: self.fields[USED]]
        flags, unused = self._unwanted()
        used: Halves = lines[(lines[:, flags] & unused) == 0]
        return used

    def restore(self, lines: Halves, step: int, bits: int) -> None:
        """Takes over the lines of a table like this one, with what is known of their rows. There may be none yet."""
        if bits != self.fields[BITS]:
            self._empty(bits)
        if step > self.fields[STEP]:
            self.rows.widen()
        self.rows.take_over(lines)
        states = lines[:, self.arity * step :].reshape(-1, kernels.OWN_HALVES)
        self.fields[ROWS] = int(np.count_nonzero((states[:, -kernels.FLAGS] & FREE) == 0))
        self.is_hashed = False
        if bits:
            self.by_value()

    def add_supports(self, keys: Lines | Bundles, ranks: Ids) -> Ids:
        """One more derivation per line of `keys`; the rows that are not present and were not queued yet."""
        self.by_value()
        if isinstance(keys, Bundles):
            return self._add_bundles(keys, ranks)
        if parallel.is_worthwhile(len(keys)) and len(self) > len(keys) and not self.fields[FREE_COUNT]:
            return self._add_in_threads(keys, ranks)
        return self._add(keys, ranks)

    def add_new(self, keys: Lines | Columns, ranks: Ids) -> Ids:
        """The same for lines that are all different and not there yet, so that nothing needs to be looked up."""
        if self.is_hashed:
            return self.add_supports(keys.lines() if isinstance(keys, Columns) else keys, ranks)
        first, done = self.fields[USED], 0
        if isinstance(keys, Columns):
            self._append_columns(keys)
        else:
            self.rows.make_lines(len(keys))
            while (done := kernels.append_rows(self.address, keys, done)) < len(keys):
                self.rows.widen()
        made = np.arange(first, first + len(keys), dtype=np.int32)
        self._note_new(made)
        return made

    def _append_columns(self, keys: Columns) -> None:
        if self.fields[STEP] == 1 and not keys.fit_halves():
            self.rows.widen()
        self.rows.make_lines(len(keys), in_small_pages=True)
        keys.append_to(self.address, self.fields[USED])
        self.rows.room.put_into_large_pages()
        self.fields[USED] += len(keys)
        self.fields[ROWS] += len(keys)

    def _add(self, keys: Lines, ranks: Ids) -> Ids:
        queue: Ids = np.empty(len(keys), dtype=np.int32)
        self.fields[LISTED] = done = 0
        while (done := kernels.claim_rows(self.address, keys, ranks, done, queue)) < len(keys):
            self.make_room()
        return queue[: self.fields[LISTED]].copy()

    def _add_bundles(self, given: Bundles, ranks: Ids) -> Ids:
        heads, count = given.heads, len(given.heads)
        threads = max(1, min(parallel.CORES, 2 * count // bundles.MANY))
        queues, fresh = np.empty((2, threads, bundles.MOST * (count + 1)), dtype=np.int32)
        left, ends = np.empty((threads, count), dtype=np.int32), np.zeros((threads, 4), dtype=np.int64)

        def claim(heads: Lines, ranks: Ids, thread: int, threads: int) -> int:
            return bundles.claim_bundles(  # type: ignore[no-any-return]
                *(self.address, given.source, int(given.is_recursive), heads, ranks, 0, thread, threads),
                *(queues[thread], fresh[thread], left[thread], ends[thread]),
            )

        if threads > 1:
            parallel.run([partial(claim, given.heads, ranks, thread, threads) for thread in range(threads)])
            made = ends[:, 1].tolist()
            self.fields[ROWS] += sum(made)
            self._note_new(np.concatenate([rows[:end] for rows, end in zip(fresh, made, strict=True)]))
            later = np.concatenate([places[:end] for places, end in zip(left, ends[:, 3].tolist(), strict=True)])
            heads, ranks = np.ascontiguousarray(heads[later]), ranks[later]
        while (done := claim(heads, ranks, 0, 1)) < len(heads):
            self.make_room()
            heads, ranks = heads[done:], ranks[done:]
        return np.concatenate([rows[:end] for rows, end in zip(queues, ends[:, 0].tolist(), strict=True)])

    def _add_in_threads(self, keys: Lines, ranks: Ids) -> Ids:
        """`add_supports` with several threads."""
        size, bits, threads = len(keys), self.fields[BITS], parallel.threads(len(keys))
        most = (size >> (bits // 2)) * 5 // (4 * threads) + hashing.BLOCK  # new lines, for each
        self._make_room(threads * most)
        used = self.fields[USED]
        queue, fresh, taken, left = np.empty((4, threads, size), dtype=np.int32)
        ends = np.empty((threads, 5), dtype=np.int64)

        def claim(at: int) -> None:
            kernels.claim_share(
                *(self.address, keys, ranks, at, threads, used + at * most, most),
                *(queue[at], fresh[at], taken[at], left[at], ends[at]),
            )

        parallel.run([partial(claim, at) for at in range(threads)])
        end, down = used, 0
        queued: list[Ids] = []
        noted: list[Ids] = []
        rest: list[Ids] = []
        for at, (listed, made, later, filled, new) in enumerate(ends.tolist()):
            # The lines that a thread made go right behind those of the one before it.
            first = used + at * most
            kernels.move_lines(self.address, first, down, taken[at], made)
            for rows in (queue[at, :listed], fresh[at, :new]):
                rows[rows >= first << bits] -= down << bits
            queued.append(queue[at, :listed])
            noted.append(fresh[at, :new])
            rest.append(left[at, :later])
            self.fields[FILLED] += filled
            self.fields[ROWS] += new
            end, down = end + made, down + most - made
        self.fields[USED] = end
        self._note_new(np.concatenate(noted))
        if any(map(len, rest)):
            places = np.concatenate(rest)
            queued.append(self._add(keys[places], ranks[places]))
        return np.concatenate(queued)

    def make_room(self, more: int = hashing.BLOCK) -> None:
        """For what `claim_rows` stopped for."""
        if self.fields[TOO_WIDE]:
            self.rows.widen()
        else:
            self._make_room(more)
            self._make_room_for_new(max(more, 2 * hashing.BLOCK))  # those of a line, or of a block of look-ups

    def _make_room(self, more: int) -> None:
        self.rows.make_room(self._lines, *self._unwanted(), more)

    def _make_room_for_new(self, more: int) -> None:
        wanted = self.fields[NEW_COUNT] + more
        if not self.fields[KEEPS_NEW] or len(self.new.array) >= wanted:
            return
        if wanted > MANY_NEW and all(index.had_better_be_rebuilt(wanted) for index in self.indexes.values()):
            self.fields[KEEPS_NEW] = self.fields[NEW_COUNT] = 0  # they will be
        else:
            self.new.grow(wanted + wanted // 2)
            self.fields[NEW], self.fields[NEW_SIZE] = address_of(self.new.array), len(self.new.array)

    def _note_new(self, rows: Ids) -> None:
        """Rows that are to be put into the indexes."""
        if self.fields[KEEPS_NEW]:
            self._make_room_for_new(len(rows))
        if self.fields[KEEPS_NEW]:
            begin = self.fields[NEW_COUNT]
            self.new.array[begin : begin + len(rows), 0] = rows
            self.fields[NEW_COUNT] = begin + len(rows)

    def _unwanted(self) -> tuple[int, int]:
        """The half with the flags of a line's first row, and the flag of lines that are not used."""
        return self.rows.columns * self.fields[STEP] + kernels.OWN_HALVES - kernels.FLAGS, kernels.UNUSED

    def drop_supports(self, keys: Lines, ranks: Ids) -> Ids:
        """One derivation less per line of `keys`, which are all there; the rows that this suspended."""
        lost: Ids = np.empty(len(keys), dtype=np.int32)
        return lost[: kernels.drop_supports(self.by_value(), keys, ranks, lost)].copy()

    def activate(self, ids: Ids, rank: int, *, is_batch: bool = True) -> Ids:
        """Makes rows present, as part of the current batch; those of them that came in this epoch."""
        added: Ids = np.empty(len(ids), dtype=np.int32)
        on, shares = BATCH if is_batch else 0, parallel.threads(len(ids))
        if shares == 1:
            return added[: kernels.activate(self.address, ids, rank, on, added)]

        def activate(begin: int, end: int) -> Ids:
            return added[begin : begin + kernels.activate(self.address, ids[begin:end], rank, on, added[begin:end])]

        cuts = pairwise([len(ids) * at // shares for at in range(shares + 1)])
        return np.concatenate(parallel.run([partial(activate, *cut) for cut in cuts]))

    def keep_added(self, ids: Ids) -> None:
        """Rows that came in this epoch, all of them: it is over."""
        if len(ids) > len(self) // 4:
            kernels.drop_flags(self.address, ADDED)
        else:
            self.change_flags(ids, off=ADDED)

    def change_flags(self, ids: Ids, *, on: int = 0, off: int = 0) -> None:
        if len(ids):
            kernels.change_flags(self.address, ids, on, off)

    def net(self, come: Ids, lost: Ids) -> tuple[Ids, Ids, Ids]:
        """Rows that came in this epoch and are present, and of those that were lost the ones that were there before and the ones
        that are neither: each once.
        """
        added: Ids = np.empty(len(come), dtype=np.int32)
        before, passing = np.empty((2, len(lost)), dtype=np.int32)
        counts = np.empty(3, dtype=np.int64)
        kernels.net_rows(self.address, come, lost, added, before, passing, counts)
        there, kept, passed = counts.tolist()
        return added[:there], before[:kept], passing[:passed]

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

    # -- rows that share lines

    def reconsider(self, expected: int = 0) -> Ids | None:
        """Has rows share lines, or not, if that is better by now, or when there are as many as expected.

        If so, the new number of each row, by its old one.
        """
        if not self.arity:
            return None
        bits = self.fields[BITS]
        other = blocks.BLOCK_BITS
        if not self.is_to_share:
            other = blocks.other_bits(self.address, bits, max(len(self), expected), self._lines, self.looked_at)
        if other == bits:
            if len(self) >= 2 * self.looked_at:
                self.looked_at = len(self)
            return None
        self.looked_at = len(self)
        return self._lay_out(other)

    def rows_until_looked_at(self) -> int:
        """How many more rows there may be before that is asked again."""
        return max(1, max(blocks.SMALL, 2 * self.looked_at) - len(self)) if self.arity else 1 << 40

    def _lay_out(self, bits: int) -> Ids:
        ids = self.ids()
        keys, states = self.keys(ids), self._states(ids)
        moved: Ids = np.full(self.fields[USED] << self.fields[BITS], -1, dtype=np.int32)
        self._empty(bits)
        moved[ids] = self.place(keys, states)
        rows = self.ids()  # in order, so that rows of a line stand together
        for index in self.indexes.values():
            index.rebuild(rows, self.fields[USED] << bits)
        return moved

    def _states(self, ids: Ids) -> Halves:
        states: Halves = np.empty((len(ids), kernels.OWN_HALVES), dtype=np.int32)
        blocks.read_states(self.address, ids, states)
        return states

    def place(self, keys: Lines, states: Halves) -> Ids:
        """Puts in rows that are not there, with what is known of them: their numbers."""
        places: Ids = np.full(len(keys), -1, dtype=np.int32)
        while blocks.place_rows(self.address, keys, states, places) < len(keys):
            self._make_room(max(hashing.BLOCK, self._lines))
        return places

    def twin(self, ids: Ids) -> tuple[Table, Ids]:
        """A table like this one with some of its rows, which are no longer in this one, and their numbers there."""
        other = self.sibling()
        places = other.place(self.keys(ids), self._states(ids))
        self.erase(ids)
        return other, places

    def absorb(self, other: Table) -> int:
        """Takes over the rows of a table like this one, none of whose lines is here; their numbers grow by the result.

        The other one is of no use any more.
        """
        if self.fields[STEP] != other.fields[STEP]:
            (self if self.fields[STEP] == 1 else other).rows.widen()
        more, used, bits = other.fields[USED], self.fields[USED], self.fields[BITS]
        assert not other.fields[FREE_COUNT]
        if self.fields[KEEPS_NEW]:
            self._note_new(other.ids() + np.int32(used << bits))
        self._make_room(more)
        for start in range(0, more, COPIED):
            end = min(start + COPIED, more)
            self.rows.lines[used + start : used + end] = other.rows.lines[start:end]
            other.rows.room.give_up(end)
        self.fields[USED] = used + more
        self.fields[ROWS] += len(other)
        hashing.fill_slots(self.address, used, *self._unwanted())
        return used << bits

    # -- rows that a loop writes line by line, and finds in no slots

    def begin_anew(self, *, is_wide: bool) -> None:
        """Without rows, which will take two halves a column if they are wide. Indexes are made anew when they are asked for."""
        self._empty(self.fields[BITS])
        self.looked_at = 0
        self.forget_links()
        if is_wide and self.fields[STEP] == 1:
            self.rows.widen()

    def forget_links(self) -> None:
        """Has indexes made anew when they are asked for."""
        self.fields[KEEPS_NEW] = self.fields[NEW_COUNT] = 0

    def sibling(self) -> Table:
        """A table that keeps its rows like this one, and has none."""
        other = Table(self.arity)
        other._empty(self.fields[BITS])
        if self.fields[STEP] == 2:
            other.rows.widen()
        return other

    def expect_lines(self, number: int) -> None:
        """Room for so many in all, and some more, which takes no memory until they come."""
        self.rows.make_lines(max(0, number + number // EXPECTED_MORE - self.fields[USED]))

    def end_lines(self, first: int) -> None:
        """Puts the lines from the first on into slots."""
        made = self.fields[USED] - first
        if self.fields[FILLED] + made > self.fields[LIMIT]:
            self.rows.fill_anew(self._lines + hashing.BLOCK, len(self.rows.slots), *self._unwanted())
        elif made:
            hashing.fill_slots(self.address, first, *self._unwanted())

    def _empty(self, bits: int) -> None:
        """Without rows, of which so many bits are to share a line."""
        self.is_hashed = True
        self.rows.empty(kernels.OWN_HALVES << bits, bits)
        self.fields[ROWS] = self.fields[FREE_COUNT] = self.fields[NEW_COUNT] = 0

    # -- indexes

    def index(self, columns: tuple[int, ...]) -> Index:
        """An index that knows all rows."""
        index = self.indexes.get(columns)
        if index is None:
            self.link_new()
            index = self.indexes[columns] = Index(columns, self.rows)
            index.rebuild(self.ids(), self.fields[USED] << self.fields[BITS])
            self.fields[KEEPS_NEW] = 1
        else:
            self.link_new()
        return index

    def link_new(self) -> None:
        """Puts the rows made since into the indexes."""
        count, is_kept = self.fields[NEW_COUNT], self.fields[KEEPS_NEW]
        if not self.indexes or (is_kept and not count):
            return
        self.fields[KEEPS_NEW], self.fields[NEW_COUNT] = 1, 0
        new, lines = np.ascontiguousarray(self.new.array[:count, 0]), self.fields[USED] << self.fields[BITS]
        if self.fields[BITS] and not any(index.handle[READY] for index in self.indexes.values()):
            new = np.sort(new)  # rows of a line stand together
        for index in self.indexes.values():
            if not is_kept or index.had_better_be_rebuilt(count):
                index.rebuild(self.ids(), lines)
            else:
                index.link(new, lines)

    @property
    def nbytes(self) -> int:
        own = self.rows.nbytes + self.free.array.nbytes + self.new.array.nbytes
        return own + sum(index.nbytes for index in self.indexes.values())
