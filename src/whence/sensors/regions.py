"""Regions of a field in which tuples are stored, or look for partners, and how long that takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import inf

from whence.lang.types import Value
from whence.topology import Place
from whence.topology.field import Field
from whence.topology.paths import Paths, Way, find_paths


class Region(StrEnum):
    SELF = "self"
    ROW = "row"
    COLUMN = "column"
    ALL = "all"
    NEIGHBOURS = "neighbours"


@dataclass(frozen=True, slots=True)
class Spread:
    """How a tuple is stored: along `lead`, and from its end along each of `sides`; or by a flood, or by one broadcast."""

    lead: Way = ()
    sides: tuple[Way, ...] = ()
    flood: bool = False
    neighbours: bool = False

    @property
    def hops(self) -> int:
        return len(self.lead) + max(map(len, self.sides), default=0) + self.neighbours


class Regions:
    """The regions of every node, worked out when they are first asked for."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self._storage: dict[tuple[Value, Region, float, Place | None], Spread] = {}
        self._join: dict[tuple[Value, Region, float, Place | None], tuple[Way, Way]] = {}
        self._costs: dict[tuple[str, Region, float], float] = {}

    @cached_property
    def paths(self) -> Paths:
        return find_paths(self.field)

    def storage(self, node: Value, kind: Region, reach: float = inf, spot: Place | None = None) -> Spread:
        """How a tuple of a node is stored; given a reach, around the spot where it says that it is."""
        around = None if reach == inf else spot
        key = (node, kind, reach, around)
        if key not in self._storage:
            match kind:
                case Region.SELF:
                    found = Spread()
                case Region.ALL:
                    found = Spread(flood=True)
                case Region.NEIGHBOURS:
                    found = Spread(neighbours=True)
                case Region.ROW:
                    lead, sides = self.paths.storage(node, reach, around)
                    found = Spread(lead, sides)
                case _:
                    lead, way = self.paths.join(node)
                    found = Spread((*lead, *way[1:]))
            self._storage[key] = found
        return self._storage[key]

    def join(self, node: Value, kind: Region, reach: float = inf, spot: Place | None = None) -> tuple[Way, Way]:
        """The way to where a tuple begins to look for partners, and the way on which it does."""
        around = None if reach == inf else spot
        key = (node, kind, reach, around)
        if key not in self._join:
            match kind:
                case Region.SELF:
                    found: tuple[Way, Way] = ((), (node,))
                case Region.ALL:
                    found = ((), tuple(self._tour(node)))
                case Region.NEIGHBOURS:
                    star = [each for other in self.field.neighbours[node] for each in (other, node)]
                    found = ((), (node, *star[:-1]))
                case Region.COLUMN:
                    found = self.paths.join(node, reach, around)
                case _:
                    lead, (after, before) = self.paths.storage(node)
                    fork = lead[-1] if lead else node
                    found = (lead, (fork, *after, *reversed(after[:-1]), *((fork,) if after else ()), *before))
            self._join[key] = found
        return self._join[key]

    def _tour(self, start: Value) -> list[Value]:
        """All nodes, along a tree and back; the way home from the last of them is left out."""
        tour, trail, seen = [start], [start], {start}
        length = 1
        while trail:
            onward = next((each for each in self.field.neighbours[trail[-1]] if each not in seen), None)
            if onward is None:
                trail.pop()
                tour += trail[-1:]
                continue
            seen.add(onward)
            trail.append(onward)
            tour.append(onward)
            length = len(tour)
        return tour[:length]

    # -- costs and times

    def storage_cost(self, kind: Region, reach: float) -> float:
        """Messages, on average."""

        def cost(node: Value) -> int:
            spread = self.storage(node, kind, reach)
            return (
                len(self.field.places)
                if spread.flood
                else len(spread.lead) + sum(map(len, spread.sides)) + spread.neighbours
            )

        return self._mean("storage", kind, reach, cost)

    def join_cost(self, kind: Region, reach: float, walks: int, *, both_ways: bool = False) -> float:
        def to_its_end(node: Value) -> int:
            lead, way = self.join(node, kind, reach)
            return 0 if both_ways and node in way else len(lead)

        lead = self._mean(f"lead{both_ways}", kind, reach, to_its_end)
        return lead + walks * self._mean("walk", kind, reach, lambda node: len(self.join(node, kind, reach)[1]) - 1)

    def _mean(self, what: str, kind: Region, reach: float, cost: Callable[[Value], int]) -> float:
        key = (what, kind, reach)
        if key not in self._costs:
            nodes = self.field.nodes[:: max(1, len(self.field.places) // 64)]
            self._costs[key] = sum(cost(node) for node in nodes) / len(nodes)
        return self._costs[key]

    def storage_hops(self, kind: Region, reach: float) -> int:
        """How many hops after each other storing takes at most."""
        if kind is Region.ALL:
            return self.field.longest
        farthest = reach + self.field.sensing  # from the node itself
        return max(self.storage(node, kind, farthest).hops for node in self.field.places)

    def join_hops(self, kind: Region, reach: float, walks: int) -> int:
        ways = [self.join(node, kind, reach + self.field.sensing) for node in self.field.places]
        return max(len(lead) + walks * (len(way) - 1) for lead, way in ways)

    # -- the contract

    def nodes_of(self, node: Value, kind: Region, *, is_storage: bool) -> set[Value]:
        if kind is Region.ALL:
            return set(self.field.places)
        if is_storage:
            spread = self.storage(node, kind)
            heard = self.field.neighbours[node] if spread.neighbours else ()
            return {node, *spread.lead, *(each for side in spread.sides for each in side), *heard}
        return {node, *self.join(node, kind)[1]}

    def broken_pair(self, join: Region, storage: Region) -> tuple[Value, Value] | None:
        """Two nodes of which the join region of the one does not meet the storage region of the other."""
        stored = {node: self.nodes_of(node, storage, is_storage=True) for node in self.field.places}
        for node in self.field.places:
            looked = self.nodes_of(node, join, is_storage=False)
            missed = next((other for other, region in stored.items() if not looked & region), None)
            if missed is not None:
                return node, missed
        return None
