"""What streaming on Spark costs: one epoch on a large view, and a million updates through a join.

    python bench/spark_stream.py [--updates N]

Everything is measured in one warm session on two threads.

1. Epochs of 100 updates on the closure of a random graph with 500 nodes and 1,000 links, in the driver and in parts,
   against what Spark itself takes for the same micro-batches if the function it calls does nothing, if it runs the
   smallest job there is, and if it only fetches their rows.
2. Updates in epochs of 10,000 through a join of two relations, and how much of the time is spent in Spark.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from measure import Report, percentile, plot_bars
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress as Progress

from whence import load
from whence.backends.spark.session import CHECKPOINT_FILES, spark_session
from whence.spark import Maintenance, maintain

CLOSURE = load("""
.decl link(x: number, y: number)
.input link
.decl reach(x: number, y: number)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
""")
JOIN = load("""
.decl order(id: number, customer: number)
.input order
.decl customer(id: number, region: number)
.input customer
.decl placed(order: number, region: number)
placed(o, r) :- order(o, c), customer(c, r).
.output placed
""")
EPOCHS = 30
ROUNDS = 3
WARM = 3  # rounds of fetching: Java compiles what runs often
CHECKPOINTING = ("latestOffset", "walCommit", "commitOffsets")
Row = dict[str, Any]


def graph(nodes: int, links: int) -> set[tuple[int, int]]:
    source = random.Random(1)
    found: set[tuple[int, int]] = set()
    while len(found) < links:
        x, y = source.randrange(nodes), source.randrange(nodes)
        if x != y:
            found.add((x, y))
    return found


def closure_size(links: set[tuple[object, ...]]) -> int:
    """Counted by a search from each node."""
    successors: dict[object, list[object]] = {}
    for x, y in links:
        successors.setdefault(x, []).append(y)
    count = 0
    for following in successors.values():
        seen: set[object] = set()
        pending = list(following)
        while pending:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                pending += successors.get(node, [])
        count += len(seen)
    return count


def write(folder: Path, batches: Iterator[list[Row]]) -> None:
    folder.mkdir(parents=True)
    for number, rows in enumerate(batches):
        path = folder / f"{number:06d}.json"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        os.utime(path, (number, number))  # Spark takes files in the order of their times


def source_of(spark: SparkSession, folder: Path, schema: str) -> DataFrame:
    """A file a micro-batch."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))


def leaves(links: set[tuple[int, int]]) -> Iterator[list[Row]]:
    """New nodes with a link to nodes that lead nowhere, and the removal of the ones before."""
    dead_ends = sorted({y for _, y in links} - {x for x, _ in links})
    before: list[tuple[int, int]] = []
    for epoch in range(EPOCHS):
        fresh = [(1000 + 100 * epoch + at, dead_ends[at % len(dead_ends)]) for at in range(50 if before else 100)]
        yield [{"op": "-", "x": x, "y": y} for x, y in before[:50]] + [{"op": "+", "x": x, "y": y} for x, y in fresh]
        before = fresh


def last_leaves(links: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """What `leaves` leaves there: half of each epoch but the last is removed by the next."""
    kept: set[tuple[int, int]] = set()
    for rows in leaves(links):
        for row in rows:
            (kept.add if row["op"] == "+" else kept.remove)((row["x"], row["y"]))
    return kept


def batches_of(frame: DataFrame, folder: Path, each: Callable[[DataFrame], object]) -> list[Progress]:
    writer = frame.writeStream.foreachBatch(lambda rows, _: each(rows))
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()
    return with_rows(query)


def with_rows(query: StreamingQuery) -> list[Progress]:
    """The micro-batches with rows, but for the first, which pays for what is made once."""
    return [each for each in query.recentProgress if each.durationMs.get("addBatch")][1:]


@contextmanager
def checkpoints_of_spark(spark: SparkSession) -> Iterator[None]:
    """Checkpoints are written as Spark does by itself."""
    for name in CHECKPOINT_FILES:
        spark.conf.unset(name)
    yield
    for name, value in CHECKPOINT_FILES.items():
        spark.conf.set(name, value)


def smallest_job(rows: DataFrame) -> None:
    """One task, which has nothing to do and gives nothing back to Python."""
    context = rows.sparkSession.sparkContext
    context._jsc.parallelize(context._jvm.java.util.ArrayList(), 1).count()  # noqa: SLF001


class Epochs:
    """Micro-batches of 100 updates, and what is done with them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.links = graph(500, 1000)
        self.engine: list[float] = []
        self.outside: list[float] = []
        write(folder / "links", leaves(self.links))

    @property
    def source(self) -> DataFrame:
        return source_of(self.spark, self.folder / "links", "op STRING, x LONG, y LONG")

    def by_spark(self, name: str) -> list[Progress]:
        with checkpoints_of_spark(self.spark):
            return self.plain(name, lambda _: None)

    def plain(self, name: str, each: Callable[[DataFrame], object]) -> list[Progress]:
        return batches_of(self.source, self.folder / name, each)

    def maintained(self, name: str) -> list[Progress]:
        seconds: list[float] = []
        running = self._run(name, None, seconds)
        self.engine += seconds
        self.outside.append((running.seconds - sum(seconds)) / EPOCHS)
        return with_rows(running.query)

    def in_parts(self, name: str) -> list[Progress]:
        return with_rows(self._run(name, 2, []).query)

    def _run(self, name: str, partitions: int | None, seconds: list[float]) -> Maintenance:
        running = maintain(
            CLOSURE,
            {"link": self.source},
            state=self.folder / name,
            facts={"link": self.links},
            once=True,
            partitions=partitions,
            on_epoch=lambda each: seconds.append(each.seconds),
        )
        running.await_termination()
        left = self.links | last_leaves(self.links)
        assert len(pq.read_table(self.folder / name / "current" / "reach.parquet")) == closure_size(left), "wrong"
        return running


def measure_epochs(spark: SparkSession, folder: Path, report: Report) -> None:
    epochs = Epochs(spark, folder)
    for number in range(WARM):
        epochs.plain(f"warm {number}", DataFrame.toArrow)
    works: dict[str, Callable[[str], list[Progress]]] = {
        "Spark by itself, the function does nothing": epochs.by_spark,
        "the same in a session of Whence": lambda name: epochs.plain(name, lambda _: None),
        "the function runs the smallest job": lambda name: epochs.plain(name, smallest_job),
        "the function fetches the rows": lambda name: epochs.plain(name, DataFrame.toArrow),
        "maintained": epochs.maintained,
        "maintained in 2 parts": epochs.in_parts,
    }
    found: dict[str, list[Progress]] = {name: [] for name in works}
    for number in range(ROUNDS):
        for name, work in works.items():
            found[name] += work(f"{name} {number}")
    times = {name: [each.durationMs["triggerExecution"] for each in batches] for name, batches in found.items()}
    own, ours, *_ = (statistics.median(each) for each in times.values())
    report.write(f"## Epochs of 100 updates on {closure_size(epochs.links):,} rows")
    report.write(
        f"Milliseconds of a micro-batch, {len(times['maintained'])} of each kind, {ROUNDS} rounds in turn. An epoch is to add at "
        "most 30 ms to the first. Sessions that Whence starts write the same checkpoints without starting processes: the second. "
        "No function that looks at the rows can do with less than the third."
    )
    rows = [
        [
            name,
            f"{(median := statistics.median(times[name])):.0f}",
            f"{percentile(times[name], 0.9):.0f}",
            f"{median_of(batches, *CHECKPOINTING):.0f}",
            f"{median_of(batches, 'addBatch'):.0f}",
            f"{median - own:+.0f}",
            f"{median - ours:+.0f}",
        ]
        for name, batches in found.items()
    ]
    report.table(["micro-batch", "p50", "p90", "checkpoint", "function", "adds to the first", "to the second"], rows)
    report.write(
        f"Of an epoch in one piece, {statistics.median(epochs.engine) * 1000:.1f} ms are the engine's and "
        f"{statistics.median(epochs.outside) * 1000:.1f} ms go into reading the rows, the log (synced to disk) and the figures; "
        "the rest is Spark's job that fetches the rows."
    )
    labels = list(times)
    plot_bars(
        "spark_stream",
        "Micro-batches of 100 updates",
        labels,
        {
            "p50": [statistics.median(times[name]) for name in labels],
            "p90": [percentile(times[name], 0.9) for name in labels],
        },
        "milliseconds (less is better)",
    )


def median_of(batches: list[Progress], *parts: str) -> float:
    return statistics.median(sum(each.durationMs.get(part, 0) for part in parts) for each in batches)


def measure_join(spark: SparkSession, folder: Path, updates: int, report: Report) -> None:
    source = random.Random(2)
    customers = {(number, number % 20) for number in range(10_000)}
    epochs = updates // 10_000

    def batches() -> Iterator[list[Row]]:
        before: list[Row] = []
        for epoch in range(epochs):
            first = epoch * 10_000
            rows: list[Row] = [
                {"op": "+", "id": first + at, "customer": source.randrange(10_000)} for at in range(8_000)
            ]
            gone = source.sample(before, 2_000) if before else rows[:2_000]
            yield rows + [{**row, "op": "-"} for row in gone]
            before = rows

    write(folder / "orders", batches())
    seconds: list[float] = []
    schema = "op STRING, id LONG, customer LONG"
    started = time.perf_counter()
    running = maintain(
        JOIN,
        {"order": source_of(spark, folder / "orders", schema)},
        state=folder / "joined",
        facts={"customer": customers},
        once=True,
        on_epoch=lambda report: seconds.append(report.seconds),
    )
    running.await_termination()
    taken = time.perf_counter() - started
    base = running.session.base()
    regions = dict(base["customer"])
    assert running.view("placed") == {(order, regions[customer]) for order, customer in base["order"]}
    count = sum(len(path.read_text().splitlines()) for path in (folder / "orders").iterdir())
    busy = running.seconds
    report.write(f"## {count:,} updates in {epochs} epochs through a join")
    shares = {"engine": sum(seconds), "reading, log, views": busy - sum(seconds), "Spark": taken - busy}
    figures = [f"{count / taken:,.0f}", f"{taken:.1f}", *(f"{each:.1f}" for each in shares.values())]
    header = ["updates/s", "seconds", *(f"{name}, s" for name in shares), "share of Spark"]
    report.table(header, [[*figures, f"{shares['Spark'] / taken:.0%}"]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=1_000_000, help="through the join")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = spark_session("local[2]", folder / "spark.log")
        report = Report("spark_stream", "Streaming on Spark")
        measure_epochs(spark, folder / "epochs", report)
        measure_join(spark, folder / "join", wanted.updates, report)
        spark.stop()


if __name__ == "__main__":
    main()
