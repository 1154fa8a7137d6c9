"""The last epochs: what each of them changed, so that views can be seen as they were, and what happened between two epochs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock

from whence.io.changes import Changes
from whence.lang.types import Tuple
from whence.pipeline.report import EpochReport

MAX_ROWS = 400_000
MAX_EPOCHS = 2_000


# Rows that are there and were not, or the other way round.
Came = dict[Tuple, bool]


class NotRetained(ValueError):
    """A question about an epoch that is not known any more, or not yet."""


@dataclass(frozen=True, slots=True)
class Past:
    """An epoch: its report, the seconds since 1970 at its commit, what changed in all relations, and their sizes after it."""

    report: EpochReport
    at: float
    changes: Changes
    sizes: Mapping[str, int]

    @property
    def epoch(self) -> int:
        return self.report.epoch

    def of(self, relation: str) -> tuple[list[Tuple], list[Tuple]]:
        return self.changes.inserted.get(relation, []), self.changes.deleted.get(relation, [])


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows that are in a relation after one epoch and not after another, and the other way round."""

    added: frozenset[Tuple] = frozenset()
    gone: frozenset[Tuple] = frozenset()

    @classmethod
    def of(cls, came: Came) -> Difference:
        added = frozenset(row for row, present in came.items() if present)
        return cls(added, frozenset(came.keys() - added))

    def __len__(self) -> int:
        return len(self.added) + len(self.gone)


def follow(came: Came, inserted: Sequence[Tuple], deleted: Sequence[Tuple]) -> None:
    """One more epoch: what came and goes again, or went and comes again, makes no difference."""
    for rows, present in ((deleted, False), (inserted, True)):
        for row in rows:
            if came.get(row) is (not present):
                del came[row]
            else:
                came[row] = present


class History:
    """Epochs in order, without a gap, up to the last one. Old ones go when their changes have too many rows in all.

    One thread adds epochs, any may look at them.
    """

    def __init__(self, epoch: int, *, max_rows: int = MAX_ROWS, max_epochs: int = MAX_EPOCHS) -> None:
        self._lock = Lock()
        self._past: deque[Past] = deque()
        self._rows = 0
        self._max_rows, self._max_epochs = max_rows, max_epochs
        self._last = epoch
        self.total: Counter[str] = Counter()

    @property
    def last(self) -> int:
        return self._last

    @property
    def oldest(self) -> int:
        """The first epoch whose views are known."""
        with self._lock:
            return self._last - len(self._past)

    def add(self, past: Past) -> None:
        with self._lock:
            assert past.epoch == self._last + 1, "epochs come one after the other"
            self._past.append(past)
            self._last = past.epoch
            self._rows += len(past.changes)
            self.total.update(epochs=1, updates=past.report.updates)
            while self._past and (self._rows > self._max_rows or len(self._past) > self._max_epochs):
                self._rows -= len(self._past.popleft().changes)

    def recall(self, earlier: Sequence[Past]) -> None:
        """Puts epochs before those that are known, as far as there is room; the last of them is the one before the oldest."""
        with self._lock:
            first = self._last - len(self._past)
            for past in reversed(earlier):
                rows = self._rows + len(past.changes)
                if past.epoch != first or rows > self._max_rows or len(self._past) >= self._max_epochs:
                    return
                self._past.appendleft(past)
                self._rows, first = rows, first - 1

    def between(self, after: int, last: int) -> list[Past]:
        """The epochs after one, up to another. Raises NotRetained."""
        with self._lock:
            first = self._last - len(self._past)
            if not (first <= after <= self._last and first <= last <= self._last):
                wrong = after if not first <= after <= self._last else last
                raise NotRetained(f"epochs {first} to {self._last} are known, not {wrong}")
            return list(islice(self._past, after - first, max(after, last) - first))

    def newest(self, number: int) -> list[Past]:
        with self._lock:
            return list(islice(self._past, max(0, len(self._past) - number), None))

    def difference(self, relation: str, start: int, end: int, since: Came | None = None) -> Difference:
        """What turns a relation as it was after `start` into what it was after `end`, which may be the earlier one.

        `since` is what had become of it by `start`, for who wants the difference from before.
        """
        came: Came = dict(since or {})
        for inserted, deleted in self._steps(relation, start, end):
            follow(came, inserted, deleted)
        return Difference.of(came)

    def _steps(self, relation: str, start: int, end: int) -> Iterator[tuple[list[Tuple], list[Tuple]]]:
        if start <= end:
            return (each.of(relation) for each in self.between(start, end))
        return (each.of(relation)[::-1] for each in reversed(self.between(end, start)))
