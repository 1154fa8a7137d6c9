"""Best paths with aggregate selection for none, one or several aggregates: figure 18 of the dissertation, 16 of the article."""

from __future__ import annotations

from random import Random

import networkx as nx
from harness import Claim, Experiment, run
from networks import Run, run_of

from whence import Program, Update, load
from whence.lang.types import Tuple
from whence.network.provenance import AbsorptionStrategy, Selection
from whence.topology import transit_stub

_PATH = """
.decl {path}(@src:symbol, dst:symbol, next:symbol, length:number, cost:number)
{path}(@x, y, y, 1, c) :- link(@x, y, c).
{path}(@x, y, z, n + 1, c + d) :- link(@x, z, c), {path}(@z, y, _, n, d).
"""
_LINK = ".decl link(@src:symbol, dst:symbol, cost:number)\n.input link\n.output hops, least\n"
_HOPS = "hops(@x, y, m) :- {path}(@x, y, _, _, _), m = min n : {{ {path}(@x, y, _, n, _) }}.\n"
_LEAST = "least(@x, y, m) :- {path}(@x, y, _, _, _), m = min c : {{ {path}(@x, y, _, _, c) }}.\n"
TOGETHER = load(_LINK + _PATH.format(path="path") + _HOPS.format(path="path") + _LEAST.format(path="path"))
APART = load(
    _LINK
    + _PATH.format(path="short")
    + _PATH.format(path="cheap")
    + _HOPS.format(path="short")
    + _LEAST.format(path="cheap")
)
_BY = ("src", "dst")
PLANS: dict[str, tuple[Program, list[Selection]]] = {
    "none": (TOGETHER, []),
    "one": (APART, [Selection("short", _BY, (("min", "length"),)), Selection("cheap", _BY, (("min", "cost"),))]),
    "several": (TOGETHER, [Selection("path", _BY, (("min", "length"), ("min", "cost")))]),
}


def measure(scheme: str, degree: float, seed: int) -> dict[str, float]:
    network = transit_stub(seed=seed, degree=int(degree), transit=3, stubs_per_transit=2, nodes_per_stub=6)
    program, selections = PLANS[scheme]
    made = run_of((AbsorptionStrategy(selections=selections), "lazy"), network, seed=seed, program=program)
    draw = Random(seed)
    links = {pair: draw.randint(1, 100) for link in network.links for pair in link.pairs()}
    figures = made.apply(Update("+", "link", (*pair, cost)) for pair, cost in links.items())
    _check(made, links)
    return {
        "provenance": made.provenance_a_tuple(),
        "traffic": made.kilobytes_a_node(),
        "state": made.state_a_node(),
        "time to converge": figures.seconds,
    }


def _check(made: Run, links: dict[tuple[str, str], int]) -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((a, b, cost) for (a, b), cost in links.items())
    for name, weight in (("hops", None), ("least", "weight")):
        ways = dict(nx.all_pairs_dijkstra_path_length(graph, weight=weight or (lambda *_: 1)))
        expected: set[Tuple] = {(a, b, far) for a, found in ways.items() for b, far in found.items() if a != b}
        if {row for row in made.network.relation(name) if row[0] != row[1]} != expected:
            raise AssertionError(f"{name} is wrong")


EXPERIMENT = Experiment(
    name="fig18_selection",
    title="Aggregate selection",
    question=(
        "The fewest hops and the least cost between all nodes of a transit-stub network of 39 nodes, dense (4 links a node) or "
        "sparse (2), with lazy absorption. Without selection paths are explored forever. With one aggregate for each selection, "
        "shortest and cheapest paths are explored apart; with several, together. Times are simulated."
    ),
    schemes=("several", "one", "none"),
    across="links a node",
    points=(2, 4),
    metrics={
        "provenance": "bytes a tuple shipped",
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
                f"{results.ratio('several', 'one', 'traffic')} the traffic of exploring them apart, "
                f"{results.ratio('several', 'one', 'state')} the state"
            ),
        ),
    ],
    cut_off=60,
)

if __name__ == "__main__":
    run(EXPERIMENT)
