"""Batch evaluation on Spark beside what one would write in Spark by hand, in one warm session on local[2].

    python bench/spark_batch.py [--runs N] [--small]

Each answer is checked. The loop is semi-naive evaluation in DataFrames as one tunes it: one job a round, lineage cut by a lazy
local checkpoint, few partitions, pieces compacted every 16 rounds; for the chain, whose rounds are tiny, one partition and no
code generation. `--small` takes smaller graphs and tables, to see that it works.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from whence import load
from whence.backends.spark.session import spark_session
from whence.spark import evaluate

CLOSURE = load(
    """.decl link(x:number, y:number)
    .input link
    .decl reach(x:number, y:number)
    .output reach
    reach(x, y) :- link(x, y).
    reach(x, z) :- reach(x, y), link(y, z).
    """
)
SALES = load(
    """.decl line(order:number, item:number, amount:number)
    .input line
    .decl placed(order:number, customer:number)
    .input placed
    .decl customer(customer:number, region:number)
    .input customer
    .decl sold(region:number, order:number, item:number, amount:number)
    sold(r, o, i, a) :- line(o, i, a), placed(o, c), customer(c, r).
    .decl total(region:number, amount:number)
    .output total
    total(r, t) :- customer(_, r), t = sum a : { sold(r, o, i, a) }.
    """
)
SALES_SQL = """
    select region, sum(amount) as amount
    from (select distinct region, order, item, amount from line join placed using (order) join customer using (customer))
    group by region
"""


@contextmanager
def settings(spark: SparkSession, **values: object) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in values}
    for key, value in values.items():
        spark.conf.set(key, str(value))
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, str(value))


def loop(link: DataFrame) -> int:
    """Transitive closure by hand; the number of its rows."""
    step = link.selectExpr("x as y", "y as z")
    delta = link.distinct().localCheckpoint(eager=False)
    count = total = delta.count()
    pieces = [delta]
    while count:
        known = pieces[0]
        for piece in pieces[1:]:
            known = known.union(piece)
        found = delta.join(step, "y").selectExpr("x", "z as y").distinct()
        delta = found.join(known, ["x", "y"], "left_anti").localCheckpoint(eager=False)
        count = delta.count()
        total += count
        pieces.append(delta)
        if len(pieces) >= 16:
            merged = pieces[0]
            for piece in pieces[1:]:
                merged = merged.union(piece)
            merged = merged.coalesce(2).localCheckpoint(eager=False)
            merged.count()
            pieces = [merged]
    return total


def closure(link: DataFrame, mode: str) -> int:
    return evaluate(CLOSURE, {"link": link}, mode=mode)["reach"].count()


def recursive_sql(spark: SparkSession, link: DataFrame) -> int:
    """The closure of an acyclic graph by WITH RECURSIVE, which knows UNION ALL only."""
    link.createOrReplaceTempView("link")
    with settings(spark, **{"spark.sql.cteRecursionLevelLimit": 1000}):
        query = """with recursive reach(x, y) as (
            select x, y from link union all select reach.x, link.y from reach join link on reach.y = link.x)
            select count(*) from (select distinct x, y from reach)"""
        return int(spark.sql(query).first()[0])  # type: ignore[index]


def median_seconds(runs: int, work: Callable[[], int], expected: int) -> float:
    times = []
    for at in range(runs + 1):  # the first warms up
        start = time.perf_counter()
        found = work()
        if at:
            times.append(time.perf_counter() - start)
        assert found == expected, (found, expected)
    return statistics.median(times)


def graph(nodes: int, edges: int) -> pa.Table:
    rng = random.Random(1)
    found: set[tuple[int, int]] = set()
    while len(found) < edges:
        found.add((rng.randrange(nodes), rng.randrange(nodes)))
    return pa.table({"x": [x for x, _ in sorted(found)], "y": [y for _, y in sorted(found)]})


def cached(frame: DataFrame) -> DataFrame:
    frame.cache().count()
    return frame


def report(work: str, ours: tuple[str, float], peer: tuple[str, float], bar: str) -> None:
    faster = peer[1] / ours[1]
    ratio = f"{faster:.1f}x faster" if faster > 1 else f"{1 / faster:.2f}x the time"
    print(f"| {work} | {ours[0]} {ours[1]:.2f} s | {peer[0]} {peer[1]:.2f} s | {ratio} | {bar} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Batch evaluation on Spark beside Spark by hand.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    spark = spark_session("local[2]")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    print("| work | Whence | Spark by hand | ratio | bar |\n|---|---|---|---|---|", flush=True)
    bench_closure(spark, options.runs, *((300, 700) if options.small else (2000, 5000)))
    bench_chain(spark, options.runs, 30 if options.small else 200)
    bench_sales(spark, options.runs, 50_000 if options.small else 5_000_000)


def bench_closure(spark: SparkSession, runs: int, nodes: int, edges: int) -> None:
    link = cached(spark.createDataFrame(graph(nodes, edges)))
    rows = closure(link, "in-task")
    by_hand = median_seconds(runs, lambda: loop(link), rows)
    name = f"closure of Gnm({nodes},{edges}), {rows:,} rows"
    for mode, bar in (("decomposed", "8x faster"), ("in-task", "8x faster"), ("shuffled", "1.1x the time")):
        ours = median_seconds(runs, partial(closure, link, mode), rows)
        report(name, (mode, ours), ("loop", by_hand), bar)


def bench_chain(spark: SparkSession, runs: int, nodes: int) -> None:
    link = cached(spark.createDataFrame(pa.table({"x": list(range(nodes)), "y": list(range(1, nodes + 1))})))
    rows = nodes * (nodes + 1) // 2
    name = f"closure of a chain of {nodes}, {rows:,} rows"
    ours = median_seconds(max(runs, 5), partial(closure, link, "auto"), rows)
    with settings(spark, **{"spark.sql.shuffle.partitions": 1, "spark.sql.codegen.wholeStage": "false"}):
        by_hand = median_seconds(runs, lambda: loop(link), rows)
    report(name, ("in-task", ours), ("loop", by_hand), "50x faster")
    by_sql = median_seconds(runs, lambda: recursive_sql(spark, link), rows)
    report(name, ("in-task", ours), ("WITH RECURSIVE", by_sql), "50x faster")


def bench_sales(spark: SparkSession, runs: int, rows: int) -> None:
    orders, customers = rows // 10, rows // 200
    tables = {
        "line": spark.range(rows - orders - customers).selectExpr(
            f"id % {orders} as order", f"id div {orders} as item", "id % 97 as amount"
        ),
        "placed": spark.range(orders).selectExpr("id as order", f"(id * 7919) % {customers} as customer"),
        "customer": spark.range(customers).selectExpr("id as customer", "id % 50 as region"),
    }
    tables = {name: cached(frame) for name, frame in tables.items()}
    for name, frame in tables.items():
        frame.createOrReplaceTempView(name)

    def checksum(frame: DataFrame) -> int:
        return sum(region * amount for region, amount in frame.collect())

    expected = checksum(spark.sql(SALES_SQL))
    by_hand = median_seconds(runs, lambda: checksum(spark.sql(SALES_SQL)), expected)
    ours = median_seconds(runs, lambda: checksum(evaluate(SALES, tables)["total"]), expected)
    name = f"{rows:,} base tuples, two joins and a sum"
    report(name, ("DataFrame plan", ours), ("Spark SQL", by_hand), "1.3x the time")


if __name__ == "__main__":
    main()
