"""One row is published, at 10 peers, by how much is there already; 2,000 entries a peer are about 176,000 rows."""

from __future__ import annotations

from exchange_workload import Workload, counted, processor_time
from harness import Claim, Experiment, Results, run

from whence.exchange import Instance

TIMES = 20


def measure(scheme: str, entries: float, seed: int) -> dict[str, float]:
    workload = Workload(10, int(entries), seed)
    instance = Instance(workload.confederation(), workload.all_edits(), strategy=scheme)
    fresh = workload.insertions(1 / entries)[:2]
    gone = [each._replace(op="-") for each in fresh]
    instance.apply(fresh)
    instance.apply(gone)
    times = TIMES if scheme != "recompute" else 1
    spent = [0.0, 0.0]
    for _ in range(times):
        spent[0] += processor_time(lambda: instance.apply(fresh))
        spent[1] += processor_time(lambda: instance.apply(gone))
    return {"insertion": 1000 * spent[0] / times, "deletion": 1000 * spent[1] / times, "rows": sum(counted(instance))}


def _milliseconds(results: Results) -> str:
    rows = results.median("support", 2_000, "rows") or 0
    found = [f"{results.median('support', 2_000, metric) or 0:.1f} ms" for metric in ("insertion", "deletion")]
    return f"{found[0]} in, {found[1]} out, at {rows:,.0f} rows"


EXPERIMENT = Experiment(
    name="exchange_one_row",
    title="One entry comes and goes at the first of 10 peers",
    question=(
        "An entry of the peer that most others get theirs from, directly or through others. Milliseconds of the "
        "processor, the mean of 20."
    ),
    schemes=("support", "dred", "recompute"),
    across="entries a peer",
    points=(500, 2_000, 8_000),
    metrics={"insertion": "ms", "deletion": "ms", "rows": ""},
    measure=measure,
    claims=[Claim("bar: one new row at 176,000 rows takes milliseconds in one process", _milliseconds)],
)

if __name__ == "__main__":
    run(EXPERIMENT)
