"""The groups of aggregates at one node: their rows, and the row that each has in the relation that holds the groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from whence.lang.types import Tuple
from whence.network.compiled import Compiled, Grouping
from whence.network.triggers import Present


@dataclass
class _Group:
    rows: dict[Tuple, int] = field(default_factory=dict)
    shown: tuple[Tuple, int] | None = None  # the row that the group has now, and its rank


class Derive(Protocol):
    def __call__(self, table: int, row: Tuple, rank: int, *, is_new: bool) -> None: ...


class Groups:
    """Groups that rows have come to or gone from are aggregated again when nothing else is to be done.

    The row of a group counts as derived once. In a recursion its rank is the lowest among the rows with the group's value.
    """

    def __init__(self, compiled: Compiled, present: Present, derive: Derive) -> None:
        self.groupings = compiled.groupings
        self.present = present
        self.derive = derive
        self.groups: list[dict[Tuple, _Group]] = [{} for _ in self.groupings]
        self.touched: dict[tuple[int, Tuple], None] = {}
        self.of_rows: list[list[int]] = [[] for _ in present]
        self.of_context: list[list[int]] = [[] for _ in present]
        for number, grouping in enumerate(self.groupings):
            self.of_rows[grouping.rows].append(number)
            if grouping.context is not None:
                self.of_context[grouping.context].append(number)
            if grouping.spec.is_single:
                self.touched[number, ()] = None

    def change(self, table: int, row: Tuple, rank: int, *, is_there: bool) -> None:
        """A row of a table has come or gone."""
        for number in self.of_rows[table]:
            key = self.groupings[number].key(row)
            group = self.groups[number].get(key)
            if group is None:
                group = self.groups[number][key] = _Group()
            if is_there:
                group.rows[row] = rank
            else:
                del group.rows[row]
            self.touched[number, key] = None
        for number in self.of_context[table]:
            self.touched[number, row] = None

    def settle(self) -> None:
        touched, self.touched = self.touched, {}
        for number, key in touched:
            grouping = self.groupings[number]
            group = self.groups[number].get(key)
            if group is None:
                group = self.groups[number][key] = _Group()
            before, group.shown = group.shown, self._result(grouping, key, group)
            if before != group.shown:
                if before is not None:
                    self.derive(grouping.output, *before, is_new=False)
                if group.shown is not None:
                    self.derive(grouping.output, *group.shown, is_new=True)
            if not group.rows and group.shown is None:
                del self.groups[number][key]

    def _result(self, grouping: Grouping, key: Tuple, group: _Group) -> tuple[Tuple, int] | None:
        spec = grouping.spec
        asked = 0
        if grouping.context is not None:
            if key not in self.present[grouping.context]:
                return None
            asked = self.present[grouping.context][key] if spec.recursive else 0
        if not group.rows and not spec.has_empty_groups:
            return None
        value = grouping.value(group.rows)
        if value is None:
            return None
        rank = 0
        if spec.recursive:
            column = spec.value_column
            assert column is not None
            rank = min(rank for row, rank in group.rows.items() if row[column] == value)
        return grouping.result(key, value), max(rank, asked)
