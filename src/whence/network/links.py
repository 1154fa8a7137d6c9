"""Links of a network read from a file: an edge list, or GraphML."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

from whence.io.errors import FactError
from whence.lang.types import NUMBER, Kind, Value
from whence.runtime import Channel, Wiring

MS = 1.0  # the latency of a link that does not say


def read_wiring(path: Path, kind: Kind) -> Wiring:
    """The wiring that a file describes; `kind` is that of the values that name nodes.

    In an edge list a line is `a b`, with the latency in milliseconds and the bandwidth in Mbit/s if they are known. `a` alone is
    a node, and `#` begins a comment. In GraphML they are the attributes `ms` and `mbps` of edges.
    """
    links: dict[tuple[Hashable, Hashable], Channel] = {}
    alone: dict[Hashable, None] = {}
    read = _read_graphml if path.suffix.lower() in (".graphml", ".xml") else _read_edges
    for where, fields in read(path):
        name = _naming(kind, where)
        match fields:
            case [node]:
                alone[name(node)] = None
            case [a, b, *more] if len(more) <= 2:
                channel = _channel(more, where)
                links[name(a), name(b)] = links[name(b), name(a)] = channel
            case _:
                raise FactError([f"{where}: expected two nodes, a latency and a bandwidth, found {' '.join(fields)}"])
    if not links and not alone:
        raise FactError([f"{path} has no links"])
    wiring = Wiring(links=links, alone=tuple(alone))
    _refuse_parts(wiring, path)
    return wiring


def _naming(kind: Kind, where: str) -> Callable[[str], Value]:
    def name(text: str) -> Value:
        if kind != NUMBER:
            return text
        try:
            return int(text)
        except ValueError:
            raise FactError([f"{where}: {text} is not a number, and nodes are named by numbers"]) from None

    return name


def _channel(fields: list[str], where: str) -> Channel:
    try:
        ms, mbps = (*map(float, fields), None, None)[:2]
    except ValueError:
        raise FactError([f"{where}: {' '.join(fields)} is not a latency in ms and a bandwidth in Mbit/s"]) from None
    if (ms is not None and ms < 0) or (mbps is not None and mbps <= 0):
        raise FactError([f"{where}: a latency is not negative, and a bandwidth is positive"])
    return Channel(latency=(MS if ms is None else ms) / 1000, bandwidth=None if mbps is None else mbps * 1_000_000 / 8)


def _read_edges(path: Path) -> Iterator[tuple[str, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FactError([f"cannot read {path}: {error}"]) from None
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if fields:
            yield f"{path}:{number}", fields


def _read_graphml(path: Path) -> Iterator[tuple[str, list[str]]]:
    import networkx as nx  # type: ignore[import-untyped]  # noqa: PLC0415 - only those who have such files wait for it

    try:
        graph = nx.read_graphml(path)
    except (OSError, SyntaxError, ValueError, KeyError, nx.NetworkXError) as error:
        raise FactError([f"cannot read {path} as GraphML: {error}"]) from None
    for node in graph.nodes:
        yield str(path), [str(node)]
    for a, b, known in graph.edges(data=True):
        found = [str(known[name]) for name in ("ms", "mbps") if name in known]
        yield f"{path}: {a} to {b}", [str(a), str(b), *found]


def _refuse_parts(wiring: Wiring, path: Path) -> None:
    nodes = wiring.nodes
    apart = next((node for node in nodes if wiring.channel(nodes[0], node) is None), None)
    if apart is not None:
        raise FactError(
            [f"{path}: there is no way from {nodes[0]} to {apart}"],
            hints=["nodes that do not reach each other are two networks"],
        )
