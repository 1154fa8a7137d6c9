"""Figures 3.9 and 3.10: joining with 2,000 entries, and 1 % of updates, by how many peers there are."""

from __future__ import annotations

from functools import partial
from itertools import chain
from statistics import median

from exchange_workload import Workload, check_instance, counted, processor_time
from harness import Claim, Experiment, Results, run

from whence.exchange import Instance

ENTRIES = 2_000
UPDATES = 5


def measure(scheme: str, peers: float, seed: int) -> dict[str, float]:
    workload = Workload(int(peers), ENTRIES, seed, strings=scheme == "strings")
    edits, confederation = workload.all_edits(), workload.confederation()
    made: list[Instance] = []
    joining = processor_time(lambda: made.append(Instance(confederation, edits)))
    instance = made[0]
    rows, provenance = counted(instance)
    extra, gone = [workload.insertions(0.01, number) for number in range(UPDATES)], workload.deletions(0.01)
    # What is made at the first epoch is there before the measurement.
    instance.apply(extra[0][:2])
    instance.apply([each._replace(op="-") for each in extra[0][:2]])
    # Tables grow now and then, by half: the first update after a load pays for it, and not for itself alone.
    inserting = median(processor_time(partial(instance.apply, each)) for each in extra)
    deleting = processor_time(lambda: instance.apply(gone))
    if peers <= 10:
        check_instance(instance, [*edits, *chain(*extra), *gone])
    return {
        "joining": joining,
        "rows": rows,
        "provenance": 100 * provenance / (rows + provenance),
        "1 % more": inserting,
        "1 % less": deleting,
    }


def _at_most(results: Results) -> str:
    return ", ".join(
        f"{scheme} {results.median(scheme, results.points[-1], 'joining') or 0:.1f} s"
        for scheme in ("integers", "strings")
    )


def _share(results: Results) -> str:
    shares = [results.median("integers", point, "provenance") or 0 for point in results.points]
    return f"{min(shares):.0f} to {max(shares):.0f} %"


def _faster(results: Results) -> str:
    last = results.points[-1]
    joining = results.median("integers", last, "joining") or 0
    ratios = [
        f"{metric}: {joining / (results.median('integers', last, metric) or 1):.0f}x"
        for metric in ("1 % more", "1 % less")
    ]
    return f"joining anew takes {', '.join(ratios)}"


EXPERIMENT = Experiment(
    name="exchange_joining",
    title="Joining with 2,000 entries each, and 1 % of updates",
    question=(
        "Every peer but the first gets from an earlier one. Joining is from rows in Python to an instance with "
        "everything derived; then five times 1 % more entries come at every peer (the median is given), and 1 % of "
        "the old ones go. Time is of the "
        "processor. An entry is two rows at each peer that it gets to. Provenance is the share of rows of mappings "
        "among all."
    ),
    schemes=("integers", "strings"),
    across="peers",
    points=(2, 5, 10, 20, 50, 100),
    metrics={"joining": "s", "rows": "", "provenance": "%", "1 % more": "s", "1 % less": "s"},
    measure=measure,
    claims=[
        Claim("13 to 15 minutes for 100 peers; bar: at most minutes", _at_most),
        Claim("provenance is about 25 % of the rows", _share),
        Claim("updates are much faster than joining anew; bar: 1 % at 100 peers at least 20x", _faster),
    ],
    cut_off=600,
)

if __name__ == "__main__":
    run(EXPERIMENT)
