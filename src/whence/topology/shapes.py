"""Networks of plain shapes: grids, random networks, trees, scale-free networks, fields of radios.

Nodes are called n0, n1, … Unless the shape says otherwise a link takes 1 to 10 ms and carries 50, 100 or 200 Mbit/s, drawn with
the seed: the same for the same seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import ceil, dist
from random import Random

from whence.topology.graphs import tree
from whence.topology.links import Link, Topology

Pair = tuple[int, int]


def grid_network(rows: int, columns: int, *, seed: int) -> Topology:
    """Each node is linked with those beside, above and below it; n0 is in a corner, and the first row comes first.

    >>> [str(link) for link in grid_network(2, 2, seed=1).links]
    ['n0-n1', 'n0-n2', 'n1-n3', 'n2-n3']
    """
    if rows < 1 or columns < 1:
        raise ValueError("a grid has one row and one column, at least")
    pairs: list[Pair] = []
    for node in range(rows * columns):
        if (node + 1) % columns:
            pairs.append((node, node + 1))
        if node + columns < rows * columns:
            pairs.append((node, node + columns))
    return _network(rows * columns, pairs, Random(seed))  # noqa: S311 - repeatable, not secret


def random_network(nodes: int, links: int, *, seed: int) -> Topology:
    """Links between random pairs of nodes, all equally likely. It may fall apart into several parts.

    >>> len(random_network(10, 15, seed=1).links)
    15
    """
    possible = nodes * (nodes - 1) // 2
    if not 0 <= links <= possible:
        raise ValueError(f"{nodes} nodes have up to {possible} links between them, not {links}")
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    picked: dict[Pair, None] = {}
    if links > possible // 2:  # drawing until a pair is new would take long
        picked = dict.fromkeys(draw.sample(list(combinations(range(nodes), 2)), links))
    while len(picked) < links:
        a, b = sorted((draw.randrange(nodes), draw.randrange(nodes)))
        if a != b:
            picked[a, b] = None
    return _network(nodes, picked, draw)


def tree_network(nodes: int, *, seed: int) -> Topology:
    """Every node but n0 is linked with a random earlier one.

    >>> [str(link) for link in tree_network(4, seed=1).links]
    ['n0-n1', 'n0-n2', 'n1-n3']
    """
    return _network(nodes, tree(nodes, seed=seed), Random(seed))  # noqa: S311 - repeatable, not secret


def scale_free_network(nodes: int, links_each: int, *, seed: int) -> Topology:
    """Nodes come one by one and link with `links_each` others, those with more links being likelier: few nodes get very many.

    >>> len(scale_free_network(10, 2, seed=1).links)
    16
    """
    if not 1 <= links_each < nodes:
        raise ValueError(f"each of {nodes} nodes can link with 1 to {nodes - 1} others, not {links_each}")
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    pairs: list[Pair] = []
    ends: list[int] = list(
        range(links_each)
    )  # a node stands here once for each of its links, so that it is drawn as often
    for node in range(links_each, nodes):
        chosen: set[int] = set()
        while len(chosen) < links_each:
            chosen.add(draw.choice(ends))
        pairs += [(other, node) for other in sorted(chosen)]
        ends += [*sorted(chosen), *[node] * links_each]
    return _network(nodes, pairs, draw)


def radio_field(nodes: int, *, side: float, radius: float, seed: int) -> Topology:
    """Radios at random places of a square, in metres, linked if they are at most `radius` apart; 1 ms for each 10 m begun.

    >>> field = radio_field(20, side=100, radius=30, seed=1)
    >>> len(field.places), len(field.links)
    (20, 31)
    """
    if side <= 0 or radius < 0:
        raise ValueError("a field has a side, and radios a radius that is not negative")
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    places = {f"n{node}": (draw.uniform(0, side), draw.uniform(0, side)) for node in range(nodes)}
    links = [
        Link(a, b, max(1, ceil(apart / 10)), 1)
        for (a, here), (b, there) in combinations(places.items(), 2)
        if (apart := dist(here, there)) <= radius
    ]
    return Topology(tuple(places), tuple(links), places)


def _network(nodes: int, pairs: Iterable[Pair], draw: Random) -> Topology:
    links = [Link(f"n{a}", f"n{b}", draw.randint(1, 10), draw.choice((50, 100, 200))) for a, b in pairs]
    return Topology(tuple(f"n{node}" for node in range(nodes)), tuple(links))
