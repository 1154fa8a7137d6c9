"""Transit-stub networks: a core of transit nodes, and small stub networks that hang on them.

The default has the shape that papers on declarative networks measure on: 4 transit nodes, 3 stubs on each, 8 nodes in each
stub, which makes 100 nodes, and 200 links. A link takes 50 ms inside the core, 10 ms between a stub and its transit node and
2 ms inside a stub.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from string import ascii_lowercase

from whence.topology.links import Link, LinkTuple

DENSE, SPARSE = 4, 2  # links of a node, on average: what papers measure on


@dataclass(frozen=True, slots=True)
class Stub:
    """A stub network: its nodes, the one of them that is the way out, and the transit node out there."""

    transit: str
    gateway: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TransitStub:
    transit: tuple[str, ...]
    stubs: tuple[Stub, ...]
    links: tuple[Link, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.transit + tuple(node for stub in self.stubs for node in stub.nodes)

    def tuples(self) -> Iterator[LinkTuple]:
        """Every link in both directions."""
        return (each for link in self.links for each in link.tuples())


@dataclass(frozen=True, slots=True)
class _Tier:
    """What links in one part of the network are like; each has the bandwidth once, twice or four times."""

    ms: int
    mbps: int

    def link(self, a: str, b: str, draw: Random) -> Link:
        return Link(a, b, self.ms, self.mbps * draw.choice((1, 2, 4)))


CORE = _Tier(ms=50, mbps=1000)
ACCESS = _Tier(ms=10, mbps=100)
INSIDE = _Tier(ms=2, mbps=50)


def transit_stub(
    *,
    seed: int,
    transit: int = 4,
    stubs_per_transit: int = 3,
    nodes_per_stub: int = 8,
    degree: int = DENSE,
    links: int | None = None,
) -> TransitStub:
    """A random network, the same for the same seed, with so many links for each node, or in all.

    The core is a ring, so that no single failure splits it; each stub is a random tree, with one gateway. The links that
    remain go between random pairs of nodes inside the core or inside one stub.

    >>> network = transit_stub(seed=1)
    >>> len(network.nodes), len(network.links), len(list(network.tuples()))
    (100, 200, 400)
    >>> network.stubs[0].nodes
    ('t1a1', 't1a2', 't1a3', 't1a4', 't1a5', 't1a6', 't1a7', 't1a8')
    >>> len(transit_stub(seed=1, degree=SPARSE).links), len(transit_stub(seed=1, transit=40).links)
    (100, 2000)
    """
    if transit < 3 or not 1 <= stubs_per_transit <= len(ascii_lowercase) or nodes_per_stub < 1:
        raise ValueError("a network needs 3 transit nodes, 1 to 26 stubs on each, and 1 node in each stub, at least")
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    core = tuple(f"t{number}" for number in range(1, transit + 1))
    stubs = tuple(
        _stub(node, f"{node}{letter}", nodes_per_stub, draw)
        for node in core
        for letter in ascii_lowercase[:stubs_per_transit]
    )
    made = [CORE.link(a, b, draw) for a, b in zip(core, (*core[1:], core[0]), strict=True)]
    made += [ACCESS.link(stub.transit, stub.gateway, draw) for stub in stubs]
    for stub in stubs:
        made += [INSIDE.link(a, b, draw) for a, b in _spanning_tree(stub.nodes, draw)]
    wanted = degree * (transit + len(stubs) * nodes_per_stub) // 2 if links is None else links
    made += _extra_links(core, stubs, made, wanted - len(made), draw)
    return TransitStub(core, stubs, tuple(made))


def _stub(transit: str, name: str, size: int, draw: Random) -> Stub:
    nodes = tuple(f"{name}{number}" for number in range(1, size + 1))
    return Stub(transit, draw.choice(nodes), nodes)


def _spanning_tree(nodes: Sequence[str], draw: Random) -> Iterator[tuple[str, str]]:
    shuffled = draw.sample(nodes, len(nodes))
    return ((shuffled[draw.randrange(at)], shuffled[at]) for at in range(1, len(shuffled)))


def _extra_links(
    core: Sequence[str], stubs: Sequence[Stub], made: Sequence[Link], count: int, draw: Random
) -> list[Link]:
    linked = {frozenset((link.a, link.b)) for link in made}
    free = [(CORE, pair) for pair in combinations(core, 2)]
    free += [(INSIDE, pair) for stub in stubs for pair in combinations(stub.nodes, 2)]
    free = [(tier, pair) for tier, pair in free if frozenset(pair) not in linked]
    if not 0 <= count <= len(free):
        raise ValueError(f"a network of this shape has {len(made)} to {len(made) + len(free)} links")
    return [tier.link(a, b, draw) for tier, (a, b) in draw.sample(free, count)]
