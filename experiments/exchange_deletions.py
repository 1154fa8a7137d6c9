"""Figure 3.8a: deletions at 10 peers with 10,000 entries each, by the share that goes."""

from __future__ import annotations

import multiprocessing
import statistics
from functools import cache
from multiprocessing.connection import Connection

from exchange_workload import Workload, check_instance, processor_time
from harness import Claim, Experiment, Results, run

from whence.exchange import Edit, Instance

PEERS, ENTRIES, RUNS = 10, 10_000, 3
CHECKED = (10, 70)  # percent: where the answer is compared with one made anew
FEWER = 2_000  # what a baseline in plain Python can be asked to keep


@cache
def prepared(scheme: str, seed: int) -> tuple[Workload, list[Edit], Instance]:
    strategy, _, fewer = scheme.partition(" of ")
    entries = FEWER if fewer else ENTRIES
    workload = Workload(PEERS, entries, seed, bases=2)
    edits = workload.all_edits()
    instance = Instance(workload.confederation(), edits, strategy=strategy)
    # What is made at the first epoch is there before the measurement.
    extra = workload.insertions(1 / entries)
    instance.apply(extra)
    instance.apply([each._replace(op="-") for each in extra])
    return workload, edits, instance


def measure(scheme: str, percent: float, seed: int) -> dict[str, float]:
    """In processes of their own, which begin with everything there: nothing has to be put back for the next."""
    workload, edits, instance = prepared(scheme, seed)
    gone = workload.deletions(percent / 100)
    times = []
    processes = multiprocessing.get_context("fork")
    for at in range(1 if scheme.startswith("propagate") else RUNS):
        receiver, sender = processes.Pipe(duplex=False)
        process = processes.Process(
            target=_delete, args=(instance, edits, gone, at == 0 and percent in CHECKED, sender)
        )
        process.start()
        sender.close()
        try:
            spent, deleted = receiver.recv()
        finally:
            process.terminate()
            process.join()
        times.append(spent)
    return {"time": statistics.median(times), "rows that went": deleted}


def _delete(instance: Instance, edits: list[Edit], gone: list[Edit], check: bool, result: Connection) -> None:
    deltas = []
    spent = processor_time(lambda: deltas.append(instance.apply(gone)))
    if check:
        check_instance(instance, [*edits, *gone])
    result.send((spent, sum(map(len, deltas[0].deleted.values()))))


def _crossing(to: str) -> Claim:
    ours_is = "support of 2,000" if to.endswith("2,000") else "support"

    def measured(results: Results) -> str:
        lower = []
        for point in results.points:
            ours, theirs = results.median(ours_is, point, "time"), results.median(to, point, "time")
            if ours is not None and theirs is not None:
                lower.append(f"{point:g} %: {ours / theirs:.2f}")
        return f"support / {to}, {', '.join(lower)}"

    said = {
        "recompute": "provenance beats recomputation up to about 50 %; bar: below it up to 70 %",
        "dred": "DRed is worse in all settings; bar: below it everywhere",
        "propagate-delete of 2,000": "deletion by stored provenance is what was printed",
    }
    return Claim(said[to], measured)


EXPERIMENT = Experiment(
    name="exchange_deletions",
    title="Deletions at 10 peers with 10,000 entries each",
    question=(
        "Entries are in two bases on the average, so that many rows have several derivations. A share of every peer's "
        "entries goes at once. Time is of the processor and includes telling which rows went from every peer; medians "
        "of three runs. Recompute evaluates what is left anew, on the same engine, and compares. Propagate-delete, over "
        "stored derivations, is in plain Python, and compared at 2,000 entries a peer; the others are compiled."
    ),
    schemes=("support", "dred", "recompute", "support of 2,000", "propagate-delete of 2,000"),
    across="percent deleted",
    points=(1, 10, 30, 50, 70, 90),
    metrics={"time": "s", "rows that went": ""},
    measure=measure,
    claims=[_crossing("recompute"), _crossing("dred"), _crossing("propagate-delete of 2,000")],
    cut_off=900,
)

if __name__ == "__main__":
    run(EXPERIMENT)
