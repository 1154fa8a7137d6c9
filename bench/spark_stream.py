"""What streaming on Spark costs: one epoch on a large view, and a million updates through a join.

    python bench/spark_stream.py [--updates N]

Everything is measured in one warm session on two threads.

1. Epochs of 100 updates on the closure of a random graph with 500 nodes and 1,000 links, against what Spark
   itself takes for the same micro-batches if the function it calls does nothing, and if it only fetches their rows.
2. Updates in epochs of 10,000 through a join of two relations, and how much of the time is spent in Spark.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from measure import Report, percentile, plot_bars
from pyspark.sql import DataFrame, SparkSession

from whence import load
from whence.backends.spark.session import spark_session
from whence.spark import maintain

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
Row = dict[str, object]


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
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{number:06d}.json").write_text(text)


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


def batch_times(frame: DataFrame, folder: Path, each: Callable[[DataFrame], object]) -> list[int]:
    writer = frame.writeStream.foreachBatch(lambda rows, _: each(rows))
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()
    return durations(query.recentProgress)


def durations(progress: list[object]) -> list[int]:
    """Of the micro-batches with rows, but for the first, which pays for what is made once."""
    found = [each.durationMs["triggerExecution"] for each in progress if each.durationMs.get("addBatch")]  # type: ignore[attr-defined]
    return found[1:]


def measure_epochs(spark: SparkSession, folder: Path, report: Report) -> None:
    links = graph(500, 1000)
    write(folder / "links", leaves(links))
    schema = "op STRING, x LONG, y LONG"
    engine: list[float] = []
    batches: list[float] = []

    def maintained(name: str) -> list[int]:
        running = maintain(
            CLOSURE,
            {"link": source_of(spark, folder / "links", schema)},
            state=folder / name,
            facts={"link": links},
            once=True,
            on_epoch=lambda each: engine.append(each.seconds * 1000),
        )
        running.await_termination()
        expected = closure_size(running.session.base()["link"])
        assert len(running.view("reach")) == expected, "the view is wrong"
        batches.append(running.seconds * 1000 / EPOCHS)
        return durations(running.query.recentProgress)

    def plain(name: str, each: Callable[[DataFrame], object]) -> list[int]:
        return batch_times(source_of(spark, folder / "links", schema), folder / name, each)

    for number in range(WARM):
        plain(f"warm {number}", lambda rows: rows.toArrow())
    works: dict[str, Callable[[str], list[int]]] = {
        "Spark, the function does nothing": lambda name: plain(name, lambda _: None),
        "Spark, the rows are fetched": lambda name: plain(name, lambda rows: rows.toArrow()),
        "maintained": maintained,
    }
    times: dict[str, list[int]] = {name: [] for name in works}
    for number in range(ROUNDS):
        for name, work in works.items():
            times[name] += work(f"{name} {number}")
    report.write(f"## Epochs of 100 updates on {closure_size(links):,} rows")
    report.write(
        f"Milliseconds of a micro-batch, {len(times['maintained'])} of each kind, {ROUNDS} rounds in turn. An epoch is to add at "
        "most 30 ms to the first."
    )
    nothing = statistics.median(times["Spark, the function does nothing"])
    rows = [
        [
            name,
            f"{statistics.median(each):.0f}",
            f"{percentile(each, 0.9):.0f}",
            f"{statistics.median(each) - nothing:+.0f}",
        ]
        for name, each in times.items()
    ]
    report.table(["micro-batch", "p50", "p90", "adds"], rows)
    outside = statistics.median(batches) - statistics.median(engine)
    report.write(
        f"Of an epoch, {statistics.median(engine):.1f} ms are the engine's and {outside:.1f} ms go into reading the rows, the "
        "log (synced to disk) and the figures; the rest is Spark's job that fetches the rows."
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
