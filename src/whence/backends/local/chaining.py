"""Rounds of chains (see `chains`): what makes plans chains, the grids they are on, and taking rounds.

A round looks at all words of the grids, however few rows it begins with, and at few of them more than once. So it is for rounds
of many rows, over values that are few and lie close together; the others are left to those who follow rows one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from whence.backends.local import chains, parallel
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.blocks import BLOCK_BITS, may_share
from whence.backends.local.hashing import BITS, CAPACITY, STEP, USED
from whence.backends.local.numbering import Values, are_wide
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.engine.protocol import BATCH, HIDDEN, Enough, Forbid, Reconsider
from whence.plan.steps import DeltaPlan, Join, Slot

# Grids have at most so many words, and so many for each row that is there; and rows of other relations are so many at the most.
LARGEST, WORDS_A_ROW, OTHERS_A_ROW = 1 << 20, 4, 16
# Where rows share no lines so far, grids have so many words at the most: each may become a line, whatever it has in the end.
LARGEST_SCATTERED = 1 << 18
# Rounds begin with one row for so many words, but for some: those that together look at so many words for each row that is there.
WORDS_A_NEW_ROW, PATIENCE = 16, 8
# So many rows at least make it worth its while, and one of so many that are there.
LARGE, SHARE = 1 << 10, 8
# So many words are looked at in one call before others have a say.
FUEL = 1 << 24
# A count takes 31 bits. One by one, nobody gets there; by multiplying ways, one might.
COUNTABLE = 1 << 31


class Step(NamedTuple):
    """A relation that a path goes through, from its first column to its last or the other way round.

    `join` is how the plan sees it, None where the plan begins.
    """

    relation: str
    is_turned: bool
    join: Join | None


Chain = tuple[Step, ...]


def find_chains(plans: Sequence[DeltaPlan], arities: Mapping[str, int]) -> list[Chain] | None:
    """The path of each plan, if all of them are chains. Relations of the recursion, whose arities these are, are not turned."""
    if any(arity != 2 for arity in arities.values()):
        return None
    found = [_find_chain(plan) for plan in plans]
    known = [chain for chain in found if chain is not None]
    if len(known) < len(found) or any(step.is_turned and step.relation in arities for each in known for step in each):
        return None
    return known


def _find_chain(plan: DeltaPlan) -> Chain | None:
    ends = [operand.number for operand in plan.head if isinstance(operand, Slot)]
    scan = plan.scan
    if scan is None or scan.equals or scan.same or len(ends) != 2:
        return None
    atoms: list[tuple[str, dict[int, int], Join | None]] = [(scan.relation, dict(scan.binds), None)]
    for step in plan.steps:
        if not isinstance(step, Join) or step.same:
            return None
        slots = {column: operand.number for column, operand in step.key if isinstance(operand, Slot)}
        atoms.append((step.relation, slots | dict(step.binds), step))
    if any(slots.keys() != {0, 1} or slots[0] == slots[1] for _, slots, _ in atoms):
        return None
    chain: list[Step] = []
    place, passed = ends[0], {ends[0]}
    while atoms:
        touching = [atom for atom in atoms if place in atom[1].values()]
        if len(touching) != 1:
            return None
        relation, slots, join = touching[0]
        is_turned = slots[1] == place
        place = slots[0] if is_turned else slots[1]
        if place in passed:
            return None
        passed.add(place)
        chain.append(Step(relation, is_turned, join))
        atoms.remove(touching[0])
    return tuple(chain) if place == ends[1] else None


class Seen(NamedTuple):
    """Rows that a step sees: of a relation of the recursion those of its `part`, of others those without `forbid`."""

    relation: str
    part: int = chains.NOW
    is_turned: bool = False
    forbid: int = 0


def _seen(chain: Chain, forbid: Forbid, relations: Sequence[str]) -> list[Seen]:
    """What the steps of a plan see, whose driver's turn it is: relations before it are no batch any more."""
    driver = next(relations.index(step.relation) for step in chain if step.join is None)
    seen: list[Seen] = []
    for step in chain:
        if step.join is None:
            seen.append(Seen(step.relation, chains.CAME))
        elif step.relation in relations:
            is_before = forbid(step.join) & BATCH and relations.index(step.relation) >= driver
            seen.append(Seen(step.relation, chains.BEFORE if is_before else chains.NOW))
        else:
            seen.append(Seen(step.relation, chains.NOW, step.is_turned, forbid(step.join)))
    return seen


class Universe:
    """All values of some columns as nodes, in order; and the bit of each, in words for those that differ in their last bits."""

    def __init__(self, words: Words) -> None:
        self.nodes = Values(words)
        self.words: Words = self.nodes.words
        self.highs = Values(self.words >> BLOCK_BITS)
        self.nodes_at: Ids = np.full(len(self.highs.words) << BLOCK_BITS, -1, dtype=np.int32)
        places = self.highs.find(self.words >> BLOCK_BITS).astype(np.int64)
        self.bits: Words = (places << BLOCK_BITS) | (self.words & ((1 << BLOCK_BITS) - 1))
        self.nodes_at[self.bits] = np.arange(len(self.words), dtype=np.int32)

    @property
    def size(self) -> int:
        """The words of a grid."""
        return len(self.words) * len(self.highs.words)

    def cells(self, firsts: Words, lasts: Words) -> Words:
        """Where in a grid the words of rows are."""
        places = self.highs.find(lasts >> BLOCK_BITS).astype(np.int64)
        cells: Words = self.nodes.find(firsts).astype(np.int64) * len(self.highs.words) + places
        return cells

    def grid(self, firsts: Words, lasts: Words) -> Lines:
        found = np.zeros(self.size, dtype=np.int64)
        bits = np.left_shift(np.int64(1), lasts & ((1 << BLOCK_BITS) - 1))
        np.bitwise_or.at(found, self.cells(firsts, lasts), bits)
        return found.reshape(len(self.words), len(self.highs.words))


def are_many(new: int, rows: int) -> bool:
    """Whether so many new rows of so many are worth a look at the values of all."""
    return new >= LARGE and new * SHARE >= rows


def begin_chaining(
    relations: Sequence[str],
    tables: Mapping[str, Table],
    plans: Sequence[tuple[DeltaPlan, Chain, Forbid]],
    queued: Sequence[Ids],
    *,
    look: Callable[[], None],
    reconsider: Reconsider[Ids],
) -> Chaining | None:
    """If rounds that begin with these rows are worth their while. Rows of the tables share lines from then on."""
    own = [tables[name] for name in relations]
    rows, new = sum(map(len, own)), sum(map(len, queued))
    are_shared = all(table.fields[BITS] == BLOCK_BITS for table in own)
    if not are_shared and not may_share():
        return None
    seen = [_seen(chain, forbid, relations) for _, chain, forbid in plans]
    others = tuple(dict.fromkeys(each for steps in seen for each in steps if each.relation not in relations))
    if sum(len(tables[each.relation]) for each in others) > OTHERS_A_ROW * rows:
        return None
    columns = [_columns(tables[each.relation], each.forbid) for each in others]
    most = LARGEST if are_shared else LARGEST_SCATTERED
    most = min(most, WORDS_A_ROW * rows, WORDS_A_NEW_ROW * new // len(plans))
    if columns and Universe(np.concatenate(columns, axis=None)).size > most:
        return None  # without a look at all rows
    universe = Universe(np.concatenate([*columns, *map(_columns, own)], axis=None))
    if universe.size > most:
        return None
    # A row has at most as many derivations by a plan, in all rounds, as there are ways to choose the nodes between its ends.
    if sum(len(universe.words) ** (len(steps) - 1) for steps in seen) >= COUNTABLE:
        return None
    if not are_shared:
        batches = _share_lines(relations, own, queued, reconsider)
        if batches is None:
            return None
        queued = batches
    grids = [
        universe.grid(*(pair[::-1] if each.is_turned else pair)) for each, pair in zip(others, columns, strict=True)
    ]
    numbers = {each: chains.PARTS * len(relations) + at for at, each in enumerate(others)}
    heads = [relations.index(plan.rule.head.relation) for plan, _, _ in plans]
    steps = [
        [
            numbers[each] if each in numbers else chains.PARTS * relations.index(each.relation) + each.part
            for each in line
        ]
        for line in seen
    ]
    chosen, described = dict(zip(relations, own, strict=True)), list(zip(heads, steps, strict=True))
    return Chaining(chosen, universe, grids, described, queued, look=look, chose_lines=are_shared)


def _columns(table: Table, forbid: int = 0) -> Lines:
    """Those of the rows without these flags, one under the other."""
    ids = table.ids(forbid)
    return np.stack([table.column(ids, 0), table.column(ids, 1)])


def _share_lines(
    relations: Sequence[str], tables: Sequence[Table], queued: Sequence[Ids], reconsider: Reconsider[Ids]
) -> list[Ids] | None:
    """Has rows of tables share lines. What the queued ones are called then; None if rows may get no other numbers now."""
    for table in tables:
        table.is_to_share = True
    moved = reconsider()
    for table in tables:
        table.is_to_share = False
    if any(table.fields[BITS] != BLOCK_BITS for table in tables):
        return None
    return [moved[name][ids] if name in moved else ids for name, ids in zip(relations, queued, strict=True)]


def _make_lines(table: Table, more: int, most: int) -> None:
    """Room for so many more lines, and for many more if that is not there, of which there will be so many at the most."""
    used = table.fields[USED]
    if table.fields[CAPACITY] - used < more:
        table.rows.make_lines(max(more, min(3 * used, most - used)))


class Chaining:
    """Rounds of chains, on tables in which 64 rows share a line. A plan is the table that it derives and the grids of its steps.

    `added` are the rows that became present and came in this epoch, `queued` those that are to become present next.
    `chose_lines`: the tables have shared lines of their own choice, and not because they were asked to.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        universe: Universe,
        others: Sequence[Lines],
        plans: Sequence[tuple[int, Sequence[int]]],
        queued: Sequence[Ids],
        *,
        look: Callable[[], None],
        chose_lines: bool,
    ) -> None:
        self.relations, self.tables, self.universe = list(tables), list(tables.values()), universe
        self.queued, self.look, self.chose_lines = list(queued), look, chose_lines
        self.added: list[list[Ids]] = [[ids[:0]] for ids in queued]
        self.rounds = self.met = 0
        self.last = -1  # the number of a plan that derived something new last
        longest = max(len(steps) for _, steps in plans)
        self.plans: Lines = np.zeros((len(plans), chains.STEPS + longest), dtype=np.int64)
        for line, (head, steps) in zip(self.plans, plans, strict=True):
            line[: chains.STEPS + len(steps)] = (head, len(steps), *steps)
        nodes, words = len(universe.words), len(universe.highs.words)
        self.lines_of: Ids = np.full((len(tables) * nodes, words), -1, dtype=np.int32)
        # Of each table, the rows that are present, and those that will come with the next round.
        self.present, self.following = np.zeros((2, len(tables), nodes, words), dtype=np.int64)
        own = chains.PARTS * len(tables)
        packed = own + len(others)
        self.leading: Lines = np.zeros((packed, words), dtype=np.int64)
        self.begins: Lines = np.zeros((packed, nodes + 1), dtype=np.int64)
        self.places, self.words = (
            np.empty((packed, universe.size), np.int32),
            np.empty((packed, universe.size), np.int64),
        )
        for at, grid in enumerate(others):
            self._pack(grid, self.following[0], own + at, 1)
        for at, (table, batch) in enumerate(zip(self.tables, queued, strict=True)):
            ids = table.ids()
            cells = universe.cells(table.column(ids, 0), table.column(ids, 1))
            self.lines_of[at * nodes : (at + 1) * nodes].reshape(-1)[cells] = ids >> BLOCK_BITS
            for grids, rows in ((self.present, table.ids(HIDDEN)), (self.following, batch)):
                grids[at] = universe.grid(table.column(rows, 0), table.column(rows, 1))

    def _pack(self, present: Lines, following: Lines, first: int, parts: int) -> None:
        bits, packed = self.universe.bits, (self.leading, self.begins, self.places, self.words)
        chains.pack(present, following, first, parts, bits, *packed)

    def follow(self, rank: int, enough: Enough) -> None:
        """Takes rounds as long as they are worth their while, with the ranks after this one, or until it is enough."""
        is_wide, before = are_wide(self.universe.words), [table.fields[USED] for table in self.tables]
        for table in self.tables:
            if is_wide and table.fields[STEP] == 1:
                table.rows.widen()
        rows = sum(map(len, self.tables))
        price, patience = self.universe.size * len(self.plans), PATIENCE * rows
        while new := sum(map(len, self.queued)):
            if self.rounds >= enough.rounds or sum(map(len, self.tables)) - rows >= enough.rows:
                break
            if new * WORDS_A_NEW_ROW < price:
                patience -= price
                if patience < 0:
                    break
            self._round(rank + self.rounds + 1, parallel.threads(new))
        for table, first in zip(self.tables, before, strict=True):
            table.end_lines(first)
            table.forget_links()

    def leave(self, reconsider: Reconsider[Ids]) -> tuple[dict[str, Ids], dict[str, Ids]]:
        """The rows that came, and those that are next. Tables that were asked to share lines choose for themselves again."""
        found = [dict(zip(self.relations, map(np.concatenate, self.added), strict=True))]
        found.append({name: ids for name, ids in zip(self.relations, self.queued, strict=True) if len(ids)})
        if not self.chose_lines:
            for table in self.tables:
                table.looked_at = 0
            for name, moved in reconsider().items():
                for batches in found:
                    if name in batches:
                        batches[name] = moved[batches[name]]
        return found[0], found[1]

    def _round(self, rank: int, threads: int) -> None:
        self.rounds += 1
        for at, (table, batch) in enumerate(zip(self.tables, self.queued, strict=True)):
            self.added[at].append(table.activate(batch, rank, is_batch=False))
            self._pack(self.present[at], self.following[at], chains.PARTS * at, chains.PARTS)
        addresses = np.array([table.address for table in self.tables], dtype=np.int64)
        turns, told = np.zeros(1, dtype=np.int64), np.zeros((threads, chains.TOLD), dtype=np.int64)
        told[:, chains.RANK], told[:, chains.TURN] = rank, -1
        ends = np.zeros((threads, len(self.tables) + 1), dtype=np.int64)
        queues = [np.empty(1 << 16, dtype=np.int32) for _ in range(threads)]
        nodes, words = len(self.universe.words), len(self.universe.highs.words)

        def follow(thread: int) -> None:
            chains.follow_chains(
                *(told[thread], turns, threads, addresses, self.plans),
                *(self.leading, self.begins, self.places, self.words, self.universe.nodes_at),
                *(self.universe.words, self.universe.highs.words, self.following, self.lines_of),
                *(queues[thread], ends[thread, 1:]),
            )

        while min(told[:, chains.TURN]) < nodes * len(self.tables):
            for table in self.tables:
                _make_lines(table, threads * words, self.universe.size)
            for at, queue in enumerate(queues):
                if len(queue) - told[at, chains.LISTED] < words << BLOCK_BITS:
                    queues[at] = np.concatenate([queue, np.empty(len(queue) + (words << BLOCK_BITS), dtype=np.int32)])
            told[:, chains.FUEL] = FUEL
            parallel.run([partial(follow, thread) for thread in range(threads)])
            self.look()
        self.met += int(told[:, chains.MET].sum())
        ends = np.maximum.accumulate(ends, axis=1)
        for head in range(len(self.tables)):
            cuts = zip(queues, ends[:, head].tolist(), ends[:, head + 1].tolist(), strict=True)
            self.queued[head] = np.concatenate([queue[begin:end] for queue, begin, end in cuts])
        for number, head in enumerate(self.plans[:, chains.DERIVED].tolist()):
            if len(self.queued[head]):
                self.last = number
