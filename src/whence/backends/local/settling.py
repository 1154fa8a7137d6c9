"""Strata with groups of numbers inside their recursion, in few calls of compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from whence.backends.local import best, best_rounds, cascade, machine, waiting
from whence.backends.local.arrays import Ids, Lines, distinct
from whence.backends.local.hashing import BITS, BLOCK, USED
from whence.backends.local.instructions import BUFFER
from whence.backends.local.rounds import NO_LINES, NO_LINKS
from whence.backends.local.spreading import MET, Described, Indexes, Watching
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.engine.protocol import QUEUED, Enough, Forbid, Settled, Unsettled
from whence.lang.types import is_whole
from whence.plan.extract_aggregates import AggregateSpec
from whence.plan.steps import DeltaPlan

_ANY = 1 << 40
# So many rounds are gone through, and so many rows made, before others have a say: where values get better for ever, groups get
# longer all the time; and rows that wait are looked up once more then.
ROUNDS, ROWS = 1 << 13, 1 << 18
# Rooms that have grown to so many bytes are not kept.
_LARGE = 1 << 20


def is_of_numbers(spec: AggregateSpec) -> bool:
    """Whether it is the least or greatest of numbers, so that one look at a row tells what it does to its group."""
    return spec.op in ("min", "max") and spec.value_kind is not None and is_whole(spec.value_kind)


@dataclass
class Settling:
    """The plans of a stratum, described as they take away and as they add, and its aggregates.

    `relations` are all of the stratum, in the order of the tables.
    """

    relations: Sequence[str]
    tables: Sequence[Table]
    plans: Sequence[DeltaPlan]
    taking: Described
    adding: Described
    specs: Sequence[AggregateSpec]
    # What the loops write into, from call to call.
    _queue: Ids = field(init=False)
    _made: Ids = field(init=False)
    _lost: Ids = field(init=False)
    _heap: Lines = field(init=False)
    _bounds: Lines = field(init=False)
    _told: Words = field(init=False)
    _loss_told: Words = field(init=False)
    _joined: Words = field(init=False)

    def __post_init__(self) -> None:
        self._make_rooms()
        self._bounds = np.empty((6, len(self.tables)), dtype=np.int64)
        self._told = np.empty(waiting.TOLD, dtype=np.int64)
        self._loss_told = np.empty(cascade.NUMBER + 1, dtype=np.int64)
        self._joined = np.empty(0, dtype=np.int64)

    def _make_rooms(self) -> None:
        self._queue, self._made, self._lost = (np.empty((len(self.tables), 1024), dtype=np.int32) for _ in range(3))
        self._heap = np.empty((1024, 2), dtype=np.int64)

    @cached_property
    def _asked(self) -> list[tuple[int, Table]]:
        """The tables whose indexes the plans use, or will if they come to a choice."""
        asked = {id(table) for assembled in self.adding.assembled for table in assembled.tables}
        return [(at, table) for at, table in enumerate(self.tables) if id(table) in asked]

    @property
    def joined(self) -> Words:
        """The numbers of those tables whose indexes the plans use by now: indexes that are made stay."""
        if len(self._joined) < len(self._asked):
            self._joined = np.array([at for at, table in self._asked if table.indexes], dtype=np.int64)
        return self._joined

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.relations)}

    @cached_property
    def _groups(self) -> Lines:
        """What the loops are told of the aggregates. Indexes of rows are not there before they are used."""
        most = max(len(spec.key_columns) for spec in self.specs)
        groups: Lines = np.zeros((len(self.specs), best.KEYS_AT + 2 * most), dtype=np.int64)
        for group, spec in zip(groups, self.specs, strict=True):
            rows, output = self._numbers[spec.rows], self._numbers[spec.output]
            assert spec.value_column is not None
            told = [rows, output, 0, self.tables[output].index(spec.output_keys).address, int(spec.op == "min")]
            told += [spec.value_column, spec.output_value, len(spec.key_columns), *spec.key_columns, *spec.output_keys]
            group[: len(told)] = told
        return groups

    def _index_rows(self) -> None:
        """Has groups found by rows and rows by groups."""
        for group, spec in zip(self._groups, self.specs, strict=True):
            table = self.tables[self._numbers[spec.rows]]
            if group[best.ROWS_INDEX]:
                table.link_new()
            else:
                group[best.ROWS_INDEX] = table.index(spec.key_columns).address

    def _link_outputs(self) -> None:
        for output in self._groups[:, best.OUTPUT_OF].tolist():
            self.tables[output].link_new()

    @cached_property
    def _indexes(self) -> Indexes:
        """Those of all tables."""
        return Indexes(list(enumerate(self.tables)))

    def lose(
        self, lost: Mapping[str, Sequence[Ids]], seen: Sequence[Forbid], watching: Watching
    ) -> tuple[dict[str, Ids], int]:
        """Takes away what followed from lost rows: the rows, and how many derivations were met."""
        _start(self.taking, seen)
        begins, ends = np.zeros((2, len(self.tables)), dtype=np.int64)
        told = np.zeros(cascade.NUMBER + 1, dtype=np.int64)
        self._index_rows()
        self._link_outputs()
        self._lost = self._filled(self._lost, lost, ends)
        while True:
            self._lost = cascade.spread_loss(
                self.taking.plans, self.taking.tables, self._groups, self._lost, begins, ends, BUFFER, _ANY, 1, told
            )
            if told[cascade.STATUS] == machine.DONE:
                break
            self._make_room(self.taking, int(told[cascade.NUMBER]), watching)
        return self._parts(self._lost, [0] * len(ends), ends.tolist()), int(told[cascade.MET])

    def settle(
        self,
        unsettled: Unsettled[Ids],
        seen: tuple[Sequence[Forbid], Sequence[Forbid]],
        rank: int,
        enough: Enough,
        watching: Watching,
    ) -> tuple[Settled[Ids], int]:
        """Rounds until nothing is left or it is enough: what became of it, and how many derivations were met."""
        _start(self.taking, seen[0])
        _start(self.adding, seen[1])
        for each in (self._bounds, self._told, self._loss_told):
            each.fill(0)
        queue_ends, begins, ends, marks, lost_begins, lost_ends = self._bounds
        self._queue = self._filled(self._queue, unsettled.queued, queue_ends)
        self._lost = self._filled(self._lost, unsettled.lost, lost_ends)
        before = lost_ends.tolist()
        lost_begins[:] = before
        self._lost = self._filled(self._lost, unsettled.losing, lost_ends)
        known = sum(lost_ends.tolist())
        entered, offered = self._offered(unsettled.offered)
        told, loss_told = self._told, self._loss_told
        told[waiting.LET_IN], told[waiting.RANK_REACHED], told[waiting.LAST] = offered, rank, -1
        told[waiting.MOST_ROUNDS], told[waiting.MOST_MET] = min(enough.rounds, ROUNDS), MET
        told[waiting.MOST_ROWS] = min(enough.rows, ROWS) + sum(map(len, self.tables))
        self._link_outputs()
        while True:
            self._queue, self._made, self._lost, self._heap, entered = best_rounds.settle_rounds(
                self.taking.plans,
                self.adding.plans,
                self.adding.tables,
                self._indexes.lines(),
                self.joined,
                self._groups,
                self._queue,
                queue_ends,
                self._made,
                begins,
                ends,
                self._lost,
                marks,
                lost_begins,
                lost_ends,
                self._heap,
                entered,
                BUFFER,
                told,
                loss_told,
            )
            status, table = told[waiting.STATUS], self.tables[told[waiting.TABLE]]
            if status == machine.DONE:
                break
            if status == NO_LINES:
                table.make_room(len(table) + BLOCK)
            elif status == NO_LINKS:
                _make_room_for_links(table)
            elif status == waiting.NO_INDEX:
                self._index_rows()
            else:
                described = self.taking if status == waiting.STOPPED_TAKING else self.adding
                self._make_room(described, int(told[waiting.NUMBER]), watching)
        said, first, lost_now = told.tolist(), [0] * len(before), lost_ends.tolist()
        come, gone = self._parts(self._made, first, ends.tolist()), self._parts(self._lost, before, lost_now)
        left = self._left(self._parts(self._queue, first, queue_ends.tolist()), said, entered)
        settled = Settled(
            come,
            gone,
            left,
            sum(lost_now) - known - said[waiting.DROPPED],
            said[waiting.ROUNDS],
            said[waiting.RANK_REACHED],
            self._last(said[waiting.LAST], left, come, gone),
        )
        if self._made.nbytes > _LARGE:
            self._make_rooms()
        return settled, said[waiting.MET]

    def _filled(self, rows: Ids, batches: Mapping[str, Sequence[Ids]], ends: Words) -> Ids:
        """A line for each table, with its batches and with room for more."""
        for name, listed in batches.items():
            if not listed:
                continue
            at = self._numbers[name]
            for batch in listed:
                end = int(ends[at]) + len(batch)
                if end > rows.shape[1]:
                    larger: Ids = np.empty((len(rows), 2 * end), dtype=np.int32)
                    larger[:, : rows.shape[1]] = rows
                    rows = larger
                rows[at, ends[at] : end] = batch
                ends[at] = end
        return rows

    def _offered(self, rows: Mapping[str, Sequence[Ids]]) -> tuple[Words, int]:
        """Rows that may better a group, as the loop lists them, with room for more, and how many there are."""
        if not rows:
            return np.zeros(64, dtype=np.int64), 0
        listed = [
            ids.astype(np.int64) | (number << 32)
            for number, spec in enumerate(self.specs)
            for ids in rows.get(spec.rows, ())
        ]
        count = sum(map(len, listed))
        return np.concatenate([*listed, np.zeros(64, dtype=np.int64)]), count

    def _left(self, queued: Mapping[str, Ids], said: Sequence[int], entered: Words) -> Unsettled[Ids]:
        """What is still to do. Rows that wait are queued, or have come, or were lost: these are offered."""
        held, let_in = said[waiting.WAITING], said[waiting.LET_IN]
        queues: dict[str, list[Ids]] = {name: [ids] for name, ids in queued.items()}
        offered: dict[str, list[Ids]] = {}
        if held or let_in:
            words = np.concatenate([self._heap[:held, 1], entered[:let_in]])
            for number, spec in enumerate(self.specs):
                ids = distinct((words[words >> 32 == number] & 0xFFFFFFFF).astype(np.int32))
                table = self.tables[self._numbers[spec.rows]]
                for listed, chosen in (
                    (queues, table.with_flags(ids, on=QUEUED)),
                    (offered, table.with_flags(ids, off=QUEUED)),
                ):
                    if len(chosen):
                        listed.setdefault(spec.rows, []).append(chosen)
        return Unsettled(queues, {}, {}, offered)

    def _last(
        self, number: int, left: Unsettled[Ids], come: Mapping[str, Ids], gone: Mapping[str, Ids]
    ) -> tuple[DeltaPlan, Ids] | None:
        """The plan that derived something new last, and rows of it."""
        if number < 0:
            return None
        relation = self.plans[number].rule.head.relation
        listed = [*left.queued.get(relation, ()), *(rows[relation] for rows in (come, gone) if relation in rows)]
        return self.plans[number], listed[0]

    def _make_room(self, described: Described, number: int, watching: Watching) -> None:
        """For what the machine stopped for in a plan."""
        watching.watch.at = self.plans[number].rule
        with watching.sized(self.plans[number]):
            described.assembled[number].make_room()
        watching.watch.look()

    def _parts(self, rows: Ids, begins: Sequence[int], ends: Sequence[int]) -> dict[str, Ids]:
        parts = enumerate(zip(self.relations, begins, ends, strict=True))
        return {name: rows[at, begin:end].copy() for at, (name, begin, end) in parts if begin < end}


class WatchedSettling(NamedTuple):
    """The same, with somebody who watches it and one who is told how many derivations were met."""

    settling: Settling
    watching: Watching
    note_met: Callable[[int], None]

    def lose(self, lost: Mapping[str, Sequence[Ids]], seen: Sequence[Forbid]) -> dict[str, Ids]:
        found, met = self.settling.lose(lost, seen, self.watching)
        self.note_met(met)
        return found

    def settle(
        self,
        unsettled: Unsettled[Ids],
        seen: tuple[Sequence[Forbid], Sequence[Forbid]],
        rank: int,
        enough: Enough,
    ) -> Settled[Ids]:
        settled, met = self.settling.settle(unsettled, seen, rank, enough, self.watching)
        self.note_met(met)
        return settled


def _make_room_for_links(table: Table) -> None:
    """Links rows that wait, and makes room for as many again."""
    table.link_new()
    more = len(table) + BLOCK
    for index in table.indexes.values():
        index.make_room(more, (table.fields[USED] << table.fields[BITS]) + (more << table.fields[BITS]))


def _start(described: Described, seen: Sequence[Forbid]) -> None:
    for assembled, forbid in zip(described.assembled, seen, strict=True):
        assembled.start(forbid)
