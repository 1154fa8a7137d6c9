"""Which joins have sieves, and from when on they use them.

    cycle(w, x, y, z) :- start(w), link(w, x), link(x, y), link(y, z), link(z, w).

The last atom asks for each z whether it leads to w, and all lines with the same w ask among the same few: the join that finds z
has a sieve of these. So has the one that finds y, of those values that lead to one of them: two paths meet, and what does not
lie on a cycle is not joined with what comes behind. With w fixed the body is a path, and such sieves are the semi-joins that
make paths take no longer than what there is to be found.

A sieve needs an index on what it asks for. That is made once a join has looked at more rows than are to be put into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from whence.backends.local import machine, sieves
from whence.backends.local.hashing import USED
from whence.backends.local.index import Index
from whence.backends.local.links import ROWS
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.plan.steps import Check, Compare, DeltaPlan, Join, Operand, Slot, bound_by

# A join may look at so many rows for each that an index lacks, before the index is made.
SHARE = 2
# So many looks into a list does it take to be as long as a test of one row.
TEST = 4


class Level(NamedTuple):
    """Values in a column of the rows that agree on `key`, in which None stands for the values of the level before."""

    relation: str
    key: tuple[tuple[int, Operand | None], ...]
    column: int

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for column, _ in self.key)

    @property
    def registers(self) -> set[int]:
        return {operand.number for _, operand in self.key if isinstance(operand, Slot)}


class Sieve(NamedTuple):
    """Only rows whose column has a value of the last level can come to anything."""

    column: int
    levels: tuple[Level, ...]

    @property
    def registers(self) -> set[int]:
        return set().union(*(level.registers for level in self.levels))


def find_sieve(plan: DeltaPlan, at: int) -> Sieve | None:
    """The one of a join whose values change least from line to line."""
    assert plan.scan is not None
    bound = {register: -1 for _, register in plan.scan.binds}
    for place, step in enumerate(plan.steps[:at]):
        bound |= dict.fromkeys(bound_by(step), place)
    return min(_sieves(plan, at, bound), key=lambda each: _last_bound(each, bound), default=None)


def _last_bound(sieve: Sieve, bound: Mapping[int, int]) -> tuple[int, int]:
    return max((bound[register] for register in sieve.registers), default=-1), len(sieve.levels)


def _sieves(plan: DeltaPlan, at: int, bound: Mapping[int, int]) -> Iterator[Sieve]:
    """Those of a join that ask for nothing but its values and what was bound before another step."""
    join = plan.steps[at]
    assert isinstance(join, Join)
    columns: dict[Operand, int] = {Slot(register): column for column, register in join.binds}

    def unbound(operands: Sequence[Operand]) -> list[int]:
        return [at for at, each in enumerate(operands) if isinstance(each, Slot) and each.number not in bound]

    for place, step in enumerate(plan.steps[at + 1 :], start=at + 1):
        if isinstance(step, Check) and step.present:
            met = unbound(step.args)
            if len(met) == 1 and step.args[met[0]] in columns and len(step.args) > 1:
                key = tuple((other, arg) for other, arg in enumerate(step.args) if other != met[0])
                yield Sieve(columns[step.args[met[0]]], (Level(step.relation, key, met[0]),))
        elif isinstance(step, Join):
            operands = [operand for _, operand in step.key]
            met = unbound(operands)
            if len(met) == 1 and operands[met[0]] in columns:
                for behind in _sieves(plan, place, bound):
                    rest = [pair for number, pair in enumerate(step.key) if number != met[0]]
                    met_at, operand = step.key[met[0]]
                    reverse = tuple(sorted([(behind.column, None), *rest], key=lambda pair: pair[0]))
                    yield Sieve(columns[operand], (*behind.levels, Level(step.relation, reverse, met_at)))
            return
        elif not isinstance(step, Check | Compare):
            return


class Placed(NamedTuple):
    """Where the code has a sieve, and the join that it is of; the number of joins up to that one; the places of the indexes of
    its levels."""

    place: int
    join: int
    joins: int
    levels: Sequence[tuple[int, str, tuple[int, ...]]]


@dataclass
class Sieving:
    """A sieve that has not been worth it so far. `joined` are the indexes of the joins up to its own and of those behind that it
    spares; they know all rows."""

    placed: Placed
    joined: Sequence[Index]
    tables: Sequence[Table]

    def begins(self, code: Words, count: int) -> bool:
        """Whether it is now that the plan begins with so many rows: the code then says so."""
        place, join, joins, levels = self.placed
        means = [_mean(each) for each in self.joined]
        looked = float(count)
        for mean in means[:joins]:
            looked *= mean
        missing = {
            (relation, columns): len(table)
            for (_, relation, columns), table in zip(levels, self.tables, strict=True)
            if columns not in table.indexes
        }
        if looked + int(code[place + sieves.LOOKED]) <= SHARE * sum(missing.values()):
            return False
        indexes = [table.index(columns) for (_, _, columns), table in zip(levels, self.tables, strict=True)]
        for (at, _, _), index in zip(levels, indexes, strict=True):
            code[at] = index.address
        code[place + sieves.COST] = sieves.LOOK_UP + round(_mean(indexes[0]))
        worth = 1.0
        for mean in means[joins:]:
            worth *= mean
        code[place + sieves.WORTH] = TEST * max(1, round(worth))
        code[join + machine.SIEVE] = place
        return True


def _mean(index: Index) -> float:
    """How many rows a key has."""
    return float(index.handle[ROWS]) / max(1, int(index.handle[USED]))
