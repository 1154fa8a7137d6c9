"""Lifetimes and windows of base relations: which tuples expire as time goes on or as newer ones come.

The clock is the largest time seen. A tuple inserted at time t lives while t > clock - duration; inserting it again
refreshes it, and of several times the latest counts: what comes late does not shorten a life. A window of rows keeps the
newest tuples, of each value of its `by` columns if it has any. An expiry is a deletion in the epoch that crosses it. What an
epoch did here can be undone until the next one begins.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from whence.lang.program import Relation
from whence.lang.types import Tuple, Value

_STALE = 1024


@dataclass
class Timed:
    """Tuples with the latest time of their insertions; the heap may hold times that were refreshed since, but not many."""

    duration: float
    times: dict[Tuple, float] = field(default_factory=dict)
    heap: list[tuple[float, int, Tuple]] = field(default_factory=list)
    count: int = 0
    before: list[tuple[Tuple, float | None]] = field(default_factory=list)

    def insert(self, row: Tuple, time: float) -> None:
        known = self.times.get(row)
        if known is not None and known >= time:
            return
        self.before.append((row, known))
        self._put(row, time)

    def _put(self, row: Tuple, time: float) -> None:
        self.times[row] = time
        self.count += 1  # breaks ties, since tuples of different kinds do not compare
        heapq.heappush(self.heap, (time, self.count, row))
        if len(self.heap) > 2 * len(self.times) + _STALE:
            self.heap = [(time, number, row) for number, (row, time) in enumerate(self.times.items())]
            heapq.heapify(self.heap)

    def delete(self, row: Tuple) -> None:
        self.before.append((row, self.times.pop(row, None)))

    def expire(self, clock: float) -> Iterator[Tuple]:
        while self.heap and self.heap[0][0] <= clock - self.duration:
            time, _, row = heapq.heappop(self.heap)
            if self.times.get(row) == time:
                self.delete(row)
                yield row

    def undo(self) -> None:
        for row, time in reversed(self.before):
            if time is None:
                self.times.pop(row, None)
            else:
                self._put(row, time)
        self.before.clear()


@dataclass
class _Counted:
    """The newest rows, oldest first, for each value of the `by` columns, with their number among all that came."""

    size: int
    by: tuple[int, ...]
    newest: dict[tuple[Value, ...], dict[Tuple, int]] = field(default_factory=dict)
    count: int = 0
    before: list[tuple[Tuple, int | None]] = field(default_factory=list)

    def insert(self, row: Tuple, _time: float) -> None:
        self.delete(row)
        self.count += 1
        self.newest.setdefault(self._part(row), {})[row] = self.count

    def delete(self, row: Tuple) -> None:
        part = self._part(row)
        rows = self.newest.get(part, {})
        self.before.append((row, rows.pop(row, None)))
        if not rows:
            self.newest.pop(part, None)

    def expire(self, _clock: float) -> Iterator[Tuple]:
        for part in dict.fromkeys(self._part(row) for row, _ in self.before):
            rows = self.newest.get(part, {})
            while len(rows) > self.size:
                oldest = next(iter(rows))
                self.delete(oldest)
                yield oldest

    def undo(self) -> None:
        for row, number in reversed(self.before):
            rows = self.newest.setdefault(self._part(row), {})
            rows.pop(row, None)
            if number is not None:
                rows[row] = number
        for part in {self._part(row) for row, _ in self.before}:
            rows = self.newest.pop(part)
            if rows:
                self.newest[part] = dict(sorted(rows.items(), key=lambda item: item[1]))
        self.before.clear()

    def _part(self, row: Tuple) -> tuple[Value, ...]:
        return tuple(row[column] for column in self.by)


class Windows:
    """The windows and lifetimes of a program's base relations, and its clock."""

    def __init__(self, relations: Mapping[str, Relation]) -> None:
        self.clock = self.clock_before = 0.0
        self.kept: dict[str, list[Timed | _Counted]] = {}
        self.extend(relations)

    def extend(self, relations: Mapping[str, Relation]) -> None:
        """Keeps time for relations that are new."""
        for name, relation in relations.items():
            if name in self.kept:
                continue
            kept: list[Timed | _Counted] = []
            if relation.lifetime is not None:
                kept.append(Timed(relation.lifetime))
            if relation.window is not None and relation.window.time is not None:
                kept.append(Timed(relation.window.time))
            if relation.window is not None and relation.window.rows is not None:
                kept.append(_Counted(relation.window.rows, relation.window.by))
            if kept:
                self.kept[name] = kept

    def forgets(self, relation: str) -> bool:
        return relation in self.kept

    def collect(
        self, updates: Iterable[tuple[str, str, Tuple, float | None]], now: float | None
    ) -> dict[str, dict[Tuple, bool]]:
        """An epoch: the clock moves, and for each tuple spoken of or expired, whether it is to be there afterwards."""
        listed = list(updates)
        wanted: dict[str, dict[Tuple, bool]] = {}
        self.begin()
        self.advance(now)
        for *_, time in listed:
            self.advance(time)
        for op, relation, row, time in listed:
            wanted.setdefault(relation, {})[row] = op == "+"
            if op == "+":
                self.insert(relation, row, time)
            else:
                self.delete(relation, row)
        for relation, row in self.expire():
            wanted.setdefault(relation, {})[row] = False
        return wanted

    def begin(self) -> None:
        """From here on everything can be undone."""
        self.clock_before = self.clock
        for each in self._all():
            each.before.clear()

    def undo(self) -> None:
        self.clock = self.clock_before
        for each in self._all():
            each.undo()

    def _all(self) -> Iterator[Timed | _Counted]:
        return (each for kept in self.kept.values() for each in kept)

    def times(self, relation: str) -> dict[Tuple, float]:
        """The tuples of a relation with a window or lifetime, those of a window of rows oldest first, with when they came."""
        found: dict[Tuple, float] = {}
        for each in self.kept.get(relation, ()):
            if isinstance(each, _Counted):
                found = {row: found.get(row, 0.0) for rows in each.newest.values() for row in rows}
            else:
                found = dict(each.times)
        return found

    def advance(self, time: float | None) -> None:
        if time is not None:
            self.clock = max(self.clock, time)

    def insert(self, relation: str, row: Tuple, time: float | None) -> None:
        for each in self.kept.get(relation, ()):
            each.insert(row, self.clock if time is None else time)

    def delete(self, relation: str, row: Tuple) -> None:
        for each in self.kept.get(relation, ()):
            each.delete(row)

    def expire(self) -> Iterator[tuple[str, Tuple]]:
        """What expires now, each tuple once."""
        for relation, kept in self.kept.items():
            for each in kept:
                for row in list(each.expire(self.clock)):
                    for other in kept:
                        if other is not each:
                            other.delete(row)
                    yield relation, row
