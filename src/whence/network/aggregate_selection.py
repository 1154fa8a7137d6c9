"""Aggregate selection: of each group only those rows go on that an aggregate may need.

A row that is not the least of its group does not change a minimum, and what is derived from it does not change the minima of
others if extending two rows alike keeps their order, as adding the same to both does. So it is kept, and does not go on. When
what was better goes, the next best are promoted. Rows that are equally good go on together. With several aggregates a row goes on
if any of them needs it. A count, a sum or an average needs all rows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from whence.lang.types import Tuple

Event = tuple[Tuple, bool]  # a row that goes on from now on, or does not any more
EXTREME = ("min", "max")
ADDING = ("count", "sum", "avg")


@dataclass(frozen=True)
class Wanted:
    """An aggregate: `min`, `max`, `count`, `sum` or `avg`, of the values in a column; a count needs none."""

    op: str
    column: int | None = None

    def __post_init__(self) -> None:
        if self.op not in (*EXTREME, *ADDING):
            raise ValueError(f"{self.op} is not an aggregate: there are {', '.join((*EXTREME, *ADDING))}")
        if self.column is None and self.op != "count":
            raise ValueError(f"{self.op} needs a column")


class _Ranking:
    """The values of a group in a column, in order, and the rows that have each."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.rows: dict[Any, dict[Tuple, None]] = {}

    def add(self, value: Any, row: Tuple) -> None:
        if value not in self.rows:
            insort(self.values, value)
            self.rows[value] = {}
        self.rows[value][row] = None

    def remove(self, value: Any, row: Tuple) -> None:
        rows = self.rows[value]
        del rows[row]
        if not rows:
            del self.rows[value]
            del self.values[bisect_left(self.values, value)]

    def best(self, op: str) -> Iterable[Tuple]:
        if not self.values:
            return ()
        return self.rows[self.values[0 if op == "min" else -1]]


class _Group:
    def __init__(self, columns: Iterable[int]) -> None:
        self.rows: dict[Tuple, None] = {}
        self.going: dict[Tuple, None] = {}  # the rows that go on
        self.rankings = {column: _Ranking() for column in columns}


class AggregateSelection:
    """The groups of one table. Rows are inserted when they come, from whichever side, and deleted when they go.

    >>> selection = AggregateSelection((0,), [Wanted("min", 1)])
    >>> selection.insert(("a", 5)), selection.insert(("a", 3)), selection.insert(("a", 4))
    ([(('a', 5), True)], [(('a', 3), True), (('a', 5), False)], [])
    >>> selection.delete(("a", 3))
    [(('a', 4), True), (('a', 3), False)]
    """

    def __init__(self, by: Sequence[int], wanted: Sequence[Wanted]) -> None:
        if not wanted:
            raise ValueError("an aggregate selection needs an aggregate")
        self.by = tuple(by)
        self.wanted = tuple(wanted)
        self.needs_all = any(each.op in ADDING for each in wanted)
        self.columns = {each.column for each in wanted if each.column is not None and each.op in EXTREME}
        self.groups: dict[Tuple, _Group] = {}

    def fresh(self) -> AggregateSelection:
        """The same for another table, with nothing in it."""
        return AggregateSelection(self.by, self.wanted)

    def _key(self, row: Tuple) -> Tuple:
        return tuple(row[column] for column in self.by)

    def keeps(self, row: Tuple) -> bool:
        """Whether a row goes on."""
        group = self.groups.get(self._key(row))
        return group is not None and row in group.going

    def insert(self, row: Tuple) -> list[Event]:
        key = self._key(row)
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = _Group(self.columns)
        if row in group.rows:
            return []
        group.rows[row] = None
        for column, ranking in group.rankings.items():
            ranking.add(row[column], row)
        return self._revise(group)

    def delete(self, row: Tuple) -> list[Event]:
        key = self._key(row)
        group = self.groups.get(key)
        if group is None or row not in group.rows:
            return []
        del group.rows[row]
        for column, ranking in group.rankings.items():
            ranking.remove(row[column], row)
        if not group.rows:
            del self.groups[key]
        return self._revise(group)

    def _revise(self, group: _Group) -> list[Event]:
        """What comes before what goes, so that nobody sees the group without a best row."""
        wanted = [group.rows] if self.needs_all else [self._best(group, each) for each in self.wanted]
        now = {row: None for rows in wanted for row in rows}
        comes = [(row, True) for row in now if row not in group.going]
        goes = [(row, False) for row in group.going if row not in now]
        group.going = now
        return comes + goes

    @staticmethod
    def _best(group: _Group, wanted: Wanted) -> Iterable[Tuple]:
        assert wanted.column is not None
        return group.rankings[wanted.column].best(wanted.op)

    def value(self, key: Tuple, wanted: Wanted) -> Any:
        """The value of an aggregate for a group; None without rows."""
        group = self.groups.get(key)
        if group is None:
            return None
        if wanted.op == "count":
            return len(group.rows)
        assert wanted.column is not None
        values: list[Any] = [row[wanted.column] for row in group.rows]
        match wanted.op:
            case "min":
                return min(values)
            case "max":
                return max(values)
            case "sum":
                return sum(values)
            case _:
                return sum(values) / len(values)
