"""Batches that follow from each other, in one call of a compiled loop as long as they are small."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from whence.backends.local import cascade, machine, parallel, rounds
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.chaining import Chain, find_chains
from whence.backends.local.hashing import BITS
from whence.backends.local.instructions import BUFFER, Assembled
from whence.backends.local.plans import CODE, HEAD
from whence.backends.local.portions import LARGE, LATER_LARGE, LATER_PORTION, PORTION, Portions, handed_on
from whence.backends.local.table import Table
from whence.backends.local.walking import Walk, find_walk
from whence.backends.local.words import Words
from whence.engine.protocol import Enough, Forbid, Gain, Reconsider, Spread, Watch
from whence.plan.steps import DeltaPlan

# So many rows become present in one call, and so many derivations are met in it, before others have a say.
ROWS, MET = 1 << 16, 1 << 20
MANY = 4 * parallel.LARGE
_ANY = 1 << 40
# What begins with one of so many rows of its tables, or more, is a first evaluation or like one: much follows from each row.
SHARE = 8
_NO_GROUPS: Lines = np.empty((0, 1), dtype=np.int64)
# After so many portions, it is known how their rows are best kept, and the others are shared with other threads.
FIRST_PORTIONS = 4


def is_heavy(met: int) -> bool:
    """Whether a round that met so many derivations is one for several threads, and so is, most likely, the next."""
    return parallel.is_worthwhile(met // 4)


class Described(NamedTuple):
    """Plans as the loops are told them. `bundled` are those that can pass rows on in bundles."""

    assembled: list[Assembled]
    bundled: list[Assembled | None]
    plans: Lines
    tables: Words


def describe(
    plans: Sequence[DeltaPlan],
    relations: Sequence[str],
    tables: Mapping[str, Table],
    assemble: Callable[[DeltaPlan], Assembled | None],
    bundle: Callable[[DeltaPlan], Assembled | None],
) -> Described | None:
    """None if a plan is of a kind that is not assembled."""
    found: list[Assembled] = []
    bundled: list[Assembled | None] = []
    described: list[list[int]] = []
    for plan in plans:
        assembled = assemble(plan)
        if assembled is None or plan.scan is None:
            return None
        found.append(assembled)
        bundled.append(None if assembled.instructions.makes else bundle(plan))
        ends = (relations.index(plan.scan.relation), relations.index(plan.rule.head.relation))
        described.append([*ends, *assembled.described])
    addresses = [tables[name].by_value() for name in relations]
    return Described(found, bundled, np.array(described, dtype=np.int64), np.array(addresses, dtype=np.int64))


class Indexes:
    """Those of tables, as loops are told them: each behind its table's number. They never move, and more may be made."""

    def __init__(self, tables: Sequence[tuple[int, Table]]) -> None:
        self.tables = tables
        self._lines: Lines = np.empty((0, 2), dtype=np.int64)

    def lines(self) -> Lines:
        if len(self._lines) != sum([len(table.indexes) for _, table in self.tables]):
            found = [(number, index.address) for number, table in self.tables for index in table.indexes.values()]
            self._lines = np.array(found, dtype=np.int64).reshape(-1, 2)
        return self._lines


class Watching(NamedTuple):
    """Who is told when a loop comes back, and what says which plan it is that makes too large a value."""

    watch: Watch
    sized: Callable[[DeltaPlan], AbstractContextManager[None]]


class _Run(NamedTuple):
    """Of one call: the rows that became present and those that are next, by table; how many rounds it was, how many derivations
    were met, in all and in the last round; the number of the plan that derived something new last, or -1.
    """

    done: list[Ids]
    left: list[Ids]
    rounds: int
    met: int
    met_last: int
    last: int


class Followed:
    """Portions, those that wait and what became of the others: rows that became present and, of the last one, those that are
    next, by table; the rounds of the longest, the derivations met, the rows made, the number of the plan that derived
    something new last.
    """

    def __init__(self, waiting: Portions) -> None:
        self.waiting = waiting
        self.done: list[list[Ids]] = [[batch[:0]] for batch in waiting.batches]
        self.left = [batch[:0] for batch in waiting.batches]
        self.portions = self.rounds = self.met = self.unwatched = self.made = 0
        self.last = -1

    def note(self, run: _Run) -> None:
        for listed, ids in zip(self.done, run.done, strict=True):
            listed.append(ids)
        self.left = run.left
        self.met += run.met
        self.unwatched += run.met
        self.last = self.last if run.last < 0 else run.last

    def renumber(self, at: int, moved: Ids) -> None:
        """The rows of a relation are called otherwise from now on."""
        self.waiting.renumber(at, moved)
        self.done[at] = [moved[np.concatenate(self.done[at])]]


@dataclass
class Spreading:
    """What follows from rows of some relations, by plans that all begin with one of them and derive one of them.

    `is_heavy`: the last round met so many derivations that several threads had better do the next.
    """

    relations: tuple[str, ...]
    tables: Sequence[Table]
    plans: Sequence[DeltaPlan]
    described: Described
    is_heavy: bool = False
    left_at: int | None = None
    # How many new rows there were, and in all, when it was last found that chains are not worth their while.
    not_chained: tuple[int, int] = (0, 0)
    running: list[Assembled] = field(default_factory=list)
    # Those of the last rounds in which rows were added, and how the loops are told them.
    adding: list[Assembled] = field(default_factory=list)
    plans_adding: Lines = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))

    def is_left(self, batches: Sequence[Ids], enumerated: int) -> bool:
        """Whether a round is to be done by others; `enumerated` are the derivations met so far by anybody."""
        if self.left_at is not None:
            self.is_heavy = is_heavy(enumerated - self.left_at)
        is_left = self.is_heavy or parallel.is_worthwhile(max(map(len, batches)))
        self.left_at = enumerated if is_left else None
        return is_left

    @cached_property
    def columns(self) -> Mapping[str, int] | None:
        """By which portions can be told apart."""
        return handed_on(self.plans, self.relations)

    @cached_property
    def walk(self) -> Walk | None:
        """What first evaluations are, if they are walks."""
        if any(assembled.instructions.makes for assembled in self.described.assembled):
            return None
        return find_walk(self.plans, self._arities)

    @cached_property
    def chains(self) -> list[Chain] | None:
        """What plans are, if they are chains."""
        return find_chains(self.plans, self._arities)

    def asks_for_chains(self, new: int, rows: int) -> bool:
        """Whether that may be so no longer: to find out, all rows are read."""
        new_before, rows_before = self.not_chained
        return new >= 2 * new_before or rows >= 2 * rows_before

    @property
    def _arities(self) -> dict[str, int]:
        return {name: table.arity for name, table in zip(self.relations, self.tables, strict=True)}

    @cached_property
    def joined(self) -> Indexes:
        """Those of tables whose indexes the plans use."""
        used = {id(table) for assembled in self.described.assembled for table in assembled.tables}
        return Indexes([(at, table) for at, table in enumerate(self.tables) if id(table) in used])

    def start(self, forbid: Sequence[Forbid], *, in_bundles: bool = False) -> None:
        """`in_bundles` is for rounds in which rows are added; the others take them row by row."""
        self.running = self._chosen() if in_bundles else self.described.assembled
        if in_bundles and self.running != self.adding:
            self.adding, self.plans_adding = self.running, self.described.plans.copy()
            for line, assembled in zip(self.plans_adding, self.adding, strict=True):
                line[CODE:] = assembled.described
        for assembled, each in zip(self.running, forbid, strict=True):
            assembled.start(each)

    def _chosen(self) -> list[Assembled]:
        """Those that pass on bundles where both tables have lines of several rows."""
        chosen: list[Assembled] = []
        heads = self.described.plans[:, HEAD].tolist()
        for head, by_row, bundled in zip(heads, self.described.assembled, self.described.bundled, strict=True):
            is_shared = bundled is not None and bundled.source is not None and bundled.source.fields[BITS]
            chosen.append(bundled if bundled is not None and is_shared and self.tables[head].fields[BITS] else by_row)
        return chosen

    def spread_loss(self, lost: Sequence[Ids], watching: Watching, *, is_counted: bool) -> tuple[Spread[Ids], int]:
        """The rows, and how many derivations were met."""
        rows, ends = _queue(lost)
        begins, told = np.zeros(len(ends), dtype=np.int64), np.zeros(cascade.NUMBER + 1, dtype=np.int64)
        while True:
            rows = cascade.spread_loss(
                self.described.plans,
                self.described.tables,
                _NO_GROUPS,
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
        done: dict[str, Ids] = {}
        left: dict[str, Ids] = {}
        for name, row, begin, end in zip(self.relations, rows, begins.tolist(), ends.tolist(), strict=True):
            if begin:
                done[name] = row[:begin]
            if begin < end:
                left[name] = row[begin:end]
        return Spread(done, left), int(told[cascade.MET])

    def spread_gain(
        self, queued: Sequence[Ids], rank: int, enough: Enough, watching: Watching
    ) -> tuple[Gain[Ids], int]:
        """Rounds until one is large: the rows, and how many derivations were met."""
        large = (parallel.LARGE, MANY) if parallel.CORES > 1 else (ROWS, MET)
        run = self._run(queued, rank, enough, large, watching)
        self.is_heavy = is_heavy(run.met_last)
        return self.gain(run.done, run.left, run.rounds, run.last), run.met

    def portions(self, queued: Sequence[Ids]) -> Portions | None:
        """If what follows from these rows can be followed portion by portion."""
        count = sum(map(len, queued))
        if count < LARGE or self.columns is None:
            return None
        is_most = SHARE * count >= sum(map(len, self.tables))
        if not is_most and count < LATER_LARGE:
            return None
        size = PORTION if is_most else LATER_PORTION
        found = Portions(queued, self.tables, [self.columns[name] for name in self.relations], size)
        return found if found.are_many() else None

    def spread_portions(
        self,
        portions: Portions,
        seen: Sequence[Forbid],
        rank: int,
        enough: Enough,
        watching: Watching,
        *,
        reconsider: Reconsider[Ids],
        twin: Callable[[Sequence[Table], int], Spreading],
    ) -> tuple[Gain[Ids], int]:
        """All rounds, of one portion after the other. `twin` makes one of these for the tables of another thread."""
        self.start(seen, in_bundles=True)
        # What was there before may be of any portion, and records are made in one place only.
        is_alone = sum(map(len, self.tables)) > sum(map(len, portions.batches)) or enough != Enough.everything()
        is_alone = is_alone or any(assembled.instructions.makes for assembled in self.described.assembled)
        followed = Followed(portions)
        while self._follow_next(followed, rank, enough, watching):
            for name, moved in reconsider().items():
                followed.renumber(self.relations.index(name), moved)
                self.start(seen, in_bundles=True)
            if not is_alone and followed.portions >= FIRST_PORTIONS and (threads := self._threads(followed)) > 1:
                self._follow_in_threads(followed, rank, enough, watching, threads=threads, twin=twin)
        done = [np.concatenate(each) for each in followed.done]
        rest = [np.concatenate(pair) for pair in zip(followed.left, followed.waiting.rest(), strict=True)]
        return self.gain(done, rest, followed.rounds, followed.last), followed.met

    def _follow_next(self, followed: Followed, rank: int, enough: Enough, watching: Watching) -> bool:
        """All rounds of the next portion; False if there is none, or if it is enough."""
        before = sum(map(len, self.tables))
        if followed.made >= enough.rows or (portion := followed.waiting.next()) is None:
            return False
        rounds_done, followed.left = 0, portion
        made, met = followed.made, followed.met
        while any(map(len, followed.left)) and rounds_done < enough.rounds and made < enough.rows:
            allowed = Enough(enough.rounds - rounds_done, enough.rows - made)
            run = self._run(followed.left, rank + rounds_done, allowed, (_ANY, _ANY), watching)
            rounds_done += run.rounds
            followed.note(run)
            made = followed.made + sum(map(len, self.tables)) - before
            if followed.unwatched > MET:
                followed.unwatched = 0
                watching.watch.look()
        followed.waiting.adapt(followed.met - met)
        followed.made, followed.rounds = made, max(followed.rounds, rounds_done)
        followed.portions += 1
        return not any(map(len, followed.left))

    def _threads(self, followed: Followed) -> int:
        """How many had better follow what is left: more than one only if no line can have rows of two."""
        assert self.columns is not None
        tables = zip(self.relations, self.tables, strict=True)
        is_apart = all(self.columns[name] < table.arity - 1 or not table.fields[BITS] for name, table in tables)
        left = sum(map(len, followed.waiting.rest()))
        return max(1, min(parallel.CORES, left // (2 * FIRST_PORTIONS * PORTION))) if is_apart else 1

    def _follow_in_threads(
        self,
        followed: Followed,
        rank: int,
        enough: Enough,
        watching: Watching,
        *,
        threads: int,
        twin: Callable[[Sequence[Table], int], Spreading],
    ) -> None:
        """All portions that are left: a share of them here, the others in other tables, which are then made part of these."""
        followed.waiting, *shares = followed.waiting.shares(threads)
        others: list[tuple[Spreading, Followed]] = []
        for thread, share in enumerate(shares, start=1):
            moved = [table.twin(ids) for table, ids in zip(self.tables, share.batches, strict=True)]
            share.batches = [ids for _, ids in moved]
            others.append((twin([table for table, _ in moved], thread), Followed(share)))

        def follow(spreading: Spreading, portions: Followed) -> None:
            while spreading._follow_next(portions, rank, enough, watching):
                pass

        parallel.run([partial(follow, *each) for each in ((self, followed), *others)])
        for spreading, other in others:
            for at, (table, source) in enumerate(zip(self.tables, spreading.tables, strict=True)):
                shift = np.int32(table.absorb(source))
                for ids in other.done[at]:
                    ids += shift  # noqa: PLW2901 - in its place
                followed.done[at] += other.done[at]
            followed.rounds, followed.met = max(followed.rounds, other.rounds), followed.met + other.met
            followed.last = max(followed.last, other.last)

    def gain(self, done: Sequence[Ids], left: Sequence[Ids], count: int, last: int) -> Gain[Ids]:
        """Of rows by table, after so many rounds; `last` is the number of the plan that derived something new last, or -1."""
        made, queued = (
            {name: ids for name, ids in zip(self.relations, each, strict=True) if len(ids)} for each in (done, left)
        )
        return Gain(made, queued, count, None if last < 0 else self.plans[last])

    def _run(
        self, queued: Sequence[Ids], rank: int, enough: Enough, large: tuple[int, int], watching: Watching
    ) -> _Run:
        queue, ends = _queue(queued)
        begins, middles = np.zeros((2, len(ends)), dtype=np.int64)
        told = np.zeros(rounds.TOLD, dtype=np.int64)
        told[rounds.RANK], told[rounds.LAST] = rank, -1
        most = min(enough.rows, ROWS, *[table.rows_until_looked_at() for table in self.tables])
        most += sum(map(len, queued))
        told[rounds.MOST_ROUNDS :] = enough.rounds, most, MET, *large
        while True:
            queue = rounds.spread_gain(
                self.plans_adding,
                self.described.tables,
                self.joined.lines(),
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
                self.tables[self.described.plans[number, HEAD]].make_room()
            elif status == rounds.NO_LINKS:
                self.tables[told[rounds.TABLE]].link_new()
            else:
                self._make_room(number, watching)
        parts = list(zip(queue, middles.tolist(), ends.tolist(), strict=True))
        said = told.tolist()
        return _Run(
            [line[:middle] for line, middle, _ in parts],
            [line[middle:end] for line, middle, end in parts],
            said[rounds.ROUNDS],
            said[rounds.MET],
            said[rounds.MET] - said[rounds.MET_BEFORE],
            said[rounds.LAST],
        )

    def _make_room(self, number: int, watching: Watching) -> None:
        """For what the machine stopped for in a plan."""
        watching.watch.at = self.plans[number].rule
        with watching.sized(self.plans[number]):
            self.running[number].make_room()
        watching.watch.look()


def _queue(batches: Sequence[Ids]) -> tuple[Ids, Words]:
    """A line for each batch, with room for more, and where they end."""
    counts = [len(batch) for batch in batches]
    rows: Ids = np.empty((len(batches), 2 * sum(counts) + 1024), dtype=np.int32)
    for at, batch in enumerate(batches):
        if counts[at]:
            rows[at, : counts[at]] = batch
    return rows, np.array(counts, dtype=np.int64)
