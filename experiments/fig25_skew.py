"""Figure 25: query 5 runs over one partition after the other of skewed data, and is planned again with what was seen so far."""

from __future__ import annotations

from functools import cache

from harness import Claim, Experiment, Results, run
from tpch import connect, milliseconds, query, uniform

from whence.optimizer import Memo, Optimizer, QuerySpace, TopDown, Touch
from whence.optimizer.cost import LOG_ONE, to_log
from whence.optimizer.query import places_of

SCALE, ZIPF, PARTITIONS = 0.1, 0.5, 10
ORDERS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
NOTED = LOG_ONE // 20  # what differs by less than 4 % is no news


@cache
def _database() -> object:
    return connect(SCALE, zipf=ZIPF)


@cache
def seen(space_query: str, expression: int, partitions: int) -> float:
    """How many rows an expression has in the first partitions, made up to all of them."""
    parsed = query(space_query)
    names = [parsed.relations[at].name for at in places_of(expression)]
    wheres = [each.text for each in parsed.conditions if all(expression >> at & 1 for at in each.places)]
    for members in parsed.classes:
        there = [each.name for each in sorted(members) if expression >> each.at & 1]
        wheres += [f"{there[0]} = {other}" for other in there[1:]]
    parted = [f"{ORDERS[name]} % {PARTITIONS} < {partitions}" for name in names if name in ORDERS]
    text = f"SELECT count(*) FROM {', '.join(names)} WHERE {' AND '.join([*wheres, *parted, 'true'])}"  # noqa: S608 - ours
    ((rows,),) = _database().execute(text).fetchall()  # type: ignore[attr-defined]
    return max(1.0, rows * (PARTITIONS / partitions if parted else 1))


def take_in(space: QuerySpace, expressions: list[int], partitions: int) -> list[Touch]:
    """Corrects the rows of expressions, smaller ones first, by what was seen."""
    touches = []
    for each in sorted(expressions, key=int.bit_count):
        log = to_log(seen("q5", each, partitions)) - space.log(each)
        if abs(log) > NOTED:
            touches.append(space.change_rows(each, log))
    return touches


def measure(scheme: str, point: float, seed: int) -> dict[str, float]:  # noqa: ARG001 - what is random here is the time only
    statistics = uniform()  # those of TPC-H at scale 1, not of the data that is run on
    space = QuerySpace(query("q5", statistics), statistics)
    optimizer = Optimizer(space)
    scratch, moved, noted = 0.0, False, 0
    taken = 0.0
    for partition in range(1, int(point) + 1):
        expressions = sorted({each.node[0] for each in optimizer.plan().walk() if each.node[0] <= space.whole})
        touches = take_in(space, expressions, partition)
        noted = len(touches)

        def update(found: list[Touch] = touches) -> None:
            nonlocal moved
            moved = optimizer.update(found)

        taken = milliseconds(update, 1)
        if partition == int(point):
            scratch = milliseconds(lambda: TopDown(space.fresh(), memo=Memo.BEST), 5)
        assert optimizer.plan() == TopDown(space.fresh()).plan()
    time = scratch if scheme == "Volcano from scratch" else taken
    return {"time": time, "plans a second": 1000 / max(time, 1e-3), "facts": noted, "another plan": float(moved)}


def _speeds(results: Results) -> str:
    found = [results.median("incremental", point, "plans a second") or 0.0 for point in results.points]
    return f"{min(found):,.0f} to {max(found):,.0f}, Volcano " + ", ".join(
        f"{results.median('Volcano from scratch', point, 'plans a second') or 0:,.0f}" for point in results.points[:1]
    )


def _ratios(results: Results) -> str:
    found = [
        (results.median("Volcano from scratch", point, "time") or 0)
        / (results.median("incremental", point, "time") or 1)
        for point in results.points
    ]
    return ", ".join(f"{each:.0f}x" for each in found)


EXPERIMENT = Experiment(
    name="fig25_skew",
    title="Query 5 over partitions of skewed data",
    question=(
        f"TPC-H at scale {SCALE:g} with foreign keys drawn by Zipf's law ({ZIPF:g}), in {PARTITIONS} partitions by order. "
        "The first plan is that of uniform statistics at scale 1; after each partition, the rows of each part of the plan are "
        "corrected by what was seen so far."
    ),
    schemes=("Volcano from scratch", "incremental"),
    across="partition",
    points=tuple(range(1, PARTITIONS + 1)),
    metrics={"time": "ms", "plans a second": "", "facts": "", "another plan": ""},
    measure=measure,
    claims=(
        Claim("at least 60 optimizations a second (Volcano: 2)", _speeds),
        Claim("at least 10x over Volcano, partition by partition", _ratios),
    ),
    cut_off=300,
)

if __name__ == "__main__":
    run(EXPERIMENT)
