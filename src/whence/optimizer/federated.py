"""One query over sensors and tables, split: what sensors do among themselves, at the base station, and what the engine does.

Sensors pay in energy, the engine in rows, and who asks wants the whole to be cheap by a measure of his own. So each split is
costed with what each side would choose for itself, and the best of them by the measure of the whole is taken:

- A part of the split is a sensor relation by itself, or two of them that an equality joins: at most one join is made inside of
  the network, and never a product. Such a join is made between the nodes, or at the base station; all others by the engine.
- Between nodes, sensors choose how to join by what it costs them: rows of one side travel to the other (natural), or only where
  its join values (semi) or a Bloom filter of them ask for some.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

from whence.optimizer.cost import to_rows
from whence.optimizer.estimates import factors_of, sum_within
from whence.optimizer.query import ColumnOf, Query, bits_of
from whence.optimizer.statistics import Statistics, StatisticsError

BLOOM_BITS = 10  # for each value
FALSE_MATCHES = 0.01  # that so many bits leave
METRICS = ("latency", "messages", "energy")


@dataclass(frozen=True)
class Sensors:
    """Where the rows of a relation are made: so many hops from the base station, and from the partners of a join."""

    hops: float
    near: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Field:
    """The sensor relations of a query, by table. Messages of `payload` bytes take `ms` for a hop, rows `row_ms` in the engine."""

    sensors: Mapping[str, Sensors]
    payload: int = 24
    ms: float = 10.0
    row_ms: float = 0.01


@dataclass(frozen=True)
class Cost:
    """What a round of readings costs: messages (a hop each), energy (bytes sent and received), milliseconds until it is over."""

    messages: float = 0.0
    energy: float = 0.0
    latency: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Side by side: what is sent adds up, and the later of the two decides when it is over."""
        return Cost(self.messages + other.messages, self.energy + other.energy, max(self.latency, other.latency))


@dataclass(frozen=True)
class Part:
    """A subquery that sensors answer: relations by name, where they are joined, how, and the rows that reach the engine."""

    relations: tuple[str, ...]
    site: str
    method: str
    rows: float
    cost: Cost

    def __str__(self) -> str:
        where = f" joined {self.site}, {self.method}" if len(self.relations) > 1 else ""
        return f"{' with '.join(self.relations)}{where}: {self.rows:,.1f} rows"


@dataclass(frozen=True)
class Split:
    """A way to answer the query; `cost` is that of the whole."""

    parts: tuple[Part, ...]
    cost: Cost

    def __str__(self) -> str:
        return "; ".join(map(str, self.parts))


def splits(query: Query, statistics: Statistics, where: Field) -> list[Split]:
    """Every split, each with what the sensors would choose in it."""
    return [_whole(query, statistics, where, parts) for parts in _partitions(query, statistics, where)]


def best_split(found: Iterable[Split], metric: str = "latency") -> Split:
    """The cheapest; of several, the one with the fewest parts, then the first by its text."""
    return min(found, key=lambda each: (getattr(each.cost, metric), len(each.parts), str(each)))


def read_field(path: Path) -> Field:
    """Raises StatisticsError for a file that does not describe a field."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        sensors = {
            name.lower(): Sensors(
                float(each["hops"]), {other.lower(): float(hops) for other, hops in each.get("near", {}).items()}
            )
            for name, each in given["sensors"].items()
        }
        others: dict[str, Any] = {name: given[name] for name in ("payload", "ms", "row_ms") if name in given}
    except (ValueError, KeyError, AttributeError, TypeError):
        hint = '{"sensors": {"seat": {"hops": 4, "near": {"room": 1}}}}'
        raise StatisticsError(f"{path} does not describe a field of sensors, as {hint} does") from None
    return Field(sensors, **others)


# -- enumeration


def _partitions(query: Query, statistics: Statistics, where: Field) -> Iterator[tuple[Part, ...]]:
    """The sensor relations alone or in pairs, with a site for each pair."""
    places = [at for at, each in enumerate(query.relations) if each.table in where.sensors]
    measure = _Measure(query, statistics, where)
    for chosen in _matchings(places, {frozenset((a.at, b.at)) for a, b in query.equal if a.at != b.at}):
        options = [[measure.alone(*group)] if len(group) == 1 else list(measure.joined(*group)) for group in chosen]
        yield from product(*options)


def _matchings(places: list[int], joined: set[frozenset[int]]) -> Iterator[list[tuple[int, ...]]]:
    if not places:
        yield []
        return
    first, *rest = places
    for others in _matchings(rest, joined):
        yield [(first,), *others]
    for partner in rest:
        if frozenset((first, partner)) in joined:
            for others in _matchings([each for each in rest if each != partner], joined):
                yield [(first, partner), *others]


class _Measure:
    """What parts cost the sensors."""

    def __init__(self, query: Query, statistics: Statistics, where: Field) -> None:
        self.query, self.statistics, self.field = query, statistics, where
        self.factors = factors_of(query, statistics)

    def rows(self, *places: int) -> float:
        return float(to_rows(sum_within(self.factors, bits_of(places))))

    def alone(self, at: int) -> Part:
        """Rows that pass the conditions travel to the base station, and on to the engine."""
        rows = self.rows(at)
        return Part((self._name(at),), "", "", rows, self._travel(rows, self._hops(at), self._width(at)))

    def joined(self, one: int, other: int) -> Iterator[Part]:
        """In the network, by the method that costs the sensors least energy, and at the base station."""
        names = (self._name(one), self._name(other))
        rows = self.rows(one, other)
        if (near := self._near(one, other)) is not None:
            ways = [way for pair in ((one, other), (other, one)) for way in self._between(*pair, near, rows)]
            method, cost = min(ways, key=lambda each: (each[1].energy, each[0]))
            yield Part(names, "in the network", method, rows, cost)
        both = self.alone(one).cost + self.alone(other).cost
        yield Part(names, "at the base station", "natural", rows, both)

    def _between(self, moving: int, staying: int, near: float, rows: float) -> Iterator[tuple[str, Cost]]:
        """Rows of one relation come to the nodes of the other; what fits travels to the base station from there."""
        name = self._name(moving)
        there = self._travel(
            rows, self._hops(staying), self._width(moving) + self._width(staying), after=near * self.field.ms
        )
        # A row goes to every node that may have a partner for it, whether that has something to join or not.
        sent = self.rows(moving) * max(1.0, self._partners(moving, staying))
        yield f"rows of {name} travel", there + self._travel(sent, near, self._width(moving))
        asking = self.rows(staying)
        later = 2 * near * self.field.ms  # there and back
        yield (
            f"rows of {name} travel where a join value asks for them",
            self._later(there, later)
            + self._travel(asking, near, self._join_width(moving, staying))
            + self._travel(rows, near, self._width(moving)),
        )
        filters = self._distinct(moving, staying)
        extra = rows + FALSE_MATCHES * max(0.0, sent - rows)
        yield (
            f"rows of {name} travel where a Bloom filter lets them",
            self._later(there, later)
            + self._travel(filters, near, ceil(asking / filters * BLOOM_BITS / 8))
            + self._travel(extra, near, self._width(moving)),
        )

    def _travel(self, rows: float, hops: float, width: float, after: float = 0.0) -> Cost:
        """A message has one row, or part of one; the last hop takes one message after the other."""
        messages = rows * hops * max(1, ceil(width / self.field.payload))
        arrival = after + hops * self.field.ms + rows * max(1, ceil(width / self.field.payload)) * self.field.ms
        return Cost(messages, 2 * rows * hops * width, arrival if rows else after)

    def _later(self, cost: Cost, ms: float) -> Cost:
        return Cost(cost.messages, cost.energy, cost.latency + ms)

    def _name(self, at: int) -> str:
        return self.query.relations[at].name

    def _hops(self, at: int) -> float:
        return self.field.sensors[self.query.relations[at].table].hops

    def _near(self, one: int, other: int) -> float | None:
        """How far partners are from each other; None if that is not known, for then nobody can join between them."""
        a, b = self.query.relations[one].table, self.query.relations[other].table
        return self.field.sensors[a].near.get(b, self.field.sensors[b].near.get(a))

    def _width(self, at: int) -> float:
        table = self.statistics.table(self.query.relations[at].table)
        return sum(table.column(name).width for name in self.query.relations[at].columns)

    def _pairs(self, one: int, other: int) -> Iterator[tuple[ColumnOf, ColumnOf]]:
        for a, b in self.query.equal:
            if {a.at, b.at} == {one, other}:
                yield (a, b) if a.at == one else (b, a)

    def _partners(self, moving: int, staying: int) -> float:
        """How many nodes of the other relation a row may find a partner at."""
        rows = self.statistics.table(self.query.relations[staying].table).rows
        return rows / self._distinct(moving, staying)

    def _distinct(self, moving: int, staying: int) -> float:
        """Join values on the side that asks."""
        table = self.statistics.table(self.query.relations[staying].table)
        found = 1.0
        for _, column in self._pairs(moving, staying):
            found *= min(table.rows, table.column(column.name).distinct_of(table.rows))
        return found

    def _join_width(self, moving: int, staying: int) -> float:
        table = self.statistics.table(self.query.relations[staying].table)
        return sum(table.column(column.name).width for _, column in self._pairs(moving, staying))


def _whole(query: Query, statistics: Statistics, where: Field, parts: tuple[Part, ...]) -> Split:
    """The parts side by side, and then the engine, which joins what comes with its own tables."""
    measure = _Measure(query, statistics, where)
    sent = sum((part.cost for part in parts), Cost())
    arriving = sum(part.rows * max(1, len(part.relations)) for part in parts)
    # One base station receives for all parts: what arrives over its last hop comes one after the other.
    waiting = arriving * where.ms if len(parts) > 1 else 0.0
    result = measure.rows(*range(len(query.relations)))
    engine = (sum(part.rows for part in parts) + result) * where.row_ms
    return Split(parts, Cost(sent.messages, sent.energy, max(sent.latency, waiting) + engine))
