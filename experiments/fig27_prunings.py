"""Figure 27: what reading the orders costs turns out otherwise, with each way of pruning."""

from __future__ import annotations

from fig23_first import SWITCHES
from harness import Claim, Experiment, run
from tpch import expression, milliseconds, query, uniform

from whence.optimizer import Optimizer, QuerySpace
from whence.optimizer.cost import to_log
from whence.optimizer.exhaustive import cheapest

TIMES = 9


def measure(scheme: str, factor: float, seed: int) -> dict[str, float]:  # noqa: ARG001 - what is random here is the time only
    statistics = uniform()
    parsed = query("q5", statistics)
    orders = expression(parsed, "orders")
    waiting = []
    for _ in range(TIMES):
        space = QuerySpace(parsed, statistics)
        waiting.append((space, Optimizer(space, SWITCHES[scheme])))
    used = iter(waiting)

    def update() -> None:
        space, optimizer = next(used)
        optimizer.update([space.change_cost(orders, to_log(factor))])

    taken = milliseconds(update, TIMES)
    space, optimizer = waiting[0]
    assert optimizer.plan() == cheapest(space.fresh())
    return {"time": taken, "nodes": optimizer.effort.nodes, "alternatives": optimizer.effort.alternatives}


EXPERIMENT = Experiment(
    name="fig27_prunings",
    title="Scans of the orders cost more or less in query 5",
    question="The plan is found again with each way of pruning: how long that takes, and how much is looked at.",
    schemes=tuple(SWITCHES),
    across="factor",
    points=(0.125, 0.25, 0.5, 2, 4, 8),
    metrics={"time": "ms", "nodes": "", "alternatives": ""},
    measure=measure,
    claims=(
        Claim(
            "techniques work best combined: nothing but aggregate selection to all, at 8",
            lambda results: results.ratio("nothing but aggregate selection", "all", "time"),
        ),
    ),
    cut_off=120,
)

if __name__ == "__main__":
    run(EXPERIMENT)
