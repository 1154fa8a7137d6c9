"""First evaluations that are walks (see `walks`): what makes a recursion one, the graph that it is on, and following it.

Cost: the graph takes what its edges do, once; from then on a derivation is one number raised, and a row is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from whence.backends.local import parallel, walks
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.hashing import BITS, USED
from whence.backends.local.instructions import Assembled
from whence.backends.local.numbering import Values, are_wide
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.engine.protocol import ADDED, HIDDEN, QUEUED, SUSPENDED
from whence.plan.steps import Check, DeltaPlan, Join, Slot, read_by

# A walk begins with at least so many rows, and with one for so many values that nodes come from: the graph has all their edges.
LARGE, VALUES_A_ROW = 512, 64
# Groups whose last columns differ in so many bits only make a band.
BAND_BITS = 6
# After so many rows it is known how they are best kept; until then, so many groups are followed, then twice as many each time.
# Threads take so many parts of what is left, one after the other.
FIRST_ROWS, FIRST_GROUPS, PARTS = 1 << 13, 8, 32
# So many derivations are met in one call before others have a say.
MET = 1 << 24


class Walk(NamedTuple):
    """For each relation the column that changes from row to row; the others, in the order in which they make a group; and the
    columns, of what is joined with and of itself at first, that the values of the first come from.
    """

    walker: Mapping[str, int]
    group: Mapping[str, tuple[int, ...]]
    domain: Mapping[str, frozenset[tuple[str, int]]]

    def band(self, relation: str) -> int:
        """The place of the last column in a group, or -1 if it is the one that walks."""
        group = self.group[relation]
        return -1 if self.walker[relation] == len(group) else group.index(len(group))


def find_walk(plans: Sequence[DeltaPlan], arities: Mapping[str, int]) -> Walk | None:
    """What the plans of a stratum have in common, if they are a walk."""
    for plan in plans:
        if any(isinstance(step, Join | Check) and step.relation in arities for step in plan.steps):
            return None
    first = plans[0].scan
    assert first is not None
    arity = arities[first.relation]
    if arity < 2 or any(each != arity for each in arities.values()):
        return None
    found = (_follow(plans, first.relation, arity, walker) for walker in range(arity - 1, -1, -1))
    return next((walk for walk in found if walk is not None and walk.walker.keys() == arities.keys()), None)


def _follow(plans: Sequence[DeltaPlan], relation: str, arity: int, walker: int) -> Walk | None:
    """The same, if it is this column of this relation that walks."""
    walkers, groups = {relation: walker}, {relation: tuple(at for at in range(arity) if at != walker)}
    waiting = [relation]
    while waiting:
        driver = waiting.pop()
        for plan in plans:
            assert plan.scan is not None
            if plan.scan.relation != driver:
                continue
            group, head = _handed_on(plan, groups[driver]), plan.rule.head.relation
            if group is None or groups.get(head, group) != group:
                return None
            if head not in groups:
                groups[head] = group
                walkers[head] = next(at for at in range(arity) if at not in group)
                waiting.append(head)
    domain = _domain(plans, walkers)
    walk = None if domain is None else Walk(walkers, groups, domain)
    # Rows of several relations are in the same bands.
    return walk if walk and len({band for band in map(walk.band, walkers) if band >= 0}) <= 1 else None


def _handed_on(plan: DeltaPlan, columns: tuple[int, ...]) -> tuple[int, ...] | None:
    """Where the head has these columns of the row that a plan begins with, if nothing else is done with them."""
    assert plan.scan is not None
    looked_at = {column for column, _ in plan.scan.equals} | {column for pair in plan.scan.same for column in pair}
    slots, read = dict(plan.scan.binds), {slot for step in plan.steps for slot in read_by(step)}
    found: list[int] = []
    for column in columns:
        slot = slots.get(column)
        places = [at for at, operand in enumerate(plan.head) if slot is not None and operand == Slot(slot)]
        if slot in read or column in looked_at or len(places) != 1:
            return None
        found += places
    return tuple(found)


def _domain(plans: Sequence[DeltaPlan], walkers: Mapping[str, int]) -> Mapping[str, frozenset[tuple[str, int]]] | None:
    """None if a value is not one that is known before."""
    found = {name: {(name, column)} for name, column in walkers.items()}
    passed: list[tuple[str, str]] = []
    for plan in plans:
        assert plan.scan is not None
        head, joins = plan.rule.head.relation, [step for step in plan.steps if isinstance(step, Join)]
        walker = plan.head[walkers[head]]
        if not isinstance(walker, Slot):
            return None
        columns = {(step.relation, at) for step in joins for at, slot in step.binds if slot == walker.number}
        if columns:
            found[head] |= columns
        elif (walkers[plan.scan.relation], walker.number) in plan.scan.binds:
            passed.append((plan.scan.relation, head))
        else:
            return None
    for _ in found:
        for driver, head in passed:
            found[head] |= found[driver]
    return {name: frozenset(columns) for name, columns in found.items()}


def begins_walk(walk: Walk, queued: Mapping[str, Ids], tables: Mapping[str, Table]) -> bool:
    """Whether these rows are all there are, enough of them, and nobody knows their numbers: none was there before the epoch."""
    rows = sum(map(len, queued.values()))
    if rows < LARGE or any(len(ids) < len(tables[name]) for name, ids in queued.items()):
        return False
    if any(len(tables[name].with_flags(ids, off=ADDED)) for name, ids in queued.items()):
        return False
    columns = frozenset().union(*walk.domain.values())
    return sum(len(tables[name]) for name, _ in columns) <= VALUES_A_ROW * rows


class Groups:
    """The rows that a walk begins with, by group: `order` sorts them so. Groups of a band stand together; bands count from 1."""

    def __init__(self, walk: Walk, tables: Mapping[str, Table]) -> None:
        rows = np.concatenate([tables[name].part(tables[name].ids(), columns) for name, columns in walk.group.items()])
        band = max(map(walk.band, walk.group))
        columns = [rows[:, at] for at in range(rows.shape[1]) if at != band] + ([rows[:, band]] if band >= 0 else [])
        self.order = np.lexsort(columns[::-1])
        rows = rows[self.order]
        first = _changes(rows)
        self.begins: Words = np.append(first, len(rows))
        self.words: Lines = rows[first]
        lines = self.words.copy()
        if band >= 0:
            lines[:, band] >>= BAND_BITS
        self.band_begins = _changes(lines)
        sizes = np.diff(self.band_begins, append=len(lines))
        self.bands: Words = np.repeat(np.arange(1, len(sizes) + 1), sizes)

    def __len__(self) -> int:
        return len(self.words)

    def parts(self, first: int, size: int) -> list[tuple[int, int]]:
        """The groups from one on, in parts of about so many; a band is in one part."""
        begins = self.band_begins[self.band_begins >= first]
        places = np.searchsorted(begins, np.arange(first, len(self), size))
        cuts = np.unique(begins[places[places < len(begins)]]).tolist()
        return list(pairwise([*cuts, len(self)]))


def _changes(lines: Lines) -> Words:
    """The places of lines that are not like the one before."""
    is_other = np.ones(len(lines), dtype=np.bool_)
    is_other[1:] = (lines[1:] != lines[:-1]).any(axis=1)
    return np.flatnonzero(is_other)


class Graph:
    """The nodes of each relation, from a number of its own on, and what each of them leads to.

    `assemble` gives the instructions of a plan, started, with a table in place of the one that it begins with.
    """

    def __init__(
        self,
        walk: Walk,
        plans: Sequence[DeltaPlan],
        tables: Mapping[str, Table],
        assemble: Callable[[DeltaPlan, Table], Assembled],
    ) -> None:
        self.values: dict[str, Values] = {}
        self.offsets: dict[str, int] = {}
        self.nodes = 0
        for name, columns in walk.domain.items():
            found = [tables[each].column(tables[each].ids(), at) for each, at in sorted(columns)]
            self.values[name], self.offsets[name] = Values(np.concatenate(found)), self.nodes
            self.nodes += len(self.values[name].words)
        begins: list[Ids] = []
        targets: list[Ids] = []
        for plan in plans:
            assert plan.scan is not None
            driver, head = plan.scan.relation, plan.rule.head.relation
            # A group is handed on whatever it is: here, it is the value that an edge begins with.
            table, words = Table(tables[driver].arity), self.values[driver].words
            keys = np.repeat(words, table.arity).reshape(-1, table.arity)
            rows = table.add_new(keys, np.zeros(len(keys), dtype=np.int32))
            assembled = assemble(plan, table)
            while not assembled.is_last:
                heads, _ = assembled.next_heads(rows)
                begins.append(self.find(driver, heads[:, walk.group[head][0]]))
                targets.append(self.find(head, heads[:, walk.walker[head]]))
        begin, target = np.concatenate(begins), np.concatenate(targets)
        if (begin[1:] < begin[:-1]).any():
            order = np.argsort(begin, kind="stable")
            begin, target = begin[order], target[order]
        self.targets: Ids = target
        self.begins: Words = np.zeros(self.nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(begin, minlength=self.nodes), out=self.begins[1:])

    def find(self, relation: str, words: Words) -> Ids:
        """The nodes of values."""
        return self.values[relation].find(words) + np.int32(self.offsets[relation])


class Walking:
    """A walk from the rows of some tables, which have no others."""

    def __init__(
        self,
        walk: Walk,
        plans: Sequence[DeltaPlan],
        tables: Mapping[str, Table],
        assemble: Callable[[DeltaPlan, Table], Assembled],
        look: Callable[[], None],
    ) -> None:
        self.walk, self.look = walk, look
        self.tables = [tables[name] for name in walk.walker]
        self.groups, self.graph = Groups(walk, tables), Graph(walk, plans, tables, assemble)
        self.met = self.rounds = 0  # derivations, and the rounds of the longest
        nodes: list[Ids] = []
        counts: list[Ids] = []
        flags: list[Ids] = []
        for (name, walker), table in zip(walk.walker.items(), self.tables, strict=True):
            ids = table.ids()
            nodes.append(self.graph.find(name, table.column(ids, walker)))
            counts.append(table.counts(ids))
            flags.append(table.flags(ids) & ~(SUSPENDED | QUEUED | HIDDEN))
        self.firsts: Ids = np.stack([np.concatenate(each)[self.groups.order] for each in (nodes, counts, flags)])
        self.words: Words = np.concatenate([each.words for each in self.graph.values.values()])
        self.columns: Lines = np.array(list(walk.group.values()), dtype=np.int64)

    def follow(self, rank: int) -> None:
        """Puts all rows into the tables, and makes them present."""
        is_wide = any(map(are_wide, (self.words, self.groups.words)))
        for table in self.tables:
            table.begin_anew(is_wide=is_wide)
        done, size = 0, FIRST_GROUPS
        while done < len(self.groups) and sum(map(len, self.tables)) < FIRST_ROWS:
            part = self.groups.parts(done, size)[0]
            self._note(self._follow_parts(self.tables, rank, iter([part])))
            done, size = part[1], 2 * size
        times = len(self.groups) / max(1, done)
        for table in self.tables:
            table.end_lines(0)
            table.reconsider(expected=int(len(table) * times))
        before = [table.fields[USED] for table in self.tables]
        rest = iter(self.groups.parts(done, max(1, (len(self.groups) - done) // (PARTS * parallel.CORES))))
        others = [[table.sibling() for table in self.tables] for _ in range(1, parallel.CORES)]
        for at, table in enumerate(self.tables):
            table.expect_lines(int(before[at] * times))
            for tables in others:
                tables[at].expect_lines(int(before[at] * times) // parallel.CORES)
        for told in parallel.run([partial(self._follow_parts, each, rank, rest) for each in (self.tables, *others)]):
            self._note(told)
        for at, (table, first) in enumerate(zip(self.tables, before, strict=True)):
            table.end_lines(first)
            for tables in others:
                table.absorb(tables[at])
            table.rows.give_back()

    def _note(self, told: Words) -> None:
        self.met += int(told[walks.MET])
        self.rounds = max(self.rounds, int(told[walks.ROUNDS]))

    def _follow_parts(self, tables: Sequence[Table], rank: int, parts: Iterator[tuple[int, int]]) -> Words:
        """One part after the other, until somebody has taken the last."""
        relations, nodes, places = self._places(tables)
        scratch = np.zeros((walks.SCRATCH, max(self.graph.nodes + 1, places)), dtype=np.int32)
        scratch[walks.OWNERS] = -1
        told = np.zeros(walks.TOLD, dtype=np.int64)
        told[walks.RANK_BEFORE] = rank
        for told[walks.GROUP], told[walks.LAST_GROUP] in parts:
            while told[walks.GROUP] < told[walks.LAST_GROUP]:
                told[walks.FUEL] = MET
                walks.follow_walks(
                    told,
                    relations,
                    self.columns,
                    self.groups.begins,
                    self.groups.words,
                    self.groups.bands,
                    self.firsts,
                    self.graph.begins,
                    self.graph.targets,
                    nodes,
                    self.words,
                    scratch,
                )
                if told[walks.TABLE] >= 0:
                    tables[told[walks.TABLE]].rows.make_lines(int(told[walks.WANTED]))
                self.look()
        return told

    def _places(self, tables: Sequence[Table]) -> tuple[Lines, Ids, int]:
        """What is told of relations and of nodes, and how many places lines of several rows are kept at."""
        relations: Lines = np.zeros((len(tables), 4), dtype=np.int64)
        nodes: Ids = np.zeros((2, self.graph.nodes), dtype=np.int32)
        places = 0
        for at, (name, table) in enumerate(zip(self.walk.walker, tables, strict=True)):
            words, first, bits = self.graph.values[name].words, self.graph.offsets[name], table.fields[BITS]
            band = self.walk.band(name)
            if band >= 0:
                own = np.arange(len(words), dtype=np.int32) << (BAND_BITS - bits)
                more = len(words) << (BAND_BITS - bits)
            else:
                own = np.cumsum(np.diff(words >> bits, prepend=words[:1] >> bits) != 0, dtype=np.int32)
                more = int(own[-1]) + 1 if len(own) else 0
            most = more if bits and band < 0 else len(words)
            nodes[0, first : first + len(words)], nodes[1, first : first + len(words)] = at, own + places
            relations[at] = (table.address, self.walk.walker[name], band, most)
            places += more
        return relations, nodes, places
