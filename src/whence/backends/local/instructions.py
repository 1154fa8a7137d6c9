"""Instructions of the machine, for any tables, and as they are run on those of one backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import machine
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.bundles import Source
from whence.backends.local.cells import Cells
from whence.backends.local.choices import Choice, Choosing
from whence.backends.local.memory import address_of
from whence.backends.local.sieves import AREA, AREAS
from whence.backends.local.sieving import Placed, Sieving
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.engine.protocol import Forbid
from whence.lang.sizes import refuse_structure
from whence.lang.types import Kind
from whence.plan.steps import Check, Join

BUFFER = 1 << 16


class Scratch:
    """Memory that plans share while they run, which they do one at a time."""

    def __init__(self) -> None:
        self.memory: dict[str, NDArray[np.int64]] = {}

    def array(self, use: str, *shape: int) -> Words:
        size = int(np.prod(shape))
        if use not in self.memory or len(self.memory[use]) < size:
            self.memory[use] = np.empty(2 * size, dtype=np.int64)
        return self.memory[use][:size].reshape(shape)


class Needs(NamedTuple):
    """How much memory instructions work in: widths are in words."""

    joins: int
    registers: int
    key: int
    head: int
    sieves: int


class Workspace:
    """The memory that a plan works in, whoever runs it."""

    def __init__(self, needs: Needs, scratch: Scratch) -> None:
        self.blocks = scratch.array("blocks", needs.joins + 1, needs.registers + machine.RANKS, machine.BLOCK)
        self.keys = scratch.array("keys", needs.key * machine.BLOCK)
        self.pairs = scratch.array("pairs", 2, machine.BLOCK)
        self.heads: Lines = scratch.array("heads", BUFFER, needs.head)
        self.head_ranks: Ids = scratch.array("ranks", BUFFER).view(np.int32)[:BUFFER]
        self.state: Words = np.zeros(machine.SIZES + 3 * needs.joins, dtype=np.int64)
        self.state[machine.LEVELS] = needs.joins
        self.marks = scratch.array("marks", AREAS + AREA * needs.sieves) if needs.sieves else self.state
        self.state[machine.MARKS] = address_of(self.marks)
        depths, registers, _ = self.blocks.shape
        # For compiled loops that run plans: the arrays, in the order that `plans` tells.
        self.described = [
            *(address_of(self.state), len(self.state)),
            *(address_of(self.blocks), depths, registers, address_of(self.keys), len(self.keys)),
            *(address_of(self.pairs), address_of(self.heads), self.heads.shape[1], address_of(self.head_ranks)),
        ]


@dataclass(frozen=True, eq=False)
class Instructions:
    """What a plan does, whatever the tables are.

    In `code` the places are left out that hold the address of a relation's `rows`, of its rows found by value (`slots`), of an
    index on some columns, and the flags (`masks`) that a step does not want to see. `choices` are joins that may be made with
    other atoms, `sieves` what spares them rows, `constants` the words in it that a dictionary gave out. What makes records,
    branches or lists runs in one thread only. With a `source`, heads are those of bundles.
    """

    code: Words
    rows: Sequence[tuple[int, str]]
    slots: Sequence[tuple[int, str]]
    indexes: Sequence[tuple[int, str, tuple[int, ...]]]
    masks: Sequence[tuple[int, Join | Check]]
    choices: Sequence[Choice]
    sieves: Sequence[Placed]
    makes: Sequence[Cells]
    constants: frozenset[tuple[Kind, int]]
    needs: Needs
    source: Source | None = None
    workspaces: dict[Scratch, Workspace] = field(default_factory=dict)

    def on(self, tables: Mapping[str, Table], scratch: Scratch) -> Assembled:
        """To be run on tables."""
        code = self.code.copy()
        for place, name in self.rows:
            code[place] = tables[name].address
        for place, name in self.slots:
            code[place] = tables[name].by_value()
        for place, name, columns in self.indexes:
            code[place] = tables[name].index(columns).address
        workspace = self.workspaces.get(scratch)
        if workspace is None:
            workspace = self.workspaces[scratch] = Workspace(self.needs, scratch)
        choosing = [
            Choosing(each, tables[each.relation].index(each.columns), [tables[name] for _, name, _ in each.others])
            for each in self.choices
        ]
        joined = [tables[name].index(columns) for _, name, columns in self.indexes]
        sieving = [
            Sieving(each, joined[: each.joins + len(each.levels) - 1], [tables[name] for _, name, _ in each.levels])
            for each in self.sieves
        ]
        indexed = {name: tables[name] for _, name, _ in self.indexes}
        indexed |= {name: tables[name] for each in self.choices for _, name, _ in each.others}
        indexed |= {name: tables[name] for each in self.sieves for _, name, _ in each.levels}
        source = None if self.source is None else tables[self.source.relation]
        return Assembled(self, code, tuple(indexed.values()), choosing, sieving, workspace, source)


@dataclass(slots=True, eq=False)
class Assembled:
    """Instructions with the addresses of tables in their places; `tables` are those whose indexes they use, or will if they
    come to a choice or a sieve, and `source` is the one whose rows are passed on in bundles.
    """

    instructions: Instructions
    code: Words
    tables: tuple[Table, ...]
    choosing: list[Choosing]
    sieving: list[Sieving]
    workspace: Workspace
    source: Table | None = None
    is_last: bool = False

    def start(self, forbid: Forbid, count: int = 0) -> None:
        """From so many rows on, if that is known."""
        for table in self.tables:
            table.link_new()
        if self.choosing:
            self.choosing = [each for each in self.choosing if not each.begins(self.code)]
        if self.sieving:
            self.sieving = [each for each in self.sieving if not each.begins(self.code, count)]
        for place, step in self.instructions.masks:
            self.code[place] = forbid(step)
        state = self.workspace.state
        state[machine.NEXT] = state[machine.DEPTH] = state[machine.RESUME] = 0
        self.is_last = False

    def next_heads(self, ids: Ids) -> tuple[Lines, Ids]:
        """More heads, as views that the next call overwrites; `is_last` tells whether that is all. If it is not, it may have
        stopped for room.
        """
        work = self.workspace
        count = machine.enumerate_heads(
            self.code, ids, work.blocks, work.keys, work.pairs, work.state, work.heads, work.head_ranks
        )
        self.is_last = work.state[machine.STATUS] == machine.DONE
        return work.heads[:count], work.head_ranks[:count]

    def make_room(self) -> None:
        """If that is what the machine stopped for. Raises `TooLarge` if it was a value."""
        state = self.workspace.state
        status = state[machine.STATUS]
        if status == machine.IS_TOO_LARGE:
            raise refuse_structure()
        if status == machine.NEEDS_ROOM:
            makes = self.instructions.makes
            next(each for each in makes if each.address == state[machine.WANTS]).make_room(machine.BLOCK)

    @property
    def described(self) -> list[int]:
        """For compiled loops that run it: its arrays, in the order that `plans` tells."""
        source, address = self.instructions.source, 0 if self.source is None else self.source.address
        is_recursive = source is not None and source.recursive
        return [address_of(self.code), len(self.code), *self.workspace.described, address, int(is_recursive)]
