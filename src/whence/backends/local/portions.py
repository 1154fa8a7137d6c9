"""Recursions that can be followed portion by portion: what follows from some rows has nothing to do with what others lead to.

That is so if no rule joins rows of the stratum with each other, and one column of every relation is handed on from row to row:
the source of paths, say. Then all rounds of the rows with some values there can be run before those of the others, with the same
rows, derivations and ranks. A portion's rows stay in the cache from its first round to its last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from whence.backends.local.arrays import Ids
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.plan.steps import Check, DeltaPlan, Join, Slot

# So many rows begin a portion: fewer would be more calls and rounds, more would not stay in the cache. Where less follows from
# each, they are more.
PORTION, LATER_PORTION = 32, 512
# If so few derivations were met, or so many, the next one is twice or half as large.
LITTLE, MUCH = 1 << 14, 1 << 18
# Fewer rows are left as they are, and so are rows with fewer values. What follows from an update stays in the cache by itself
# unless that is large.
LARGE, LATER_LARGE, MANY = 512, 1 << 14, 16


def handed_on(plans: Sequence[DeltaPlan], relations: Sequence[str]) -> Mapping[str, int] | None:
    """For each relation the column that all plans hand on to what they derive, if there is one."""
    members = frozenset(relations)
    for plan in plans:
        if any(isinstance(step, Join | Check) and step.relation in members for step in plan.steps):
            return None
    first = plans[0].scan
    assert first is not None
    candidates = (_handed_on(plans, first.relation, column) for column, _ in first.binds)
    return next((found for found in candidates if found is not None and found.keys() == members), None)


def _handed_on(plans: Sequence[DeltaPlan], relation: str, column: int) -> dict[str, int] | None:
    """The same, if it is this column of this relation."""
    found = {relation: column}
    waiting = [relation]
    while waiting:
        driver = waiting.pop()
        for plan in plans:
            assert plan.scan is not None
            if plan.scan.relation != driver:
                continue
            slots = [slot for bound, slot in plan.scan.binds if bound == found[driver]]
            head = plan.rule.head.relation
            columns = [
                at for at, operand in enumerate(plan.head) if isinstance(operand, Slot) and operand.number in slots
            ]
            if not columns or found.get(head, columns[0]) not in columns:
                return None
            if head not in found:
                found[head] = columns[0]
                waiting.append(head)
    return found


class Portions:
    """Batches of rows of several tables, cut by the values in a column of each."""

    def __init__(self, batches: Sequence[Ids], tables: Sequence[Table], columns: Sequence[int], size: int) -> None:
        self.size = size
        self.batches: list[Ids] = []
        self.values: list[Words] = []
        for batch, table, column in zip(batches, tables, columns, strict=True):
            values = table.column(batch, column)
            if (values[1:] < values[:-1]).any():
                order = np.argsort(values, kind="stable")
                batch, values = batch[order], values[order]  # noqa: PLW2901
            self.batches.append(batch)
            self.values.append(values)
        self.all_values = np.sort(np.concatenate(self.values), kind="stable")
        self.begins = [0] * len(self.batches)

    def are_many(self) -> bool:
        distinct = 1 + np.count_nonzero(self.all_values[1:] != self.all_values[:-1])
        return bool(len(self.all_values) >= LARGE and distinct >= MANY)

    def next(self) -> list[Ids] | None:
        """All rows that have the next values; None if there are no more."""
        start = sum(self.begins)
        if start == len(self.all_values):
            return None
        highest = self.all_values[min(start + self.size, len(self.all_values)) - 1]
        ends = [int(np.searchsorted(values, highest, "right")) for values in self.values]
        found = [batch[begin:end] for batch, begin, end in zip(self.batches, self.begins, ends, strict=True)]
        self.begins = ends
        return found

    def adapt(self, met: int) -> None:
        """To how many derivations were met in the last one."""
        if met < LITTLE:
            self.size *= 2
        elif met > MUCH:
            self.size = max(PORTION, self.size // 2)

    def shares(self, number: int) -> list[Portions]:
        """What is left in so many parts, each with all rows that have its values."""
        start, end = sum(self.begins), len(self.all_values)
        cuts = [(self.begins, start)]
        for at in range(1, number):
            value = self.all_values[start + (end - start) * at // number]
            begins = [int(np.searchsorted(values, value, "left")) for values in self.values]
            cuts.append((begins, int(np.searchsorted(self.all_values, value, "left"))))
        cuts.append(([len(batch) for batch in self.batches], end))
        return [self._part(begins, ends, begin, end) for (begins, begin), (ends, end) in pairwise(cuts)]

    def _part(self, begins: Sequence[int], ends: Sequence[int], begin: int, end: int) -> Portions:
        part = Portions.__new__(Portions)
        part.size = self.size
        places = [slice(*pair) for pair in zip(begins, ends, strict=True)]
        part.batches = [batch[place] for batch, place in zip(self.batches, places, strict=True)]
        part.values = [values[place] for values, place in zip(self.values, places, strict=True)]
        part.all_values = self.all_values[begin:end]
        part.begins = [0] * len(part.batches)
        return part

    def rest(self) -> list[Ids]:
        return [batch[begin:] for batch, begin in zip(self.batches, self.begins, strict=True)]

    def renumber(self, at: int, moved: Ids) -> None:
        """The rows of a relation are called otherwise from now on."""
        self.batches[at] = moved[self.batches[at]]
