"""Figures 23 and 26: the first optimization of each query, and what each way of pruning leaves out."""

from __future__ import annotations

import tracemalloc

from harness import Claim, Experiment, Results, run
from tpch import QUERIES, milliseconds, query, uniform

from whence.optimizer import BottomUp, Memo, Optimizer, Prunings, QuerySpace, TopDown
from whence.optimizer.rules import RuleOptimizer

AHEAD = 4.0  # as in figure 24
SWITCHES = {
    "nothing but aggregate selection": Prunings(suppression=False, references=False, bounding=False),
    "suppression (Evita Raced)": Prunings(references=False, bounding=False),
    "suppression, references": Prunings(bounding=False),
    "suppression, bounding": Prunings(references=False),
    "all": Prunings(),
}


def measure(scheme: str, point: float, seed: int) -> dict[str, float]:  # noqa: ARG001 - what is random here is the time only
    statistics = uniform()
    parsed = query(QUERIES[int(point) - 1], statistics)
    whole = QuerySpace(parsed, statistics)
    nodes = list(whole.nodes())
    count = sum(len(whole.alternatives(each)) for each in nodes)

    def fresh() -> QuerySpace:
        return QuerySpace(parsed, statistics)

    found: Optimizer | TopDown | BottomUp | RuleOptimizer
    match scheme:
        case "Volcano":
            taken = milliseconds(lambda: TopDown(fresh(), memo=Memo.BEST))
            found = TopDown(whole, memo=Memo.BEST)
            seen, dear = found.looked_at()
            kept_nodes, kept_alternatives = seen - dear, found.effort.alternatives
        case "System R":
            taken = milliseconds(lambda: BottomUp(fresh(), memo=Memo.BEST))
            found, kept_nodes, kept_alternatives = BottomUp(whole), len(nodes), count
        case "rules on the engine":
            taken = milliseconds(lambda: RuleOptimizer(fresh()), 3)
            found, kept_nodes, kept_alternatives = RuleOptimizer(whole), len(nodes), count
        case "all, looking ahead":
            taken = milliseconds(lambda: Optimizer(fresh(), ahead=AHEAD))
            found = Optimizer(whole, ahead=AHEAD)
            kept_nodes, kept_alternatives = (len(each) for each in found.kept())
        case _:
            taken = milliseconds(lambda: Optimizer(fresh(), SWITCHES[scheme]))
            found = Optimizer(whole, SWITCHES[scheme])
            kept_nodes, kept_alternatives = (len(each) for each in found.kept())
    assert found.plan() == Optimizer(fresh()).plan()
    tracemalloc.start()
    keep = Optimizer(fresh(), SWITCHES.get(scheme, Prunings()), ahead=AHEAD if "ahead" in scheme else 0.0)
    memory = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    assert keep.cost == found.cost
    return {
        "time": taken,
        "nodes pruned": 100 * (1 - kept_nodes / len(nodes)),
        "alternatives pruned": max(0.0, 100 * (1 - kept_alternatives / count)),
        "state": memory,
    }


def _of_volcano(results: Results, scheme: str = "all") -> str:
    found = {
        name: results.ratio(scheme, "Volcano", "time", at) for at, name in enumerate(QUERIES, 1) if at in results.points
    }
    return ", ".join(f"{name} {ratio}" for name, ratio in found.items())


def _range(results: Results, metric: str) -> str:
    joins = [
        at
        for at, name in enumerate(QUERIES, 1)
        if name in {"q5", "q5s", "q10", "q8join", "q8joins"} and at in results.points
    ]
    found = [results.median("all", at, metric) or 0.0 for at in joins]
    return f"{min(found):.0f} to {max(found):.0f} %"


EXPERIMENT = Experiment(
    name="fig23_first",
    title="First optimization of TPC-H queries",
    question=(
        "Statistics of scale 1; from a parsed query to its plan, nothing cached. "
        "Pruned is what is not kept at the end; for Volcano, what was too dear. Queries by number: "
        + ", ".join(f"{at} {name}" for at, name in enumerate(QUERIES, 1))
        + "."
    ),
    schemes=("Volcano", "System R", *SWITCHES, "all, looking ahead", "rules on the engine"),
    across="query",
    points=tuple(range(1, len(QUERIES) + 1)),
    metrics={"time": "ms", "nodes pruned": "%", "alternatives pruned": "%", "state": "MB"},
    measure=measure,
    claims=(
        Claim("at most 1.5x the time of Volcano (figure 23a)", _of_volcano),
        Claim("the same, looking ahead", lambda results: _of_volcano(results, "all, looking ahead")),
        Claim("35 to 80 % of OR nodes pruned (figure 23b)", lambda results: _range(results, "nodes pruned")),
        Claim("55 to 75 % of AND nodes pruned (figure 23c)", lambda results: _range(results, "alternatives pruned")),
        Claim(
            "state under 100 MB for Q8Join",
            lambda results: f"{results.median('all', QUERIES.index('q8join') + 1, 'state') or 0:.2f} MB",
        ),
        Claim(
            "rules on the engine, q5",
            lambda results: f"{results.median('rules on the engine', QUERIES.index('q5') + 1, 'time') or 0:.0f} ms",
        ),
    ),
    cut_off=120,
)

if __name__ == "__main__":
    run(EXPERIMENT)
