"""The channels of a topology."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from whence.io.errors import FactError
from whence.lang.types import SYMBOL, Kind, Value
from whence.runtime import Channel, Wiring
from whence.topology import Topology, read_topology


def wiring_of(topology: Topology, kind: Kind = SYMBOL) -> Wiring:
    """A channel for each link, in both directions. Nodes are named by values of a kind. Raises ValueError if they cannot be."""
    links: dict[tuple[Hashable, Hashable], Channel] = {}
    for link in topology.links:
        channel = Channel(latency=link.ms / 1000, bandwidth=link.mbps * 1_000_000 / 8)
        for pair in link.pairs():
            links[_named(pair[0], kind), _named(pair[1], kind)] = channel
    return Wiring(links=links, alone=tuple(_named(node, kind) for node in topology.nodes))


def _named(node: str, kind: Kind) -> Value:
    if kind == SYMBOL:
        return node
    try:
        return int(node)
    except ValueError:
        raise ValueError(f"{node} is not a number, and the program names nodes by numbers") from None


def read_wiring(path: Path, kind: Kind) -> Wiring:
    """The channels of the topology in a file. Raises `FactError` if it cannot be read, or if nodes do not reach each other."""
    try:
        wiring = wiring_of(read_topology(path), kind)
    except ValueError as error:
        raise FactError([f"{path}: {error}"]) from None
    nodes = wiring.nodes
    apart = next((node for node in nodes if wiring.channel(nodes[0], node) is None), None)
    if apart is not None:
        problem = f"{path}: there is no way from {nodes[0]} to {apart}"
        raise FactError(
            [problem], hints=["nodes that do not reach each other are two networks: simulate each by itself"]
        )
    return wiring
