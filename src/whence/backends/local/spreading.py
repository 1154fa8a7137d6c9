"""Batches that follow from each other, in one call of a compiled loop as long as they are small."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whence.backends.local import cascade, machine, parallel, rounds
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.instructions import BUFFER, Assembled
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.engine.protocol import Enough, Forbid, Gain, Spread, Watch
from whence.plan.steps import DeltaPlan

# So many rows become present in one call, and so many derivations are met in it, before others have a say.
ROWS, MET = 1 << 16, 1 << 20
MANY = 4 * parallel.LARGE


def is_heavy(met: int) -> bool:
    """Whether a round that met so many derivations is one for two threads, and so is, most likely, the next."""
    return parallel.is_worthwhile(met // 4)


class Described(NamedTuple):
    """Plans as the loops are told them."""

    assembled: list[Assembled]
    plans: Lines
    tables: Words


def describe(
    plans: Sequence[DeltaPlan],
    relations: Sequence[str],
    tables: Mapping[str, Table],
    assemble: Callable[[DeltaPlan], Assembled | None],
) -> Described | None:
    """None if a plan is of a kind that is not assembled."""
    found: list[Assembled] = []
    described: list[list[int]] = []
    for plan in plans:
        assembled = assemble(plan)
        if assembled is None or plan.scan is None:
            return None
        found.append(assembled)
        ends = (relations.index(plan.scan.relation), relations.index(plan.rule.head.relation))
        described.append([*ends, *assembled.described])
    addresses = [tables[name].by_value() for name in relations]
    return Described(found, np.array(described, dtype=np.int64), np.array(addresses, dtype=np.int64))


class Watching(NamedTuple):
    """Who is told when a loop comes back, and what says which plan it is that makes too large a value."""

    watch: Watch
    sized: Callable[[DeltaPlan], AbstractContextManager[None]]


@dataclass
class Spreading:
    """What follows from rows of some relations, by plans that all begin with one of them and derive one of them.

    `is_heavy`: the last round met so many derivations that two threads had better do the next.
    """

    relations: tuple[str, ...]
    tables: Sequence[Table]
    plans: Sequence[DeltaPlan]
    described: Described
    is_heavy: bool = False
    left_at: int | None = None

    def is_left(self, batches: Sequence[Ids], enumerated: int) -> bool:
        """Whether a round is to be done by others; `enumerated` are the derivations met so far by anybody."""
        if self.left_at is not None:
            self.is_heavy = is_heavy(enumerated - self.left_at)
        is_left = self.is_heavy or parallel.is_worthwhile(max(map(len, batches)))
        self.left_at = enumerated if is_left else None
        return is_left

    def start(self, forbid: Sequence[Forbid]) -> None:
        for assembled, each in zip(self.described.assembled, forbid, strict=True):
            assembled.start(each)

    def spread_loss(self, lost: Sequence[Ids], watching: Watching, *, is_counted: bool) -> tuple[Spread[Ids], int]:
        """The rows, and how many derivations were met."""
        rows, ends = _queue(lost)
        begins = np.zeros_like(ends)
        told = np.zeros(cascade.NUMBER + 1, dtype=np.int64)
        while True:
            rows = cascade.spread_loss(
                self.described.plans,
                self.described.tables,
                rows,
                begins,
                ends,
                BUFFER,
                parallel.LARGE,
                int(is_counted),  # a bool would have the loop compiled once more
                told,
            )
            if told[cascade.STATUS] == machine.DONE:
                break
            self._make_room(int(told[cascade.NUMBER]), watching)
        return Spread(self._parts(rows, np.zeros_like(ends), begins), self._parts(rows, begins, ends)), int(
            told[cascade.MET]
        )

    def spread_gain(
        self, queued: Sequence[Ids], rank: int, enough: Enough, watching: Watching
    ) -> tuple[Gain[Ids], int]:
        """The rows, and how many derivations were met."""
        queue, ends = _queue(queued)
        begins, middles = np.zeros((2, len(ends)), dtype=np.int64)
        told = np.zeros(rounds.TOLD, dtype=np.int64)
        told[rounds.RANK], told[rounds.LAST] = rank, -1
        told[rounds.MOST_ROUNDS], told[rounds.MOST_ROWS] = enough.rounds, min(enough.rows + int(ends.sum()), ROWS)
        told[rounds.MOST_MET] = MET
        told[rounds.LARGEST], told[rounds.HEAVIEST] = (parallel.LARGE, MANY) if parallel.CORES > 1 else (ROWS, MET)
        while True:
            indexes = [(at, index.address) for at, table in enumerate(self.tables) for index in table.indexes.values()]
            queue = rounds.spread_gain(
                self.described.plans,
                self.described.tables,
                np.array(indexes, dtype=np.int64).reshape(-1, 2),
                queue,
                begins,
                middles,
                ends,
                BUFFER,
                told,
            )
            status = told[rounds.STATUS]
            if status == machine.DONE:
                break
            number = int(told[rounds.NUMBER])
            if status == rounds.NO_LINES:
                self.tables[self.described.plans[number, cascade.HEAD]].make_room()
            elif status == rounds.NO_LINKS:
                self.tables[told[rounds.TABLE]].link_new()
            else:
                self._make_room(number, watching)
        self.is_heavy = is_heavy(int(told[rounds.MET] - told[rounds.MET_BEFORE]))
        last = int(told[rounds.LAST])
        gain = Gain(
            self._parts(queue, np.zeros_like(ends), middles),
            self._parts(queue, middles, ends),
            int(told[rounds.ROUNDS]),
            None if last < 0 else self.plans[last],
        )
        return gain, int(told[rounds.MET])

    def _make_room(self, number: int, watching: Watching) -> None:
        """For what the machine stopped for in a plan."""
        watching.watch.at = self.plans[number].rule
        with watching.sized(self.plans[number]):
            self.described.assembled[number].make_room()
        watching.watch.look()

    def _parts(self, rows: Ids, begins: Words, ends: Words) -> dict[str, Ids]:
        parts = zip(self.relations, rows, begins.tolist(), ends.tolist(), strict=True)
        return {name: row[begin:end] for name, row, begin, end in parts if begin < end}


def _queue(batches: Sequence[Ids]) -> tuple[Ids, Words]:
    """A line for each batch, with room for more, and where they end."""
    counts = [len(batch) for batch in batches]
    rows: Ids = np.empty((len(batches), 2 * sum(counts) + 1024), dtype=np.int32)
    for row, batch in zip(rows, batches, strict=True):
        row[: len(batch)] = batch
    return rows, np.array(counts, dtype=np.int64)
