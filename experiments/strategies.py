"""What a failed link costs in one process, by strategy: figure 13 without its network."""

from __future__ import annotations

import time
from statistics import mean

from harness import Claim, Experiment, run

from whence import Session, load
from whence.topology import Link, fail_alone, transit_stub

PROGRAM = load("""
.include "whence/reach.dl"
.decl link(src:symbol, dst:symbol)
.input link
.init net = Reachable<symbol, link>
.output net.reachable
""")
FAILURES = 10


def measure(strategy: str, nodes: float, seed: int) -> dict[str, float]:
    """Links fail one by one, and each is repaired before the next one fails; only the failures are measured."""
    network = transit_stub(seed=seed, transit=max(3, round(nodes / 25)))
    facts = {"link": [pair for link in network.links for pair in link.pairs()]}
    session = Session(PROGRAM, facts=facts, strategy=strategy)
    seconds, rows = [], []
    for changes in fail_alone(network.links, seed=seed, epochs=2 * FAILURES):
        updates = changes.epoch("link", Link.pairs).updates
        start = time.perf_counter()
        session.apply(updates)
        if changes.failed:
            seconds.append(time.perf_counter() - start)
            rows.append(session.last_epoch["derivations"])
    return {"time of a failure": 1000 * mean(seconds), "derivations looked at": mean(rows)}


EXPERIMENT = Experiment(
    name="strategies",
    title="A failed link in one process",
    question="Reachability on dense transit-stub networks. Ten links fail one by one; the means of ten failures.",
    schemes=("support", "dred"),
    across="nodes",
    points=(100, 200, 300),
    metrics={"time of a failure": "ms", "derivations looked at": ""},
    measure=measure,
    claims=[
        Claim(
            "DRed takes an order of magnitude more time than what knows which derivations are left (printed of absorption)",
            lambda results: (
                f"{results.ratio('dred', 'support', 'time of a failure')} the time of support, "
                f"{results.ratio('dred', 'support', 'derivations looked at')} the derivations"
            ),
        ),
    ],
    cut_off=60,
)

if __name__ == "__main__":
    run(EXPERIMENT)
