"""Channels: how long a message takes from one node to another, and what becomes of it on the way."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from random import Random


@dataclass(frozen=True, slots=True)
class Channel:
    """`latency` and `jitter` in seconds, `bandwidth` in bytes a second. Each message takes the latency and up to the jitter.

    A `fifo` channel delivers in the order of sending; without it, jitter reorders. `loss` and `duplication` are chances.
    """

    latency: float = 0.001
    bandwidth: float | None = None
    jitter: float = 0.0
    loss: float = 0.0
    duplication: float = 0.0
    fifo: bool = True

    @property
    def is_perfect(self) -> bool:
        """Whether everything arrives once and in order."""
        return not self.loss and not self.duplication and (self.fifo or not self.jitter)


@dataclass
class _Line:
    """One direction of a channel in use."""

    busy_until: float = 0.0
    last_arrival: float = 0.0


class _Ways:
    """The quickest ways from a node, found as far as somebody asks (Dijkstra's algorithm); ties go to the one found first."""

    def __init__(self, source: Hashable, neighbours: Mapping[Hashable, list[tuple[Hashable, Channel]]]) -> None:
        self.neighbours = neighbours
        self.found: dict[Hashable, tuple[Channel, int]] = {}
        self.waiting: list[tuple[float, int, Hashable, Channel, int]] = [(0.0, 0, source, Channel(latency=0.0), 0)]
        self.order = 0

    def reach(self, target: Hashable) -> tuple[Channel, int] | None:
        while target not in self.found and self.waiting:
            _, _, node, way, hops = heappop(self.waiting)
            if node in self.found:
                continue
            self.found[node] = (way, hops)
            for neighbour, link in self.neighbours.get(node, ()):
                if neighbour not in self.found:
                    self.order += 1
                    longer = _joined(way, link) if hops else link
                    heappush(self.waiting, (longer.latency, self.order, neighbour, longer, hops + 1))
        return self.found.get(target)


@dataclass
class Wiring:
    """Which channel leads from where to where.

    Without `links` any two nodes are one `default` channel apart. With them, messages take the way with the least latency over
    links that are there; latencies add up, the narrowest link gives the bandwidth. If messages `collide`, a node that
    is receiving one misses those that begin meanwhile; how long that takes follows from size and bandwidth. Without
    `relays` only neighbours reach each other, and nodes pass on themselves what is for others.
    """

    default: Channel = field(default_factory=Channel)
    links: Mapping[tuple[Hashable, Hashable], Channel] | None = None
    alone: tuple[Hashable, ...] = ()  # nodes that may be without links
    collide: bool = False
    relays: bool = True
    _hearing: dict[Hashable, float] = field(default_factory=dict, init=False, repr=False)  # until when
    _ways: dict[Hashable, _Ways] = field(default_factory=dict, init=False, repr=False)
    _neighbours: dict[Hashable, list[tuple[Hashable, Channel]]] = field(default_factory=dict, init=False, repr=False)
    _works_both_ways: bool = field(default=False, init=False, repr=False)
    _lines: dict[tuple[Hashable, Hashable], _Line] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, links: Iterable[tuple[Hashable, Hashable, float]], **settings: float | bool) -> Wiring:
        """Links that work in both directions, each with its latency in seconds; `settings` are those of each channel."""
        made: dict[tuple[Hashable, Hashable], Channel] = {}
        for a, b, latency in links:
            channel = Channel(latency=latency, **settings)  # type: ignore[arg-type]
            made[a, b] = made[b, a] = channel
        return cls(links=made)

    @property
    def nodes(self) -> list[Hashable]:
        return list(dict.fromkeys((*(node for pair in self.links or () for node in pair), *self.alone)))

    @property
    def is_perfect(self) -> bool:
        return all(each.is_perfect for each in (self.links.values() if self.links is not None else (self.default,)))

    def with_faults(self, *, jitter: float = 0.0, loss: float = 0.0) -> Wiring:
        """The same links, each with jitter and losses."""
        links = (
            None
            if self.links is None
            else {pair: replace(each, jitter=jitter, loss=loss) for pair, each in self.links.items()}
        )
        return Wiring(replace(self.default, jitter=jitter, loss=loss), links, self.alone, self.collide, self.relays)

    def channel(self, source: Hashable, target: Hashable) -> tuple[Channel, int] | None:
        """The channel from one node to another and over how many links it goes; None if there is no way."""
        if self.links is None:
            return self.default, 1
        if not self.relays:
            link = self.links.get((source, target))
            return None if link is None else (link, 1)
        if source in self._ways and target in self._ways[source].found:
            return self._ways[source].found[target]
        if not self._neighbours:
            for (a, b), channel in self.links.items():
                self._neighbours.setdefault(a, []).append((b, channel))
            self._works_both_ways = all(self.links.get((b, a)) == channel for (a, b), channel in self.links.items())
        # Everybody talks to some nodes: what is known from their side is used, and what is not is looked for there.
        ahead = self._ways.get(target)
        if self._works_both_ways and ahead is not None and len(ahead.found) > self._known_from(source):
            return ahead.reach(source)
        if source not in self._ways:
            self._ways[source] = _Ways(source, self._neighbours)
            self._ways.setdefault(target, _Ways(target, self._neighbours))
        return self._ways[source].reach(target)

    def _known_from(self, source: Hashable) -> int:
        return len(self._ways[source].found) if source in self._ways else 0

    def arrivals(self, source: Hashable, target: Hashable, size: int, now: float, draw: Random) -> list[float] | None:
        """When a message sent now arrives: once, twice or never. None if there is no way from here to there."""
        found = self.channel(source, target)
        if found is None:
            return None
        channel = found[0]
        line = self._lines.get((source, target))
        if line is None:
            line = self._lines[source, target] = _Line()
        if channel.bandwidth is not None:
            line.busy_until = max(now, line.busy_until) + size / channel.bandwidth
            now = line.busy_until
        if channel.loss and draw.random() < channel.loss:
            return []
        times = 2 if channel.duplication and draw.random() < channel.duplication else 1
        arrivals = []
        for _ in range(times):
            arrival = now + channel.latency + (draw.random() * channel.jitter if channel.jitter else 0.0)
            if channel.fifo:
                arrival = line.last_arrival = max(arrival, line.last_arrival)
            if self.collide and channel.bandwidth is not None:
                if arrival - size / channel.bandwidth < self._hearing.get(target, 0.0):
                    continue
                self._hearing[target] = arrival
            arrivals.append(arrival)
        return arrivals


def _joined(one: Channel, other: Channel) -> Channel:
    bandwidths = [each.bandwidth for each in (one, other) if each.bandwidth is not None]
    return Channel(
        one.latency + other.latency,
        min(bandwidths, default=None),
        one.jitter + other.jitter,
        1 - (1 - one.loss) * (1 - other.loss),
        1 - (1 - one.duplication) * (1 - other.duplication),
        one.fifo and other.fifo,
    )
