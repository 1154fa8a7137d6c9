"""Every component of the library as a small program, with what networkx says its views are.

`PROGRAMS` maps the name of a component to its program and its oracle: from the base relations to the views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import dist, inf

import networkx as nx

from whence.lang.types import Tuple

Rows = Mapping[str, set[Tuple]]
LINK = ".decl link(src:number, dst:number)\n.input link\n"
PRICED = ".decl link(src:number, dst:number, cost:number)\n.input link\n"


@dataclass(frozen=True)
class View:
    """`program` has an instance `v` of the component; `expected` computes its outputs from the base relations."""

    program: str
    expected: Callable[[Rows], dict[str, set[Tuple]]]


def _digraph(rows: Rows) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_edges_from(row[:2] for row in rows["link"])
    return graph


def _graph(rows: Rows) -> nx.Graph:
    graph = nx.Graph()
    graph.add_edges_from((x, y) for x, y in rows["link"] if x != y)
    return graph


def _priced(rows: Rows) -> nx.DiGraph:
    """Of several links between two nodes, the cheapest."""
    graph = nx.DiGraph()
    for x, y, cost in sorted(rows["link"], reverse=True):
        graph.add_edge(x, y, cost=cost)
    return graph


def _reachable(rows: Rows) -> dict[str, set[Tuple]]:
    graph = _digraph(rows)
    return {"v.reachable": set(nx.transitive_closure(graph, reflexive=False).edges)}


def _distances(graph: nx.DiGraph, **options: object) -> dict[Tuple, int]:
    lengths = nx.all_pairs_dijkstra_path_length(graph, **options)
    return {(x, y): n for x, found in lengths for y, n in found.items() if x != y}


def _within(rows: Rows) -> dict[str, set[Tuple]]:
    distances = _distances(_digraph(rows))
    return {
        "v.within": {(x, y, n) for x, most in rows["radius"] for (s, y), n in distances.items() if s == x and n <= most}
    }


def _horizon(rows: Rows) -> dict[str, set[Tuple]]:
    within = _within(rows)["v.within"]
    return {"v.horizon": {(x, y, value) for x, y, _ in within for node, value in rows["property"] if node == y}}


def _cycles(rows: Rows) -> dict[str, set[Tuple]]:
    graph = _digraph(rows)
    loops = set(nx.nodes_with_selfloops(graph))
    parts = [part for part in nx.strongly_connected_components(graph) if len(part) > 1 or part <= loops]
    return {
        "v.on_cycle": {(x,) for part in parts for x in part},
        "v.cycle_link": {(x, y) for part in parts for x, y in graph.edges if {x, y} <= part},
        "v.together": {(x, y) for part in parts for x in part for y in part},
    }


def _simple_paths(rows: Rows) -> dict[str, set[Tuple]]:
    graph = _digraph(rows)
    paths = {
        (x, path[-1], tuple(path), len(path) - 1)
        for x, most in rows["longest"]
        if x in graph and most > 0
        for path in nx.all_simple_paths(graph, x, set(graph) - {x}, cutoff=most)
    }
    return {"v.path": paths, "v.ways": _counted(paths)}


def _counted(paths: set[Tuple]) -> set[Tuple]:
    return {(*pair, n) for pair, n in Counter(path[:2] for path in paths).items()}


def _hops(rows: Rows) -> dict[str, set[Tuple]]:
    return {"v.hops": {(*pair, n) for pair, n in _distances(_digraph(rows)).items()}}


def _shortest(rows: Rows) -> dict[str, set[Tuple]]:
    graph = _digraph(rows)
    pairs = _distances(graph)
    return {
        "v.shortest": {
            (*pair, tuple(path), n) for pair, n in pairs.items() for path in nx.all_shortest_paths(graph, *pair)
        }
    }


def _cheapest(rows: Rows) -> dict[str, set[Tuple]]:
    graph = _priced(rows)
    costs = _distances(graph, weight="cost")
    after = costs | {(x, x): 0 for x in graph}
    return {
        "v.cost": {(*pair, cost) for pair, cost in costs.items()},
        "v.next": {
            (x, z, y)
            for (x, z), cost in costs.items()
            for y in graph[x]
            if y != x and graph[x][y]["cost"] + after.get((y, z), inf) == cost
        },
    }


def _cheapest_paths(rows: Rows) -> dict[str, set[Tuple]]:
    graph = _priced(rows)
    paths = {
        (*pair, tuple(path), cost)
        for pair, cost in _distances(graph, weight="cost").items()
        for path in nx.all_simple_paths(graph, *pair)
        if nx.path_weight(graph, path, "cost") == cost
    }
    return {"v.cheapest": paths, "v.ways": _counted(paths)}


def _widest(rows: Rows) -> dict[str, set[Tuple]]:
    graph = nx.DiGraph()
    for x, y, width in sorted(rows["link"]):
        graph.add_edge(x, y, width=width)
    return {
        "v.width": {
            (x, y, max(min(graph.edges[step]["width"] for step in nx.utils.pairwise(path)) for path in paths))
            for x, y in permutations(graph, 2)
            if (paths := list(nx.all_simple_paths(graph, x, y)))
        }
    }


def _k_best(rows: Rows) -> dict[str, set[Tuple]]:
    """Of what one node asks, the greatest k and the greatest slack count."""
    graph = nx.MultiDiGraph()
    for x, y, cost in rows["link"]:
        graph.add_edge(x, y, cost=cost)
    best: set[Tuple] = set()
    for x in {ask[0] for ask in rows["ask"]}:
        k = max(ask[1] for ask in rows["ask"] if ask[0] == x)
        slack = max(ask[2] for ask in rows["ask"] if ask[0] == x)
        for y in set(graph) - {x} if x in graph else ():
            found = {
                ((x, *(step[1] for step in path)), sum(graph.edges[step]["cost"] for step in path))
                for path in nx.all_simple_edge_paths(graph, x, y)
            }
            least = min((cost for _, cost in found), default=0)
            near = [(path, cost) for path, cost in found if cost <= least + slack]
            ranked = [(path, cost, sum(other < cost for _, other in near)) for path, cost in near]
            best |= {(x, y, *each) for each in ranked if each[2] < k}
    return {"v.best": best}


def _bridges(rows: Rows) -> dict[str, set[Tuple]]:
    return {"v.bridge": {way for x, y in nx.bridges(_graph(rows)) for way in ((x, y), (y, x))}}


def _disjoint(rows: Rows) -> dict[str, set[Tuple]]:
    graph = _graph(rows)
    return {"v.disjoint": {(x, y) for x, y in permutations(graph, 2) if nx.edge_connectivity(graph, x, y) >= 2}}


def _articulation(rows: Rows) -> dict[str, set[Tuple]]:
    return {"v.articulation": {(x,) for x in nx.articulation_points(_graph(rows))}}


def _regions(rows: Rows) -> dict[str, set[Tuple]]:
    graph = nx.Graph(rows["link"])
    member = {(min(part), x) for part in nx.connected_components(graph) for x in part}
    return {"v.member": member, **_sizes(member)}


def _sizes(member: set[Tuple]) -> dict[str, set[Tuple]]:
    sizes = Counter(region for region, _ in member)
    return {
        "sizes.size": set(sizes.items()),
        "sizes.largest": {(region, n) for region, n in sizes.items() if n == max(sizes.values())},
    }


def _near(rows: Rows) -> dict[str, set[Tuple]]:
    """A node may say two places; with several reaches the greatest counts."""
    pairs = {
        (one, other)
        for (one, *here), (other, *there) in permutations(rows["sensor"], 2)
        if one != other and any(dist(here, there) < reach for (reach,) in rows["reach"])
    }
    return {"v.near": pairs}


def _active(rows: Rows) -> dict[str, set[Tuple]]:
    triggered = {node for (node,) in rows["triggered"]}
    graph = nx.DiGraph((x, y) for x, y in rows["near"] if x in triggered and y in triggered)
    graph.add_nodes_from(triggered)
    active = {
        (region, node)
        for region, seed in rows["seed"]
        if seed in triggered
        for node in {seed, *nx.descendants(graph, seed)}
    }
    return {"v.active": active, **_sizes(active)}


def _active_with_rim(rows: Rows) -> dict[str, set[Tuple]]:
    triggered = {node for (node,) in rows["triggered"]}
    graph = nx.DiGraph((x, y) for x, y in rows["near"] if x in triggered)
    graph.add_nodes_from(triggered)
    return {
        "v.active": {
            (region, node)
            for region, seed in rows["seed"]
            if seed in triggered
            for node in {seed, *nx.descendants(graph, seed)}
        }
    }


def _heights(rows: Rows) -> dict[str, set[Tuple]]:
    graph = nx.DiGraph(rows["child"])
    loops = {x for part in nx.strongly_connected_components(graph) if len(part) > 1 for x in part}
    loops |= set(nx.nodes_with_selfloops(graph))
    ends = {x for x in graph if not ({x} | nx.descendants(graph, x)) & loops}
    leaves = {x for x in graph if not graph[x]}
    depths = {
        x: [len(path) - 1 for leaf in leaves for path in ([[x]] if x == leaf else nx.all_simple_paths(graph, x, leaf))]
        for x in ends
    }
    return {
        "v.height": {(x, max(found)) for x, found in depths.items()},
        "v.lowest": {(x, min(found)) for x, found in depths.items()},
        "v.imbalance": {(x, max(found) - min(found)) for x, found in depths.items()},
    }


def _same_generation(rows: Rows) -> dict[str, set[Tuple]]:
    """Two nodes are as far below a common one where the graph of pairs has a way from a pair of siblings."""
    graph = nx.DiGraph(rows["child"])
    pairs = nx.DiGraph()
    for p, q in permutations(graph, 2):
        pairs.add_edges_from(((p, q), (x, y)) for x in graph[p] for y in graph[q] if x != y)
    siblings = {(x, y) for p in graph for x, y in permutations(graph[p], 2)}
    return {
        "v.same": {
            pair for start in siblings for pair in {start, *(nx.descendants(pairs, start) if start in pairs else ())}
        }
    }


def _program(file: str, head: str, instances: str, outputs: str) -> str:
    return f'.include "whence/{file}.dl"\n{head}{instances}\n.output {outputs}\n'


_RADIUS = ".decl radius(node:number, hops:number)\n.input radius\n"
_PROPERTY = ".decl property(node:number, value:symbol)\n.input property\n"
_LONGEST = ".decl longest(node:number, hops:number)\n.input longest\n"
_ASK = ".decl ask(node:number, k:number, slack:number)\n.input ask\n"
_CHILD = ".decl child(parent:number, node:number)\n.input child\n"
_SENSOR = ".decl sensor(node:number, x:number, y:number)\n.input sensor\n.decl reach(d:number)\n.input reach\n"
_FIELD = """.decl seed(region:symbol, node:number)
.input seed
.decl near(one:number, other:number)
.input near
.decl triggered(node:number)
.input triggered
"""

VIEWS: dict[str, View] = {
    "Reachable": View(_program("reach", LINK, ".init v = Reachable<number, link>", "v.reachable"), _reachable),
    "Within": View(_program("reach", LINK + _RADIUS, ".init v = Within<number, link, radius>", "v.within"), _within),
    "Horizon": View(
        _program(
            "reach",
            LINK + _RADIUS + _PROPERTY,
            ".init v = Horizon<number, symbol, link, radius, property>",
            "v.horizon",
        ),
        _horizon,
    ),
    "Cycles": View(
        _program("reach", LINK, ".init v = Cycles<number, link>", "v.on_cycle, v.cycle_link, v.together"), _cycles
    ),
    "SimplePaths": View(
        _program("paths", LINK + _LONGEST, ".init v = SimplePaths<number, link, longest>", "v.path, v.ways"),
        _simple_paths,
    ),
    "Hops": View(_program("paths", LINK, ".init v = Hops<number, link>", "v.hops"), _hops),
    "ShortestPaths": View(_program("paths", LINK, ".init v = ShortestPaths<number, link>", "v.shortest"), _shortest),
    "Cheapest": View(
        _program("paths", PRICED, ".init v = Cheapest<number, number, link>", "v.cost, v.next"), _cheapest
    ),
    "CheapestPaths": View(
        _program("paths", PRICED, ".init v = CheapestPaths<number, number, link>", "v.cheapest, v.ways"),
        _cheapest_paths,
    ),
    "Widest": View(_program("paths", PRICED, ".init v = Widest<number, number, link>", "v.width"), _widest),
    "KBest": View(_program("paths", PRICED + _ASK, ".init v = KBest<number, number, link, ask>", "v.best"), _k_best),
    "Bridges": View(_program("resilience", LINK, ".init v = Bridges<number, link>", "v.bridge"), _bridges),
    "DisjointPairs": View(
        _program("resilience", LINK, ".init v = DisjointPairs<number, link>", "v.disjoint"), _disjoint
    ),
    "ArticulationPoints": View(
        _program("resilience", LINK, ".init v = ArticulationPoints<number, link>", "v.articulation"), _articulation
    ),
    "Regions": View(
        _program(
            "regions",
            LINK,
            ".init v = Regions<number, link>\n.init sizes = RegionSizes<number, number, v.member>",
            "v.member, sizes.size, sizes.largest",
        ),
        _regions,
    ),
    "Near": View(_program("regions", _SENSOR, ".init v = Near<number, number, sensor, reach>", "v.near"), _near),
    "ActiveRegions": View(
        _program(
            "regions",
            _FIELD,
            ".init v = ActiveRegions<symbol, number, seed, near, triggered>\n"
            ".init sizes = RegionSizes<symbol, number, v.active>",
            "v.active, sizes.size, sizes.largest",
        ),
        _active,
    ),
    "ActiveRegionsWithRim": View(
        _program(
            "regions", _FIELD, ".init v = ActiveRegionsWithRim<symbol, number, seed, near, triggered>", "v.active"
        ),
        _active_with_rim,
    ),
    "Heights": View(
        _program("trees", _CHILD, ".init v = Heights<number, child>", "v.height, v.lowest, v.imbalance"), _heights
    ),
    "SameGeneration": View(
        _program("trees", _CHILD, ".init v = SameGeneration<number, child>", "v.same"), _same_generation
    ),
}
