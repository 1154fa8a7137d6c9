"""Best paths with aggregate selection for none, one or several aggregates: figure 18 of the dissertation, 16 of the article."""

from __future__ import annotations

import networkx as nx
from harness import Claim, Experiment, run
from networks import Run, run_of

from whence import Program, Update, load
from whence.lang.types import Tuple
from whence.network.provenance import AbsorptionStrategy, Selection
from whence.topology import transit_stub

_LINK = ".decl link(@src:symbol, dst:symbol, cost:number)\n.input link\n"
_PATH = """.decl path(@src:symbol, dst:symbol, next:symbol, length:number, cost:number)
path(@x, y, y, 1, c) :- link(@x, y, c).
path(@x, y, z, n + 1, c + d) :- link(@x, z, c), path(@z, y, _, n, d).
"""
_HOPS = ".output hops hops(@x, y, m) :- path(@x, y, _, _, _), m = min n : { path(@x, y, _, n, _) }.\n"
_LEAST = ".output least least(@x, y, m) :- path(@x, y, _, _, _), m = min c : { path(@x, y, _, _, c) }.\n"
_MIN = {"hops": ("min", "length"), "least": ("min", "cost")}
# Which views a network has; those of a scheme with several networks are kept apart, and what they take is added up.
PLANS: dict[str, list[tuple[Program, list[str]]]] = {
    "none": [(load(_LINK + _PATH + _HOPS + _LEAST), [])],
    "one": [(load(_LINK + _PATH + _HOPS), ["hops"]), (load(_LINK + _PATH + _LEAST), ["least"])],
    "several": [(load(_LINK + _PATH + _HOPS + _LEAST), ["hops", "least"])],
}


def measure(scheme: str, degree: float, seed: int) -> dict[str, float]:
    network = transit_stub(seed=seed, degree=int(degree), transit=3, stubs_per_transit=2, nodes_per_stub=6)
    links = {pair: link.ms for link in network.links for pair in link.pairs()}
    runs = []
    for program, selected in PLANS[scheme]:
        selections = [Selection("path", ("src", "dst"), tuple(_MIN[view] for view in selected))] if selected else []
        made = run_of((AbsorptionStrategy(selections=selections), "lazy"), network, seed=seed, program=program)
        made.apply(Update("+", "link", (*pair, cost)) for pair, cost in links.items())
        _check(made, links, selected or list(_MIN))
        runs.append(made)
    return {
        "tuples": sum(each.traffic.tuples for made in runs for each in made.figures),
        "traffic": sum(made.kilobytes_a_node() for made in runs),
        "state": sum(made.state_a_node() for made in runs),
        "time to converge": max(each.seconds for made in runs for each in made.figures),
    }


def _check(made: Run, links: dict[tuple[str, str], int], views: list[str]) -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((a, b, cost) for (a, b), cost in links.items())
    for name in views:
        ways = dict(nx.all_pairs_dijkstra_path_length(graph, weight="weight" if name == "least" else lambda *_: 1))
        expected: set[Tuple] = {(a, b, far) for a, found in ways.items() for b, far in found.items() if a != b}
        if {row for row in made.network.relation(name) if row[0] != row[1]} != expected:
            raise AssertionError(f"{name} is wrong")


EXPERIMENT = Experiment(
    name="fig18_selection",
    title="Aggregate selection",
    question=(
        "The fewest hops and the least cost between all nodes of a transit-stub network of 39 nodes, dense (4 links a node) or "
        "sparse (2), with lazy absorption. A link costs its latency: 50, 10 or 2 ms. Without selection paths are explored "
        "forever. With one aggregate a selection, shortest and cheapest paths are two views, each explored by itself, and what "
        "both take is added up; with several, they are explored together. Times are simulated."
    ),
    schemes=("several", "one", "none"),
    across="links a node",
    points=(2, 4),
    metrics={
        "tuples": "shipped",
        "traffic": "kB a node",
        "state": "kB a node",
        "time to converge": "s",
    },
    measure=measure,
    claims=[
        Claim(
            "without selection nothing finishes on dense networks, and one saves an order of magnitude at least",
            lambda results: f"none: {results.ratio('none', 'one', 'traffic')}",
        ),
        Claim(
            "several at once cost half of one",
            lambda results: (
                f"{results.ratio('several', 'one', 'tuples')} the tuples of exploring them apart, "
                f"{results.ratio('several', 'one', 'traffic')} the traffic, "
                f"{results.ratio('several', 'one', 'state')} the state"
            ),
        ),
    ],
    cut_off=60,
    of_processor=True,
)

if __name__ == "__main__":
    run(EXPERIMENT)
