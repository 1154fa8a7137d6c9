"""Networks read from files: edge lists, and GraphML through networkx."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whence.io.errors import FactError
from whence.topology.links import Link, Place, Topology

MS, MBPS = 1, 100  # of a link that does not say
_GRAPHML = (".graphml", ".xml")
Found = tuple[
    str, str, str, object, object
]  # where it was found; two nodes, the latency and the bandwidth, if it has them


def read_topology(path: Path | str) -> Topology:
    """The network in a file: GraphML if its name ends in .graphml or .xml, otherwise a list of edges.

    In a list each line is a link, `a b`, `a b ms` or `a b ms mbps`, with blanks or commas between; a name alone is a node without
    links, and `#` begins a comment. In GraphML, edges may have the attributes `ms` and `mbps`, and nodes `x` and `y`. Links work
    in both directions; one that is there twice, or from a node to itself, is refused, and so is everything else that cannot
    be read: all of it at once.
    """
    path = Path(path)
    read = _read_graphml if path.suffix.lower() in _GRAPHML else _read_edges
    try:
        nodes, found, places, problems = read(path)
    except OSError as error:
        raise FactError([f"cannot read {path}: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise FactError([f"cannot read {path}: it is not UTF-8 text"]) from None
    links: dict[frozenset[str], Link] = {}
    for where, a, b, ms, mbps in found:
        try:
            link = Link(a, b, _whole(ms, "ms", MS), _whole(mbps, "mbps", MBPS))
            _refuse_odd_links(link, links)
        except ValueError as error:
            problems.append(f"{where}: {error}")
        else:
            links[frozenset((a, b))] = link
    if problems:
        raise FactError(problems, hints=["a line is a link: a b, a b ms or a b ms mbps"] if read is _read_edges else [])
    names = dict.fromkeys([*nodes, *(node for link in links.values() for node in (link.a, link.b))])
    if not names:
        raise FactError([f"{path} has no nodes"])
    return Topology(tuple(names), tuple(links.values()), places)


Contents = tuple[list[str], list[Found], dict[str, Place], list[str]]  # nodes, links, places, problems


def _read_edges(path: Path) -> Contents:
    nodes: list[str] = []
    found: list[Found] = []
    problems: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        match line.partition("#")[0].replace(",", " ").split():
            case []:
                pass
            case [node]:
                nodes.append(node)
            case [a, b, *more] if len(more) <= 2:
                ms, mbps = (*more, None, None)[:2]
                found.append((f"{path}:{number}", a, b, ms, mbps))
            case fields:
                problems.append(f"{path}:{number}: {len(fields)} fields, where a link has 4 at most")
    return nodes, found, {}, problems


def _read_graphml(path: Path) -> Contents:
    try:
        # Only those who have such files need it.
        import networkx as nx  # noqa: PLC0415
    except ModuleNotFoundError:
        hints = ["pip install 'whence[networks]', or write the links as a list, one a line"]
        raise FactError([f"{path}: networkx, which reads GraphML, is not installed"], hints=hints) from None
    try:
        graph = nx.read_graphml(path)
    except (nx.NetworkXError, SyntaxError, ValueError, KeyError) as error:  # a ParseError is a SyntaxError
        raise FactError([f"{path} is not GraphML: {error}"]) from None
    places: dict[str, Place] = {}
    problems: list[str] = []
    for node, known in graph.nodes(data=True):
        if "x" in known and "y" in known:
            try:
                places[str(node)] = (float(known["x"]), float(known["y"]))
            except ValueError:
                problems.append(f"{path}: {node}: x and y are numbers, not {known['x']} and {known['y']}")
    return [str(node) for node in graph], list(_edges(path, graph.edges(data=True))), places, problems


def _edges(path: Path, edges: object) -> Iterator[Found]:
    """A directed graph may say each link twice, once for each direction, if both say the same."""
    seen: set[tuple[str, str, object, object]] = set()
    for a, b, known in edges:  # type: ignore[attr-defined]
        edge = (str(a), str(b), known.get("ms"), known.get("mbps"))
        if (edge[1], edge[0], *edge[2:]) not in seen:
            seen.add(edge)
            yield f"{path}: {a} to {b}", *edge


def _whole(value: object, name: str, default: int) -> int:
    if value is None:
        return default
    try:
        number = float(str(value))
    except ValueError:
        raise ValueError(f"{name} is a number, not {value}") from None
    if number <= 0 or not number.is_integer():  # not for infinity and what is not a number either
        raise ValueError(f"{name} is a whole number above 0, not {value}")
    return int(number)


def _refuse_odd_links(link: Link, links: dict[frozenset[str], Link]) -> None:
    if link.a == link.b:
        raise ValueError(f"a link from {link.a} to itself")
    if frozenset((link.a, link.b)) in links:
        raise ValueError(f"{link} is there already; links work in both directions")
