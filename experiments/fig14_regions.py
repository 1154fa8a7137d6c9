"""Regions of triggered sensors: figure 14 of the dissertation, 12 of the article."""

from __future__ import annotations

from math import dist
from random import Random
from statistics import mean

import networkx as nx
from harness import Claim, Experiment, run
from networks import Run, run_of

from whence import Program, Update, load
from whence.topology import Link, Topology

SIDE, APART, REACH, SEEDS = 100, 10, 20, 5  # metres, and how many sensors are seeds
REMOVED = 10


def field() -> Topology:
    """A grid of sensors. Those that are near each other can talk."""
    places = {f"s{x}-{y}": (float(x), float(y)) for x in range(0, SIDE, APART) for y in range(0, SIDE, APART)}
    links = [
        Link(a, b, 1, 100)
        for a, here in places.items()
        for b, there in places.items()
        if a < b and dist(here, there) < REACH
    ]
    return Topology(tuple(places), tuple(links), places)


FIELD = field()
SENSORS = nx.Graph((link.a, link.b) for link in FIELD.links)


def regions(seeds: list[str]) -> Program:
    """Regions have the names of their seeds. Where sensors are does not change: the program states it."""
    stated = [f'near("{a}", "{b}").' for link in FIELD.links for a, b in link.pairs()]
    stated += [f'seed("{each}", "{each}").' for each in seeds]
    return load(
        """.include "whence/regions.dl"
.decl near(@sensor:symbol, other:symbol)
.decl seed(region:symbol, @sensor:symbol)
.decl triggered(@sensor:symbol)
.input triggered
.init of = ActiveRegions<symbol, symbol, seed, near, triggered>
.init sizes = RegionSizes<symbol, symbol, of.active>
.output of.active, sizes.size
"""
        + "\n".join(stated)
    )


def measure(scheme: str, share: float, seed: int) -> dict[str, float]:
    draw = Random(seed)
    seeds = draw.sample(FIELD.nodes, SEEDS)
    others = [node for node in FIELD.nodes if node not in seeds]
    triggered = [*seeds, *draw.sample(others, round(share * len(FIELD.nodes)) - SEEDS)]
    made = run_of(scheme, FIELD, seed=seed, program=regions(seeds))
    inserted = made.apply(Update("+", "triggered", (node,)) for node in draw.sample(triggered, len(triggered)))
    check(made, seeds, triggered)
    came = {
        "provenance": made.provenance_a_tuple(),
        "traffic": made.kilobytes_a_node(),
        "state": made.state_a_node(),
        "time to converge": inserted.seconds,
    }
    removed = []
    for node in draw.sample(triggered, REMOVED):
        triggered.remove(node)
        removed.append(made.apply([Update("-", "triggered", (node,))]))
        check(made, seeds, triggered)
    return {**came, "traffic of removals": mean(each.traffic.bytes for each in removed) / 1000}


def check(made: Run, seeds: list[str], triggered: list[str]) -> None:
    inside = SENSORS.subgraph(triggered)
    found = {seed: nx.node_connected_component(inside, seed) for seed in seeds if seed in inside}
    active = {(seed, node) for seed, nodes in found.items() for node in nodes}
    if made.network.relation("of.active") != active:
        raise AssertionError("regions are wrong")
    if made.network.relation("sizes.size") != {(seed, len(nodes)) for seed, nodes in found.items()}:
        raise AssertionError("sizes are wrong")


EXPERIMENT = Experiment(
    name="fig14_regions",
    title="Regions of triggered sensors",
    question=(
        f"A field of {len(FIELD.nodes)} sensors, {APART} m apart, of which those less than {REACH} m away are near; {SEEDS} are "
        "seeds of a region each. A share of the sensors is triggered at once; regions and their sizes are kept. Then "
        f"{REMOVED} sensors, one after the other, are not triggered any more: the mean of those. Eager tells what it held back "
        "once a second; times are simulated."
    ),
    schemes=("support", "dred", "relative eager", "relative lazy", "absorption eager", "absorption lazy"),
    across="share of sensors",
    points=(0.2, 0.3, 0.4, 0.5),
    metrics={
        "provenance": "bytes a tuple shipped",
        "traffic": "kB a node",
        "state": "kB a node",
        "time to converge": "s",
        "traffic of removals": "kB a removal",
    },
    measure=measure,
    claims=[
        Claim(
            "the same ranking as for links that come up",
            lambda results: (
                f"traffic of DRed: absorption lazy {results.ratio('absorption lazy', 'dred', 'traffic')}, absorption eager "
                f"{results.ratio('absorption eager', 'dred', 'traffic')}, relative lazy "
                f"{results.ratio('relative lazy', 'dred', 'traffic')}, relative eager "
                f"{results.ratio('relative eager', 'dred', 'traffic')}, support {results.ratio('support', 'dred', 'traffic')}"
            ),
        ),
        Claim(
            "removals: the trends are equal",
            lambda results: (
                f"DRed against absorption lazy {results.ratio('dred', 'absorption lazy', 'traffic of removals')}, "
                f"against support {results.ratio('dred', 'support', 'traffic of removals')}"
            ),
        ),
    ],
    cut_off=60,
)

if __name__ == "__main__":
    run(EXPERIMENT)
