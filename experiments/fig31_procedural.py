"""Figures 31 to 34: the procedural optimizers on query 5, each against itself from scratch."""

from __future__ import annotations

from harness import Claim, Experiment, Results, run
from tpch import JOINS, expression, milliseconds, query, uniform

from whence.optimizer import BottomUp, Memo, QuerySpace, TopDown, Touch
from whence.optimizer.cost import to_log

TIMES = 7
SCHEMES = {
    "bottom-up, all": (BottomUp, Memo.ALL, True),
    "bottom-up, near": (BottomUp, Memo.NEAR, True),
    "bottom-up, best": (BottomUp, Memo.BEST, True),
    "bottom-up, best, no conditional testing": (BottomUp, Memo.BEST, False),
    "top-down, all": (TopDown, Memo.ALL, True),
    "top-down, best": (TopDown, Memo.BEST, True),
}
# What changes, by what, and by how much; a point is a place in this list.
CHANGES = [(kind, join, factor) for kind in ("cost", "rows") for join in ("A", "C", "E") for factor in (0.125, 8)]
CHANGES += [("scan", "orders", 0.125), ("scan", "orders", 8)]


def _change(space: QuerySpace, kind: str, join: str, factor: float) -> Touch:
    where = expression(space.query, *JOINS.get(join, (join,)))
    if kind == "rows":
        return space.change_rows(where, to_log(factor))
    if kind == "scan":
        return space.change_rows(where, to_log(factor), table=True)
    return space.change_cost(where, to_log(factor))


def measure(scheme: str, point: float, seed: int) -> dict[str, float]:  # noqa: ARG001 - what is random here is the time only
    make, memo, conditional = SCHEMES[scheme]
    statistics = uniform()
    parsed = query("q5", statistics)
    change = CHANGES[int(point) - 1]
    changed = QuerySpace(parsed, statistics)
    _change(changed, *change)
    scratch = milliseconds(lambda: make(changed.fresh(), memo=memo, conditional=conditional), TIMES)
    anew = make(changed, memo=memo, conditional=conditional)
    waiting = []
    for _ in range(TIMES):
        space = QuerySpace(parsed, statistics)
        waiting.append((space, make(space, memo=memo, conditional=conditional)))
    used = iter(waiting)

    def update() -> None:
        space, optimizer = next(used)
        optimizer.update([_change(space, *change)])

    taken = milliseconds(update, TIMES)
    _, optimizer = waiting[0]
    assert optimizer.plan() == anew.plan()
    return {
        "speed-up": scratch / taken,
        "nodes": 100 * optimizer.effort.nodes / anew.effort.nodes,
        "alternatives": 100 * optimizer.effort.alternatives / anew.effort.alternatives,
        "time": taken,
    }


def _span(results: Results, scheme: str, kind: str, metric: str = "speed-up") -> str:
    points = [at for at, change in enumerate(CHANGES, 1) if change[0] == kind and at in results.points]
    found = [results.median(scheme, at, metric) or 0.0 for at in points]
    return f"{min(found):.3g} to {max(found):.3g}" if found else "-"


def _conditional(results: Results) -> str:
    ratios = [
        (results.median("bottom-up, best, no conditional testing", at, "time") or 0)
        / (results.median("bottom-up, best", at, "time") or 1)
        for at in results.points
    ]
    return f"{min(ratios):.2g} to {max(ratios):.2g}x"


EXPERIMENT = Experiment(
    name="fig31_procedural",
    title="Procedural optimizers that are incremental, on query 5",
    question=(
        "Each against itself from scratch; shares are of the nodes and alternatives looked at from scratch. Changes: "
        + ", ".join(f"{at} {kind}({join}) x {factor:g}" for at, (kind, join, factor) in enumerate(CHANGES, 1))
        + "."
    ),
    schemes=tuple(SCHEMES),
    across="change",
    points=tuple(range(1, len(CHANGES) + 1)),
    metrics={"speed-up": "x", "nodes": "%", "alternatives": "%", "time": "ms"},
    measure=measure,
    claims=(
        Claim(
            "4 to 30x, cost of a join, bottom-up, memo all (figure 31)",
            lambda results: _span(results, "bottom-up, all", "cost"),
        ),
        Claim(
            "4 to 30x, cost of a join, top-down, memo all (figure 31)",
            lambda results: _span(results, "top-down, all", "cost"),
        ),
        Claim("1.3 to 4x by conditional testing, bottom-up, memo best (figure 32)", _conditional),
        Claim("3 to 35x, top-down, memo best (figure 33)", lambda results: _span(results, "top-down, best", "cost")),
        Claim(
            "6 to 10x, join selectivity, bottom-up (figure 34)",
            lambda results: _span(results, "bottom-up, all", "rows"),
        ),
        Claim(
            "3 to 10x, scan cardinality, bottom-up (figure 34)",
            lambda results: _span(results, "bottom-up, all", "scan"),
        ),
    ),
    cut_off=120,
)

if __name__ == "__main__":
    run(EXPERIMENT)
