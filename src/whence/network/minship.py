"""MinShip: which of the derivations of a row that lives elsewhere its home is told of, and when.

The first is told at once, so that rows travel as fast as they can. What later ones add is *held back*, unless the annotation that
was told absorbs it. It is told when what was told is dead, after some time, or when much is held back: lazy shipping only waits
for the first of these. What takes the place of what is dead goes out before the news of the death, on the same channel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from whence.network.aggregate_selection import AggregateSelection
from whence.network.annotations import Algebra, Key, Rename, Variable

A = TypeVar("A")
News = list[tuple[Key, A]]


@dataclass(frozen=True)
class Policy:
    """`period`: after how many seconds, and `capacity`: from how many rows on, what was held back is told; None: not for that."""

    period: float | None = None
    capacity: int | None = None


class MinShip(Generic[A]):
    """What was told of each row that is derived here and lives elsewhere, and what was not. A row that an aggregate selection
    prunes is not told of at all."""

    def __init__(
        self, algebra: Algebra[A], policy: Policy, selections: dict[int, AggregateSelection] | None = None
    ) -> None:
        self.algebra = algebra
        self.policy = policy
        self.selections = selections or {}
        self.told: dict[Key, A] = {}
        self.held: dict[Key, A] = {}

    def insert(self, key: Key, annotation: A) -> News[A]:
        """A derivation; what is to be told."""
        told, held = self.told.get(key), self.held.get(key)
        known = told if held is None else held if told is None else self.algebra.plus(told, held)
        if known is not None and self.algebra.covers(known, annotation):
            return []
        selection = self.selections.get(key[0])
        if told is None and selection is None:
            self.told[key] = annotation
            return [(key, annotation)]
        self.held[key] = annotation if held is None else self.algebra.plus(held, annotation)
        if selection is not None:
            if known is None:
                selection.insert(key[1])
            return self._tell([key]) if told is None and selection.keeps(key[1]) else []
        if self.policy.capacity is not None and len(self.held) > self.policy.capacity:
            return self.flush()
        return []

    def flush(self) -> News[A]:
        """Everything that was held back, except what is pruned."""
        return self._tell([key for key in self.held if key[0] not in self.selections or self._keeps(key)])

    def _keeps(self, key: Key) -> bool:
        return self.selections[key[0]].keeps(key[1])

    def die(self, dead: Collection[Variable], tables: Collection[int] | None = None) -> News[A]:
        """Variables are dead, of which some tables may speak; what is to be told in place of what was told."""
        alone: list[Key] = []
        for key, annotation in list(self.told.items()):
            if tables is not None and key[0] not in tables:
                continue
            left = self.algebra.without(key, annotation, dead)
            if left is None:
                del self.told[key]
                alone.append(key)
            else:
                self.told[key] = left
        for key, annotation in list(self.held.items()):
            if tables is not None and key[0] not in tables:
                continue
            left = self.algebra.without(key, annotation, dead)
            if left is None:
                del self.held[key]
                alone.append(key)
            else:
                self.held[key] = left
        wanted = dict.fromkeys(key for key in alone if key in self.held and key not in self.told)
        for key in alone:
            selection = self.selections.get(key[0])
            if selection is None or key in self.told or key in self.held:
                continue
            for row, comes in selection.delete(key[1]):
                if comes:
                    wanted[key[0], row] = None
        return self._tell(
            [
                key
                for key in wanted
                if key in self.held and key not in self.told and (key[0] not in self.selections or self._keeps(key))
            ]
        )

    def _tell(self, keys: Iterable[Key]) -> News[A]:
        news = []
        for key in keys:
            held = self.held.pop(key)
            told = self.told.get(key)
            self.told[key] = held if told is None else self.algebra.plus(told, held)
            news.append((key, held))
        return news

    def again(self, keys: Iterable[Key]) -> News[A]:
        """What was told of some rows, for a home that has forgotten it."""
        return [(key, self.told[key]) for key in keys]

    def annotations(self) -> Iterable[A]:
        yield from self.told.values()
        yield from self.held.values()

    def rewrite(self, rename: Rename[A]) -> None:
        for known in (self.told, self.held):
            for key in known:
                known[key] = rename(known[key])
