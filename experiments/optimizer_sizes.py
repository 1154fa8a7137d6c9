"""Chains, stars and cliques of 3 to 12 relations: the first plan, and the plan after one change."""

from __future__ import annotations

from random import Random

from harness import Claim, Experiment, run
from tpch import milliseconds

from whence.optimizer import Memo, Optimizer, QuerySpace, TopDown, parse_query
from whence.optimizer.cost import to_log
from whence.optimizer.workloads import SHAPES, synthetic

SCHEMES = [f"{kind}, {shape}" for shape in SHAPES for kind in ("ours", "Volcano")]


def measure(scheme: str, relations: float, seed: int) -> dict[str, float]:
    kind, _, shape = scheme.partition(", ")
    text, statistics = synthetic(shape, int(relations), seed)
    parsed = parse_query(text, statistics)
    space = QuerySpace(parsed, statistics)
    random = Random(seed)
    change = random.randrange(1, 1 << int(relations)), to_log(random.choice([1 / 8, 1 / 2, 2, 8]))
    optimizer: Optimizer | TopDown
    if kind == "Volcano":
        first = milliseconds(lambda: TopDown(space.fresh(), memo=Memo.BEST), 1)
        space.change_rows(*change)
        again = milliseconds(lambda: TopDown(space.fresh(), memo=Memo.BEST), 1)
        return {"first": first, "after a change": again}
    first = milliseconds(lambda: Optimizer(space.fresh()), 1)
    optimizer = Optimizer(space)
    again = milliseconds(lambda: optimizer.update([space.change_rows(*change)]), 1)
    if relations <= 6:
        assert optimizer.plan() == TopDown(space.fresh()).plan()
    return {"first": first, "after a change": again}


EXPERIMENT = Experiment(
    name="optimizer_sizes",
    title="Chains, stars and cliques of joins",
    question=(
        "From a parsed query to its plan, and to its plan after the rows of a random set of relations changed, "
        "with Volcano from scratch each time."
    ),
    schemes=tuple(SCHEMES),
    across="relations",
    points=(3, 4, 6, 8, 10, 12),
    metrics={"first": "ms", "after a change": "ms"},
    measure=measure,
    claims=(
        Claim("stars of 10, first", lambda results: results.ratio("Volcano, star", "ours, star", "first", 10)),
        Claim(
            "stars of 10, after a change",
            lambda results: results.ratio("Volcano, star", "ours, star", "after a change", 10),
        ),
        Claim(
            "cliques of 6, after a change",
            lambda results: results.ratio("Volcano, clique", "ours, clique", "after a change", 6),
        ),
    ),
    cut_off=20,
)

if __name__ == "__main__":
    run(EXPERIMENT)
