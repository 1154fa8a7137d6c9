"""Joins that may be made with any of several atoms: cyclic bodies.

    triangle(x, y, z) :- link(x, y), link(y, z), link(z, x).

Once x and y are known, z is among the rows of `link(y, z)` and among those of `link(z, x)`. A plan goes through one of these
lists and asks for each value whether it is in the other. Where one is long, as at the hubs of networks, the other may be short:
if the shorter is taken every time, triangles take no longer than the most of them that so many links can have.

Finding the shortest takes a look-up in each index, and an index for each atom. So the machine is told to choose only once the
lists that it would take otherwise are long, or one of them is much longer than the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from whence.backends.local import machine
from whence.backends.local.hashing import USED
from whence.backends.local.index import Index
from whence.backends.local.links import ROWS
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.lang.program import Atom
from whence.plan.steps import Check, Compare, DeltaPlan, Join, Slot

# Of so many atoms at the most is one chosen.
MOST = 4
# Lists of so many rows are worth look-ups in other indexes; so is one if it is so many times as long as most.
LONG, LONGER = 32, 4


def alternatives(plan: DeltaPlan, at: int) -> list[Join]:
    """The atoms behind a join that only ask for the value it finds, as joins that would find it themselves.

    All columns are either bound or have that value, so that no list has a value twice and any of them will do.
    """
    join = plan.steps[at]
    assert isinstance(join, Join)
    atom = plan.rule.body[join.position]
    assert isinstance(atom, Atom)
    if len(join.binds) != 1 or join.same or len(join.key) + 1 < len(atom.args):
        return []
    value = Slot(join.binds[0][1])
    found: list[Join] = []
    for step in plan.steps[at + 1 :]:
        if not isinstance(step, Check | Compare):
            break
        if isinstance(step, Check) and step.present and len(step.args) > 1 and step.args.count(value) == 1:
            column = step.args.index(value)
            key = tuple((other, arg) for other, arg in enumerate(step.args) if other != column)
            found.append(Join(step.position, step.relation, False, key, ((column, value.number),)))
    return found[: MOST - 1]


class Choice(NamedTuple):
    """Where the code has the joins to choose from, and where the first of them is, which is made alone otherwise; its index; and
    the places of the indexes of the others.
    """

    place: int
    join: int
    relation: str
    columns: tuple[int, ...]
    others: Sequence[tuple[int, str, tuple[int, ...]]]


@dataclass
class Choosing:
    """A choice that has not been worth it so far."""

    choice: Choice
    index: Index
    others: Sequence[Table]
    looked_at: int = 0

    def begins(self, code: Words) -> bool:
        """Whether it is now: the code then says so. The index knows all rows."""
        rows = int(self.index.handle[ROWS])
        if rows <= max(LONG, 2 * self.looked_at):
            return False
        self.looked_at = rows
        mean = rows / int(self.index.handle[USED])
        if mean <= LONG and self.index.longest() <= max(LONG, LONGER * mean):
            return False
        for (place, _, columns), table in zip(self.choice.others, self.others, strict=True):
            code[place] = table.index(columns).address
        code[self.choice.join + machine.CHOICE] = self.choice.place
        return True
