"""Streaming maintenance on Spark: what comes in, what comes out, and what a repeated batch does not do."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from whence import Changes, Update, load, reference
from whence.lang.types import Tuple
from whence.pipeline.failures import BatchFailed
from whence.pipeline.files import StateError
from whence.pipeline.frames import BadInput
from whence.pipeline.sinks import CallbackSink
from whence.pipeline.sinks.json_lines import JsonLinesSink
from whence.pipeline.sinks.parquet import ParquetSink
from whence.pipeline.store import WholeStore
from whence.spark import Maintenance, maintain

REACH = load("""
.decl link(src: symbol, dst: symbol)
.input link
.decl node(id: number, weight: float)
.input node
.decl reach(src: symbol, dst: symbol)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.decl heavy(id: number, weight: float)
heavy(n, w) :- node(n, w), w > 1.5.
.output reach
.output heavy
""")
LINK = "op STRING, src STRING, dst STRING, time DOUBLE"


def add_file(folder: Path, name: str, *records: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}"
    partial.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in records))
    partial.rename(folder / name)


def link(op: str, src: str | None, dst: str | None, **more: object) -> dict[str, object]:
    return {"op": op, "src": src, "dst": dst, **more}


def record(op: str, *row: object, relation: str = "link") -> dict[str, object]:
    return {"op": op, "relation": relation, "tuple": row}


def json_frame(spark: SparkSession, folder: Path, schema: str) -> DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))


def total(lines: Iterable[str]) -> dict[str, set[Tuple]]:
    views: dict[str, set[Tuple]] = {}
    for each in map(json.loads, lines):
        view, row = views.setdefault(each["relation"], set()), tuple(each["tuple"])
        assert (row in view) == (each["op"] == "-"), each
        (view.add if each["op"] == "+" else view.remove)(row)
    return views


def test_views_follow_two_streams_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """Random updates in files, some at a time: after every round the views are the reference's, and changes add up."""
    source = random.Random(3)
    base: dict[str, set[Tuple]] = {"link": set(), "node": set()}
    seen: list[int] = []

    def start() -> Maintenance:
        inputs = {
            "link": json_frame(spark, tmp_path / "links", LINK),
            # Without op: insertions.
            "node": json_frame(spark, tmp_path / "nodes", "id LONG, weight DOUBLE"),
        }
        sinks = [
            JsonLinesSink(tmp_path / "changes.jsonl", REACH),
            ParquetSink(tmp_path / "parquet", REACH),
            CallbackSink(lambda epoch, changes: seen.append(epoch)),
        ]
        return maintain(REACH, inputs, state=tmp_path / "state", sinks=sinks, once=True, snapshot_every=3)

    for turn in range(3):
        for number in range(3):
            rows = []
            for _ in range(10):
                row = (source.choice("abcdef"), source.choice("abcdef"))
                op = source.choice("++-")
                (base["link"].add if op == "+" else base["link"].discard)(row)
                rows.append(link(op, *row))
            add_file(tmp_path / "links", f"{turn}{number}.json", *rows)
        node = (turn, source.random() * 3)
        base["node"].add(node)
        add_file(tmp_path / "nodes", f"{turn}.json", {"id": node[0], "weight": node[1]})
        maintenance = start()
        assert maintenance.await_termination()
        expected = reference.evaluate(REACH, base)
        assert {name: maintenance.view(name) for name in ("reach", "heavy")} == {
            name: expected[name] for name in ("reach", "heavy")
        }
        assert maintenance.session.base() == base
    assert maintenance.progress is not None
    last = maintenance.progress.epoch
    assert seen == list(range(last + 1))
    written = total((tmp_path / "changes.jsonl").read_text().splitlines())
    assert written == {name: expected[name] for name in written}
    # The table that others read, and the Parquet files of changes.
    table = pq.read_table(tmp_path / "state/current/reach.parquet").to_pylist()
    assert {(row["src"], row["dst"]) for row in table} == expected["reach"]
    changed: set[Tuple] = set()
    for path in sorted((tmp_path / "parquet/reach").iterdir()):
        for row in pq.read_table(path).to_pylist():
            assert row["epoch"] == int(path.stem)
            (changed.add if row["op"] == "+" else changed.remove)((row["src"], row["dst"]))
    assert changed == expected["reach"]


def test_a_bad_row_is_set_aside_and_nothing_else_is(spark: SparkSession, tmp_path: Path) -> None:
    rows = [link("+", "a", "b"), link("*", "a", "c"), link("+", None, "c"), link("+", "b", "c", time=2.5)]
    add_file(tmp_path / "links", "1.json", *rows)
    inputs = {"link": json_frame(spark, tmp_path / "links", LINK)}
    maintenance = maintain(REACH, inputs, state=tmp_path / "state", once=True)
    maintenance.await_termination()
    assert maintenance.view("link") == {("a", "b"), ("b", "c")}
    letters = [json.loads(line) for line in (tmp_path / "state/dead_letters.jsonl").read_text().splitlines()]
    assert [(each["batch"], each["line"], each["reason"]) for each in letters] == [
        (0, 2, "link: op: '*' is neither '+' nor '-'"),
        (0, 3, "link: src: null is not a value"),
    ]
    assert json.loads(letters[0]["record"]) == {"op": "*", "src": "a", "dst": "c", "time": None}


def test_rows_are_applied_in_the_order_of_seq(spark: SparkSession, tmp_path: Path) -> None:
    rows = [link("-", "a", "b", seq=3), link("+", "a", "b", seq=1), link("+", "c", "d", seq=2)]
    add_file(tmp_path / "links", "1.json", *rows)
    frame = json_frame(spark, tmp_path / "links", LINK + ", seq LONG")
    maintenance = maintain(REACH, {"link": frame}, state=tmp_path / "state", once=True)
    maintenance.await_termination()
    assert maintenance.view("link") == {("c", "d")}


def test_commits_end_epochs_inside_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[tuple[int, list[Update]]] = []

    def note(epoch: int, changes: Changes) -> None:
        seen.append((epoch, sorted(changes)))

    commit = {"commit": True}
    add_file(
        tmp_path / "in", "1.jsonl", record("+", "a", "b"), commit, record("+", "b", "c"), "?", record("-", "a", "b")
    )
    add_file(tmp_path / "in", "2.jsonl", commit, record("+", "x", "y"), commit)
    maintenance = maintain(
        REACH, tmp_path / "in", state=tmp_path / "state", sinks=[CallbackSink(note)], once=True, spark=spark
    )
    maintenance.await_termination()
    assert seen == [
        (0, []),
        (1, [Update("+", "reach", ("a", "b"))]),
        (2, [Update("+", "reach", ("b", "c")), Update("-", "reach", ("a", "b"))]),
        (3, [Update("+", "reach", ("x", "y"))]),
    ]
    assert maintenance.view_at("reach", 1) == {("a", "b")}


def test_a_batch_that_spark_repeats_is_applied_once(spark: SparkSession, tmp_path: Path) -> None:
    """Spark repeats a batch whose commit it does not find: here it is removed, as if the driver had died before it."""
    seen: list[tuple[int, list[Update]]] = []
    for turn in range(2):
        add_file(tmp_path / "in", f"{turn}.jsonl", record("+", "a", str(turn)), "?")
        maintenance = maintain(
            REACH,
            tmp_path / "in",
            state=tmp_path / "state",
            sinks=[CallbackSink(lambda epoch, changes: seen.append((epoch, list(changes))))],
            once=True,
            spark=spark,
        )
        maintenance.await_termination()
        if turn == 0:
            commits = tmp_path / "state/checkpoint/commits"
            for name in ("0", ".0.crc"):
                (commits / name).unlink()
    assert seen == [(0, []), (1, [Update("+", "reach", ("a", "0"))]), (2, [Update("+", "reach", ("a", "1"))])]
    assert len((tmp_path / "state/dead_letters.jsonl").read_text().splitlines()) == 2


def test_state_and_checkpoint_belong_together(spark: SparkSession, tmp_path: Path) -> None:
    add_file(tmp_path / "in", "1.jsonl", record("+", "a", "b"))
    maintain(REACH, tmp_path / "in", state=tmp_path / "state", once=True, spark=spark).await_termination()
    (tmp_path / "state/checkpoint").rename(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="not the checkpoint that the state was made with"):
        maintain(REACH, tmp_path / "in", state=tmp_path / "state", once=True, spark=spark)
    # The refusal let go of the folder.
    WholeStore.open(tmp_path / "state", REACH).close()


def test_inputs_that_do_not_fit_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = json_frame(spark, tmp_path / "links", "src STRING, target STRING")
    with pytest.raises(BadInput, match=r"link\(src, dst\) has no column dst"):
        maintain(REACH, {"link": frame}, state=tmp_path / "state")
    twice = frame.selectExpr("src", "target AS dst", "src")
    with pytest.raises(BadInput, match=r"link\(src, dst\) has two columns src"):
        maintain(REACH, {"link": twice}, state=tmp_path / "state")
    with pytest.raises(BadInput, match=r"link\(src, dst\) has a column target that link lacks"):
        maintain(REACH, {"link": frame.selectExpr("src", "target AS dst", "target")}, state=tmp_path / "state")
    with pytest.raises(
        BadInput, match="reach is not a base relation of the program; its base relations are link, node"
    ):
        maintain(REACH, {"reach": frame}, state=tmp_path / "state")
    with pytest.raises(BadInput, match="read from a column value; there are src, target"):
        maintain(REACH, frame, state=tmp_path / "state")


def test_stopping_keeps_what_was_applied(spark: SparkSession, tmp_path: Path) -> None:
    add_file(tmp_path / "in", "1.jsonl", record("+", "a", "b"))
    maintenance = maintain(REACH, tmp_path / "in", state=tmp_path / "state", spark=spark)
    maintenance.query.processAllAvailable()
    assert not maintenance.await_termination(0.1)
    maintenance.stop()
    assert not maintenance.query.isActive
    assert WholeStore.open(tmp_path / "state", REACH).recover().base.rows["link"] == {("a", "b")}


def test_what_a_sink_raises_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(epoch: int, changes: Changes) -> None:
        if epoch:
            raise RuntimeError("full")

    seen: list[int] = []
    add_file(tmp_path / "in", "1.jsonl", record("+", "a", "b"))
    maintenance = maintain(
        REACH, tmp_path / "in", state=tmp_path / "state", sinks=[CallbackSink(refuse)], once=True, spark=spark
    )
    with pytest.raises(RuntimeError, match="full"):
        maintenance.await_termination()
    # The epoch happened; a sink that works gets it.
    again = maintain(
        REACH,
        tmp_path / "in",
        state=tmp_path / "state",
        sinks=[CallbackSink(lambda epoch, changes: seen.append(epoch))],
        once=True,
        spark=spark,
    )
    again.await_termination()
    assert seen == [1]


def test_a_python_worker_that_is_killed_ends_the_query_and_a_restart_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "links"
    for number in range(3):
        add_file(folder, f"{number}.json", link("+", "a", str(number)))
    trap = tmp_path / "trap"

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if "1" in batch.column("dst").to_pylist() and trap.exists():
                trap.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    def start() -> Maintenance:
        frame = json_frame(spark, folder, LINK).mapInArrow(pass_on, LINK)
        sink = JsonLinesSink(tmp_path / "changes.jsonl", REACH)
        return maintain(REACH, {"link": frame}, state=tmp_path / "state", sinks=[sink], once=True)

    trap.touch()
    with pytest.raises(BatchFailed, match="could not bring micro-batch"):
        start().await_termination()
    assert not trap.exists()
    maintenance = start()
    maintenance.await_termination()
    assert maintenance.view("link") == {("a", "0"), ("a", "1"), ("a", "2")}
    written = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    assert sorted(each["tuple"] for each in written) == [["a", "0"], ["a", "1"], ["a", "2"]]


class Watching(StreamingQueryListener):
    def __init__(self) -> None:
        self.events: list[str] = []
        self.rows: list[int | None] = []
        self.metrics: list[dict[str, Row]] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.events.append("started")

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.events.append("progress")
        self.rows.append(event.progress.numInputRows)
        self.metrics.append(dict(event.progress.observedMetrics))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        raise AssertionError("nothing waits in a query that ends with its input")

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.events.append(f"terminated {event.exception}")


def wait_for(condition: Callable[[], bool]) -> None:
    """Spark tells its listeners when it gets to it."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_listeners_of_spark_are_told_what_epochs_did(spark: SparkSession, tmp_path: Path) -> None:
    add_file(tmp_path / "links", "1.json", link("+", "a", "b"), link("+", "b", "c"), link("-", "x", "y"))
    add_file(tmp_path / "links", "2.json", link("-", "b", "c"))
    add_file(tmp_path / "links", "3.json", link("?", "b", "c"))  # no epoch: it is a dead letter
    for number in (1, 2, 3):  # Spark takes files in the order of their times
        os.utime(tmp_path / "links" / f"{number}.json", (number, number))
    watching = Watching()

    def run(name: str, *listeners: StreamingQueryListener) -> None:
        inputs = {"link": json_frame(spark, tmp_path / "links", LINK)}
        maintain(REACH, inputs, state=tmp_path / name, once=True, listeners=listeners).await_termination()

    run("state", watching)
    wait_for(lambda: watching.events[-1:] == ["terminated None"])
    assert watching.events == ["started", "progress", "progress", "progress", "terminated None"]
    assert watching.rows == [3, 1, 1]
    first, second, third = watching.metrics
    assert third == {}
    figures = [{**each["whence"].asDict(), "seconds": None, "state_bytes": None} for each in (first, second)]
    same = {"epochs": 1, "seconds": None, "state_bytes": None}
    assert figures == [
        {
            "epoch": 1,
            "updates": 3,
            "no_ops": 1,
            "inserted": 3,
            "deleted": 0,
            "rounds": figures[0]["rounds"],
            "tuples": 3,
        }
        | same,
        {
            "epoch": 2,
            "updates": 1,
            "no_ops": 0,
            "inserted": 0,
            "deleted": 2,
            "rounds": figures[1]["rounds"],
            "tuples": 1,
        }
        | same,
    ]
    assert figures[0]["rounds"] > 0
    # Another query of the session is not theirs.
    other = Watching()
    run("other", other)
    wait_for(lambda: other.events[-1:] == ["terminated None"])
    assert len(watching.events) == 5


def test_a_listener_that_fails_stops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    class Failing(Watching):
        def onQueryProgress(self, event: QueryProgressEvent) -> None:
            raise ValueError("this listener fails")

    add_file(tmp_path / "links", "1.json", link("+", "a", "b"))
    inputs = {"link": json_frame(spark, tmp_path / "links", LINK)}
    running = maintain(REACH, inputs, state=tmp_path / "state", once=True, listeners=[Failing()])
    running.await_termination()
    assert running.view("reach") == {("a", "b")}
