"""Networks as what they consist of: nodes, links between them, and where the nodes stand if that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

LinkTuple = tuple[str, str, int, int]
Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Link:
    """A link that works in both directions, with its latency and its bandwidth."""

    a: str
    b: str
    ms: int
    mbps: int

    def tuples(self) -> tuple[LinkTuple, LinkTuple]:
        """One tuple for each direction: source, target, latency, bandwidth."""
        return (self.a, self.b, self.ms, self.mbps), (self.b, self.a, self.ms, self.mbps)

    def pairs(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """One pair for each direction: source, target."""
        return (self.a, self.b), (self.b, self.a)

    def priced(self) -> tuple[tuple[str, str, int], tuple[str, str, int]]:
        """One triple for each direction: source, target, and the latency as the cost."""
        return (self.a, self.b, self.ms), (self.b, self.a, self.ms)

    def __str__(self) -> str:
        return f"{self.a}-{self.b}"


@dataclass(frozen=True, slots=True)
class Topology:
    """No two links are between the same nodes, and none leads from a node to itself. `places` are coordinates in metres."""

    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    places: Mapping[str, Place] = field(default_factory=dict)

    def tuples(self) -> Iterator[LinkTuple]:
        """Every link in both directions."""
        return (each for link in self.links for each in link.tuples())
