"""A single block of SQL as the optimizer sees it: relations, what filters them, what joins them, what comes on top."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from whence.optimizer.statistics import Statistics


class ColumnOf(NamedTuple):
    """A column of the relation at this place in `Query.relations`."""

    at: int
    name: str


class Relation(NamedTuple):
    """A table under the name that the query gives it, and the columns that the query needs of it."""

    name: str
    table: str
    columns: frozenset[str]


@dataclass(frozen=True)
class Condition:
    """Whatever else is required of the relations at these places; `share` says which share of rows satisfies it.

    `column` is the one that an index could find the rows by, if the condition compares one column with constants.
    """

    text: str
    places: tuple[int, ...]
    share: Callable[[Statistics], float]
    column: ColumnOf | None = None


@dataclass(frozen=True)
class Query:
    """`equal` are the pairs of columns that are joined. `group` is None without aggregation, `order` is what is asked for."""

    relations: tuple[Relation, ...]
    equal: tuple[tuple[ColumnOf, ColumnOf], ...]
    conditions: tuple[Condition, ...] = ()
    group: tuple[ColumnOf, ...] | None = None
    order: tuple[ColumnOf | str, ...] = ()

    @cached_property
    def classes(self) -> tuple[frozenset[ColumnOf], ...]:
        """Columns that are equal in every result, because joins say so or because others do."""
        found: list[set[ColumnOf]] = []
        for pair in self.equal:
            merged = set(pair).union(*(each for each in found if not each.isdisjoint(pair)))
            found = [each for each in found if each.isdisjoint(pair)] + [merged]
        return tuple(sorted(map(frozenset, found), key=sorted))

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """For each relation, as bits, those that a join or a condition connects it with.

        Parts of the query that nothing connects are connected all with all: only there are there cross products.
        """
        near = [0] * len(self.relations)
        groups = [{column.at for column in each} for each in self.classes]
        groups += [set(condition.places) for condition in self.conditions if len(condition.places) > 1]
        for group in groups:
            together = bits_of(group)
            for at in group:
                near[at] |= together & ~(1 << at)
        parts = self._parts(near)
        for at in range(len(near)):
            near[at] |= sum(part for part in parts if not part >> at & 1)
        return tuple(near)

    def _parts(self, near: Sequence[int]) -> list[int]:
        parts: list[int] = []
        for at in range(len(near)):
            if not any(part >> at & 1 for part in parts):
                parts.append(reach(1 << at, (1 << len(near)) - 1, near))
        return parts

    def at(self, name: str) -> int:
        """The place of the relation of this name. Raises ValueError if there is none."""
        for at, relation in enumerate(self.relations):
            if relation.name == name.lower():
                return at
        raise ValueError(f"there is no relation {name}; there are {', '.join(each.name for each in self.relations)}")


def bits_of(places: Iterable[int]) -> int:
    result = 0
    for at in places:
        result |= 1 << at
    return result


def places_of(bits: int) -> list[int]:
    """
    >>> places_of(0b1011)
    [0, 1, 3]
    """
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def reach(start: int, within: int, near: Sequence[int]) -> int:
    """The relations, as bits, that can be reached from those of `start` without leaving those of `within`."""
    found, frontier = start, start
    while frontier:
        low = frontier & -frontier
        new = near[low.bit_length() - 1] & within & ~found
        found |= new
        frontier = frontier & ~low | new
    return found
