"""Shortest-path trees on growing fields: figures 5(b) and 6 of the paper on sensor networks."""

from __future__ import annotations

from fields import HOP, levels, radio_field, wrong_levels
from harness import Claim, Experiment, Results, run

from whence.runtime import Channel

JITTER = 1.5  # of a hop


def measure(scheme: str, nodes: float, seed: int) -> dict[str, float]:
    field = radio_field(int(nodes), seed)
    found, messages = levels(scheme, field, Channel(latency=HOP, jitter=JITTER * HOP), seed)
    wrong = wrong_levels(found, field)
    assert scheme == "flood" or wrong == 0
    return {"messages": messages / nodes, "wrong levels": wrong}


def ratios(results: Results, scheme: str) -> str:
    return ", ".join(f"{point:g} nodes {results.ratio(scheme, 'flood', 'messages', point)}" for point in results.points)


EXPERIMENT = Experiment(
    name="sensors_tree",
    title="Shortest-path trees",
    question=(
        "Nodes at random places of 50 by 50 that hear each other up to 20 apart; every node learns how many hops "
        "away node 0 is, and "
        "all of its parents. A native flood (the first message heard decides, one message a node) against two "
        "logic programs, whose "
        f"tuples are told to neighbours. Hops take up to {JITTER} times longer than they have to. The programs "
        "have no wrong level."
    ),
    schemes=("flood", "logicJ", "logicH"),
    across="nodes",
    points=(25, 50, 100, 200),
    metrics={"messages": "a node", "wrong levels": "share"},
    measure=measure,
    claims=[
        Claim(
            "logicJ below 2x the flood, falling with size (printed); at most 1.2x (ours)",
            lambda results: ratios(results, "logicJ"),
        ),
        Claim("logicH: stated; it has a message for each parent", lambda results: ratios(results, "logicH")),
    ],
    cut_off=60,
)

if __name__ == "__main__":
    run(EXPERIMENT)
