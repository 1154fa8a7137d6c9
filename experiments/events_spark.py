"""A million packets on Spark: kept with all that says why, against running them without keeping anything."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from harness import Claim, Experiment, run
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, col

from whence import load_file
from whence.events import EventStore, event_program, workloads
from whence.events.on_spark import EventStream
from whence.events.walk import Walker
from whence.provenance.graph import Fact
from whence.topology import transit_stub

PROGRAM = Path(__file__).parents[1] / "examples" / "events" / "packets.dl"
COLUMNS = ("at", "src", "dst", "data")
PAIRS = 1_000


@cache
def spark() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "4g").getOrCreate()


def made(packets: int, seed: int, folder: Path) -> tuple[set[tuple[object, ...]], Path]:
    """Routes, and packets as Parquet files."""
    links = [(link.a, link.b) for link in transit_stub(seed=seed).links]
    draw = Random(seed)
    nodes = sorted({node for link in links for node in link})
    pairs = [draw.sample(nodes, 2) for _ in range(PAIRS)]
    payloads = [workloads.text(draw, 500) for _ in range(1_000)]
    chosen = draw.choices(pairs, k=packets)
    columns = [
        [source for source, _ in chosen],
        [source for source, _ in chosen],
        [target for _, target in chosen],
        [f"{at} {payloads[at % 1_000]}"[:500] for at in range(packets)],
    ]
    path = folder / "packets"
    path.mkdir()
    half = packets // 2
    for part, rows in enumerate((slice(0, half), slice(half, packets))):
        pq.write_table(
            pa.table({name: each[rows] for name, each in zip(COLUMNS, columns, strict=True)}), path / f"{part}.parquet"
        )
    return workloads.routes_of(links), path


def measure(scheme: str, packets: float, seed: int) -> dict[str, float]:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        routes, path = made(int(packets), seed, folder)
        events = spark().read.parquet(str(path))
        spark().range(10).mapInArrow(lambda batches: batches, "id long").collect()  # workers are there
        start = time.perf_counter()
        outputs = {"advanced": _kept, "tuple by tuple": _tuple_by_tuple, "DataFrame loop": _loop}[scheme](
            events, routes, folder
        )
        seconds = time.perf_counter() - start
        if outputs != int(packets):
            raise AssertionError(f"{outputs} of {packets:g} packets arrived")
        return {"seconds": seconds, "events a second": packets / seconds}


def _kept(events: DataFrame, routes: set[tuple[object, ...]], folder: Path) -> int:
    reports = []
    with EventStore(event_program(load_file(PROGRAM)), folder / "store") as store:
        store.load({"route": routes})
        EventStream(store, on_batch=reports.append).take(events, 0)
    return int(reports[0].outputs)


def _tuple_by_tuple(events: DataFrame, routes: set[tuple[object, ...]], folder: Path) -> int:
    """Every packet through every rule, in tasks, with nothing written down but what comes out."""
    program = event_program(load_file(PROGRAM))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        walker = Walker(program, {"route": routes})
        for batch in batches:
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            found = [tree.fact.tuple for row in rows for tree in walker.outputs(Fact("packet", row))]
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, pa.string()) for column in zip(*found, strict=True)], COLUMNS
            )

    events.select(*COLUMNS).mapInArrow(task, ", ".join(f"{name} string" for name in COLUMNS)).write.parquet(
        str(folder / "out")
    )
    return spark().read.parquet(str(folder / "out")).count()


def _loop(events: DataFrame, routes: set[tuple[object, ...]], folder: Path) -> int:
    """As one would write it by hand: all packets take a hop, in a join, until none is left."""
    table = spark().createDataFrame(sorted(routes), "at string, dst string, next string").cache()
    waiting, hop = events.select(*COLUMNS), 0
    while True:
        arrived = waiting.filter(col("at") == col("dst"))
        arrived.write.mode("append").parquet(str(folder / "out"))
        moved = waiting.filter(col("at") != col("dst")).join(broadcast(table), ["at", "dst"])
        waiting = moved.select(col("next").alias("at"), "src", "dst", "data")
        hop += 1
        waiting.write.parquet(str(folder / f"hop{hop}"))  # lineage ends here, or every hop would take all of them again
        waiting = spark().read.parquet(str(folder / f"hop{hop}"))
        if waiting.isEmpty():
            return spark().read.parquet(str(folder / "out")).count()


EXPERIMENT = Experiment(
    name="events_spark",
    title="Packets on Spark: seconds with all that says why, and without",
    question=(
        "Packets with 500 characters between 1,000 pairs of 100 nodes, local[2]. "
        "*advanced* writes events, outputs, chains and history, "
        "by place; the others keep nothing: rules fired packet by packet in tasks, and a loop of DataFrame joins."
    ),
    schemes=("advanced", "DataFrame loop", "tuple by tuple"),
    across="packets",
    points=(100_000, 1_000_000),
    metrics={"seconds": "", "events a second": ""},
    measure=measure,
    claims=(
        Claim(
            "bar: below running them tuple by tuple without provenance",
            lambda found: found.ratio("tuple by tuple", "advanced", "seconds"),
        ),
        Claim(
            "bar: below a DataFrame loop by hand", lambda found: found.ratio("DataFrame loop", "advanced", "seconds")
        ),
    ),
    cut_off=900,
)

if __name__ == "__main__":
    run(EXPERIMENT)
