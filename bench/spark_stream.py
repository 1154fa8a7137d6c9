"""What streaming on Spark costs: one epoch on a large view, and a million updates through a join.

Run with `python bench/spark_stream.py [--updates N]`. Everything is measured in one warm session on two threads.

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


def measure_epochs(spark: SparkSession, folder: Path) -> None:
    links = graph(500, 1000)
    write(folder / "links", leaves(links))
    schema = "op STRING, x LONG, y LONG"

    def ours(name: str) -> tuple[list[int], list[float]]:
        seconds: list[float] = []
        running = maintain(
            CLOSURE,
            {"link": source_of(spark, folder / "links", schema)},
            state=folder / name,
            facts={"link": links},
            once=True,
            on_epoch=lambda report: seconds.append(report.seconds),
        )
        running.await_termination()
        expected = closure_size(running.session.base()["link"])
        assert len(running.view("reach")) == expected, "the view is wrong"
        return durations(running.query.recentProgress), seconds

    frame = source_of(spark, folder / "links", schema)
    batch_times(frame, folder / "warm", lambda rows: rows.toArrow())
    nothing = batch_times(frame, folder / "nothing", lambda _: None)
    fetched = batch_times(frame, folder / "fetched", lambda rows: rows.toArrow())
    kept, engine = ours("kept")
    print(f"epochs of 100 updates on {closure_size(links):,} rows, {len(kept)} micro-batches each, median ms")
    for name, times in (
        ("Spark, function does nothing", nothing),
        ("Spark, rows fetched", fetched),
        ("maintained", kept),
    ):
        print(
            f"  {name:30} {statistics.median(times):8.1f}   {statistics.median(times) - statistics.median(nothing):+8.1f}"
        )
    print(f"  of which engine                {statistics.median(engine) * 1000:8.1f}")


def measure_join(spark: SparkSession, folder: Path, updates: int) -> None:
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
    print(f"{count:,} updates in {epochs} epochs through a join: {count / taken:,.0f} updates/s, {taken:.1f} s")
    print(
        f"  engine {sum(seconds):6.1f} s, store and conversion {busy - sum(seconds):6.1f} s, Spark {taken - busy:6.1f} s"
    )
    print(f"  share of Spark {100 * (taken - busy) / taken:.0f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=1_000_000, help="through the join")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = spark_session("local[2]", folder / "spark.log")
        measure_epochs(spark, folder / "epochs")
        measure_join(spark, folder / "join", wanted.updates)
        spark.stop()


if __name__ == "__main__":
    main()
