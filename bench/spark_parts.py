"""What parts that need each other cost on Spark: epochs of 100 updates on a recursion that joins itself.

    python bench/spark_parts.py [--nodes N] [--epochs N]

The closure of a random graph with twice as many links as nodes, by `reach(x, z) :- reach(x, y), reach(y, z)`, which no columns
take apart. Every epoch deletes 50 links and inserts 50. The state is kept in the driver and in 2 and 4 parts by Spark on two
threads; the changes of each epoch have to be the same. The first epochs, in which Java and Spark warm up, are left out.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from measure import Report

from whence import Changes, Update, load
from whence.backends.spark.session import spark_session
from whence.io.changes import Epoch
from whence.lang.types import Tuple
from whence.pipeline.keeper import Keeper, ResidentKeeper
from whence.pipeline.options import RunOptions
from whence.pipeline.parts.keeper import NAP, PartedKeeper
from whence.pipeline.parts.on_spark import SparkCarrier
from whence.pipeline.parts.open import open_state
from whence.pipeline.parts.rounds import Rounds
from whence.pipeline.report import EpochReport
from whence.pipeline.sinks import CallbackSink

CLOSURE = load("""
.decl link(x: number, y: number)
.input link
.decl reach(x: number, y: number)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), reach(y, z).
.output reach
""")
WARM = 3
THREADS = 2
Links = set[tuple[int, int]]


@dataclass
class Kept:
    """What a way to keep the state told, epoch by epoch."""

    name: str
    reports: list[EpochReport] = field(default_factory=list)
    changes: list[tuple[set[Tuple], set[Tuple]]] = field(default_factory=list)

    def write(self, _: int, changes: Changes) -> None:
        self.changes.append((set(changes.inserted.get("reach", ())), set(changes.deleted.get("reach", ()))))

    def median(self, name: str) -> float:
        return statistics.median(getattr(each, name) for each in self.reports[WARM:])


def churn(links: Links, nodes: int, epochs: int) -> Iterator[Epoch]:
    source = random.Random(2)
    for _ in range(epochs):
        gone = source.sample(sorted(links), 50)
        links.difference_update(gone)
        fresh: Links = set()
        while len(fresh) < 50:
            pair = source.randrange(nodes), source.randrange(nodes)
            if pair not in links:
                fresh.add(pair)
        links |= fresh
        updates = [Update("-", "link", row) for row in gone]
        yield Epoch([*updates, *(Update("+", "link", row) for row in sorted(fresh))])


def run(kept: Kept, keeper: Keeper, links: Links, nodes: int, epochs: int) -> None:
    for epoch in churn(set(links), nodes, epochs):
        kept.reports += keeper.apply([epoch])
    keeper.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", type=int, default=300)
    options.add_argument("--epochs", type=int, default=13)
    given = options.parse_args()
    source = random.Random(1)
    links: Links = set()
    while len(links) < 2 * given.nodes:
        links.add((source.randrange(given.nodes), source.randrange(given.nodes)))
    spark = spark_session(f"local[{THREADS}]")
    ways = []
    for parts in (None, 2, 4):
        kept = Kept("in the driver" if parts is None else f"{parts} parts")
        with tempfile.TemporaryDirectory() as folder:
            state, run_options = open_state(Path(folder), CLOSURE), RunOptions(sinks=[CallbackSink(kept.write)])
            facts = {"link": links}
            keeper: Keeper
            if parts is None:
                keeper = ResidentKeeper(CLOSURE, run_options, store=state.whole(), facts=facts)
            else:
                store = state.in_parts(parts, kept.write)
                keeper = PartedKeeper(
                    store, Rounds(SparkCarrier(spark)), run_options, tasks=THREADS, nap=NAP, facts=facts
                )
            run(kept, keeper, links, given.nodes, given.epochs)
        ways.append(kept)
        print(kept.name, *kept.reports, sep="\n", flush=True)
    resident = ways[0]
    assert all(each.changes == resident.changes for each in ways), "the same changes, epoch by epoch"
    size = sum(len(inserted) - len(deleted) for inserted, deleted in resident.changes)
    report = Report("spark_parts", "Parts that need each other")
    report.write(
        f"Closure by a recursion that joins itself, {given.nodes} nodes, {2 * given.nodes} links, {size:,} rows at the end. "
        f"Medians of {given.epochs - WARM} epochs of 100 updates, half of them deletions, on {THREADS} threads; the changes "
        f"of every epoch are the same. Load of the machine at the end: {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores."
    )
    report.table(
        ("", "ms an epoch", "multiple", "rounds", "ms a round", "rows shipped", "kB shipped"),
        [
            (
                each.name,
                f"{each.median('seconds') * 1000:,.0f}",
                f"{each.median('seconds') / resident.median('seconds'):,.1f}",
                f"{each.median('exchanges'):,.0f}",
                f"{each.median('seconds') * 1000 / each.median('exchanges'):,.0f}" if each is not resident else "-",
                f"{each.median('shipped'):,.0f}",
                f"{each.median('shipped_bytes') / 1000:,.1f}",
            )
            for each in ways
        ],
    )
    spark.stop()


if __name__ == "__main__":
    main()
