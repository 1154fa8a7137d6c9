"""Figure 3.12: joining at 10 and 20 peers, by from how many others a peer gets rows."""

from __future__ import annotations

from exchange_workload import Workload, counted, processor_time
from harness import Claim, Experiment, Results, run

from whence.exchange import Instance


def measure(scheme: str, fan: float, seed: int) -> dict[str, float]:
    workload = Workload(int(scheme.split(maxsplit=1)[0]), 2_000, seed, fan=int(fan))
    edits, confederation = workload.all_edits(), workload.confederation()
    made: list[Instance] = []
    joining = processor_time(lambda: made.append(Instance(confederation, edits)))
    rows, provenance = counted(made[0])
    return {"joining": joining, "rows": rows, "provenance": 100 * provenance / rows}


def _shares(results: Results) -> str:
    return ", ".join(f"{results.median('10 peers', fan, 'provenance') or 0:.0f} %" for fan in results.points)


EXPERIMENT = Experiment(
    name="exchange_fans",
    title="Joining with 2,000 entries each, by fan",
    question=(
        "Every peer gets rows from so many earlier ones, as far as there are. Provenance is rows of mappings for 100 "
        "rows of peers. Time is of the processor. The share follows from who gets from whom alone: an entry is two rows at "
        "every peer that it gets to, and one row for each mapping whose source has it. With a fan of 3, 10 peers have 24 "
        "mappings and not 27, and 20 peers 54 and not 57, for the first have nobody to get from; and not all sources of a "
        "peer have an entry that one of them has. So it comes near to half the fan where peers are many, as with 20 here, "
        "and is below where they are few."
    ),
    schemes=("10 peers", "20 peers"),
    across="fan",
    points=(1, 2, 3),
    metrics={"joining": "s", "rows": "", "provenance": "%"},
    measure=measure,
    claims=[Claim("provenance for rows of peers: 25 %, more than 50 %, about 100 % (10 peers)", _shares)],
)

if __name__ == "__main__":
    run(EXPERIMENT)
