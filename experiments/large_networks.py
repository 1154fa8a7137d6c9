"""Networks of thousands of nodes under support counting: what the simulator can hold, and what a failure costs there."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from itertools import product
from statistics import mean

import networkx as nx
from harness import Claim, CutOff, Experiment, Results, run
from networks import REACHABLE, Run, run_of

from whence import Program, Update, load
from whence.lang.types import Tuple
from whence.topology import Link, fail_alone, transit_stub

NODES_A_TRANSIT = 25
FAILURES = 100
DESTINATIONS = 10
MOST_PAIRS = 2_000_000
NEXT_HOPS = load("""
.decl link(@src:symbol, dst:symbol, ms:number)
.input link
.decl destination(@node:symbol)
.input destination
.decl offer(@node:symbol, to:symbol, ms:number)
offer(@x, x, 0) :- destination(@x).
offer(@x, d, m + n) :- link(@x, y, m), cost(@y, d, n).
.decl cost(@node:symbol, to:symbol, ms:number)
cost(@x, d, n) :- offer(@x, d, _), n = min each : { offer(@x, d, each) }.
.decl next(@node:symbol, to:symbol, hop:symbol)
next(@x, d, y) :- link(@x, y, m), cost(@y, d, n), k = m + n, cost(@x, d, k).
.output cost, next
""")


def measure(view: str, nodes: float, seed: int) -> dict[str, float]:
    network = transit_stub(seed=seed, transit=round(nodes / NODES_A_TRANSIT))
    if view == "reachability" and len(network.nodes) ** 2 > MOST_PAIRS:
        raise CutOff  # so many pairs are not tried
    made = run_of("support", network, seed=seed, program=_program(view))
    to = [] if view == "reachability" else list(network.nodes[:: len(network.nodes) // DESTINATIONS][:DESTINATIONS])
    inserted = made.apply([*_updates(view, "+", network.links), *(Update("+", "destination", (each,)) for each in to)])
    failures = []
    for changes in fail_alone(network.links, seed=seed, epochs=2 * FAILURES):
        if changes.failed:
            failures.append(made.apply(_updates(view, "-", changes.failed)))
            failed = changes.failed
            if len(failures) == FAILURES:
                break
        else:
            made.apply(_updates(view, "+", changes.repaired))
    _check(view, made, set(network.links) - set(failed), to)
    return {
        "tuples": inserted.traffic.tuples,
        "traffic": inserted.traffic.bytes / 1e6,
        "time to converge": inserted.seconds,
        "messages of failures": mean(each.traffic.messages for each in failures),
        "traffic of failures": mean(each.traffic.bytes for each in failures) / 1000,
        "processor time": made.seconds / 60,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def _program(view: str) -> Program:
    return REACHABLE if view == "reachability" else NEXT_HOPS


def _updates(view: str, op: str, links: Iterable[Link]) -> list[Update]:
    rows: list[Tuple] = [row for link in links for row in (link.pairs() if view == "reachability" else link.priced())]
    return [Update(op, "link", row) for row in rows]


def _check(view: str, made: Run, links: set[Link], to: list[str]) -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from((link.a, link.b, link.ms) for link in links)
    if view == "reachability":
        name = "reachable"
        expected = {pair for part in nx.connected_components(graph) for pair in product(part, repeat=2)}
    else:
        name = "cost"
        expected = {(node, d, ms) for d in to for node, ms in nx.single_source_dijkstra_path_length(graph, d).items()}
    if made.network.relation(name) != expected:
        raise AssertionError(f"{name} is wrong")


def _took(results: Results, view: str, nodes: float) -> str:
    figures = [
        results.median(view, nodes, name) for name in ("processor time", "traffic", "traffic of failures", "memory")
    ]
    if None in figures:
        return "cut off"
    minutes, traffic, failure, memory = figures
    return f"{minutes:.2g} minutes, {traffic:.3g} MB to build, {failure:.3g} kB a failure, {memory:.2g} GB of memory"


EXPERIMENT = Experiment(
    name="large_networks",
    title="Networks of thousands of nodes",
    question=(
        "Dense transit-stub networks under support counting: reachability of all pairs, and next hops to "
        f"{DESTINATIONS} destinations by latency. All links come up at once, then {FAILURES} fail, each repaired before the next "
        "does: the means of the failures. Times to converge are simulated; processor time is that of "
        "everything, in one thread. Reachability of 10,000 nodes, 100 million pairs, is not tried."
    ),
    schemes=("reachability", "next hops"),
    across="nodes",
    points=(1000, 10000),
    metrics={
        "tuples": "shipped to build the view",
        "traffic": "MB to build the view",
        "time to converge": "s",
        "messages of failures": "a failure",
        "traffic of failures": "kB a failure",
        "processor time": "minutes",
        "memory": "GB of the process so far, at most",
    },
    measure=measure,
    claims=[
        Claim("ours: reachability of 1,000 nodes takes minutes", lambda results: _took(results, "reachability", 1000)),
        Claim("ours: next hops of 10,000 nodes finish", lambda results: _took(results, "next hops", 10000)),
    ],
    cut_off=3000,
    of_processor=True,
)

if __name__ == "__main__":
    run(EXPERIMENT)
