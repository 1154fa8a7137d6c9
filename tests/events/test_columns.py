"""Many events at once give what they give one by one; on Spark they do so too, and each counts once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.events.programs import Truth, assert_same, hopping, packet, packets
from tests.events.test_stores import LINE, PLACES

from whence import Session, Update, load
from whence.events.columns import ColumnRunner
from whence.events.on_spark import BatchReport, EventStream
from whence.events.store import EventStore
from whence.events.tables import LAYOUTS
from whence.events.verify import problems_of
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.provenance.graph import Fact

place = st.sampled_from(PLACES)
events_of = st.lists(st.tuples(place, place, place, st.integers(0, 4), st.text(max_size=3)), min_size=1, max_size=30)


def columns_of(rows: list[Tuple]) -> list[pa.Array]:
    kinds = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.string())
    return [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]


@settings(max_examples=40)
@given(routes=st.sets(st.tuples(place, place, place), max_size=12), rows=events_of)
def test_a_batch_of_events_is_its_events_one_by_one(routes: set[Tuple], rows: list[Tuple]) -> None:
    events = hopping()
    rows = [row for row in rows if max(row[4], default="") < "\ud800" or max(row[4]) > "\udfff"]
    store, truth = EventStore(events), Truth(events, {"route": routes})
    store.load({"route": routes})
    if not rows:
        return
    made = ColumnRunner(store, store.history.configuration).run(columns_of(rows), pa.nulls(len(rows), pa.float64()), 0)
    expected: Counter[Fact] = Counter()
    for row in rows:
        expected += truth.event(row)
    found = Counter(
        Fact(name, tuple(row.values())[1:])
        for name, tables in made.facts.items()
        for table in tables
        for row in table.to_pylist()
    )
    assert found == expected
    for name, tables in (("events", made.events), ("outputs", made.outputs)):
        for table in tables:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                store.tables[name].insert(row)
    assert_same(store, truth)


def test_what_is_written_for_a_batch_is_what_is_written_one_by_one() -> None:
    rows = [("n1", "n1", "n3", 4, 'a"b\\c\n'), ("n1", "n1", "n3", 4, "é")]
    both = []
    for together in (True, False):
        store = EventStore(hopping())
        store.load(LINE)
        if together:
            made = ColumnRunner(store, 2).run(columns_of(rows), pa.nulls(2, pa.float64()), 0)
            tables = {"events": pa.concat_tables(made.events), "outputs": pa.concat_tables(made.outputs)}
        else:
            for row in rows:
                store.event(row)
            tables = {
                name: pa.Table.from_pylist(
                    [dict(zip(LAYOUTS[name].schema.names, row, strict=True)) for row in store.tables[name]],
                    LAYOUTS[name].schema,
                )
                for name in ("events", "outputs")
            }
        both.append({name: table.to_pylist() for name, table in tables.items()})
    assert both[0] == both[1]


# -- on Spark ---------------------------------------------------------------------------------------------------------


def frame(spark: SparkSession, rows: list[Tuple]) -> object:
    return spark.createDataFrame(
        [(*row, 86_400.0 * at) for at, row in enumerate(rows)],
        "at string, src string, dst string, data string, time double",
    )


def test_micro_batches_fill_a_store_that_answers(spark: SparkSession, tmp_path: Path) -> None:
    reports: list[BatchReport] = []
    truth = Truth(packets(), LINE)
    with EventStore(packets(), tmp_path / "store") as store:
        store.load(LINE)
        stream = EventStream(store, time="time", on_batch=reports.append, facts_to=tmp_path / "facts")
        first = [packet("n1", "n3", f"a{at}") for at in range(20)] + [
            packet("n2", "n3", "b"),
            packet("n1", "n9", "lost"),
        ]
        stream.take(frame(spark, first), 0)
        stream.take(frame(spark, first), 0)  # Spark repeats what it does not know to be committed
        store.change("-", "route", ("n1", "n3", "n2"))
        store.change("+", "route", ("n1", "n3", "n3"))
        stream.take(frame(spark, [packet("n1", "n3", "c")]), 1)
    for row in first:
        truth.event(row)
    truth.change("-", "route", ("n1", "n3", "n2"))
    truth.change("+", "route", ("n1", "n3", "n3"))
    truth.event(packet("n1", "n3", "c"))
    assert [(each.events, each.outputs, each.letters) for each in reports] == [(22, 21, 1), (1, 1, 0)]
    again = EventStore.read(tmp_path / "store")
    assert_same(again, truth)
    assert list(problems_of(again)) == []
    by_spark = spark.read.parquet(str(tmp_path / "store" / "outputs"))
    assert {(row.place, str(row.day)) for row in by_spark.collect()} >= {("n3", "1970-01-01"), ("n3", "1970-01-02")}
    assert pq.read_table(tmp_path / "facts" / "recv").num_rows == 22
    assert "no output" in (tmp_path / "store" / "dead-letters.jsonl").read_text()


def test_a_stream_takes_its_slow_relations_from_a_session(spark: SparkSession, tmp_path: Path) -> None:
    rules = ".decl link(a:symbol, b:symbol) .input link .decl route(a:symbol, b:symbol, c:symbol) .output route " \
            "route(x, y, y) :- link(x, y). route(x, z, y) :- link(x, y), route(y, z, _), x != z."  # fmt: skip
    session = Session(load(rules))
    waiting = [session.apply([Update("+", "link", ("n1", "n2")), Update("+", "link", ("n2", "n3"))])]
    (tmp_path / "in").mkdir()
    frame(spark, [packet("n1", "n3", "x")]).drop("time").coalesce(1).write.parquet(str(tmp_path / "in" / "one"))
    events = spark.readStream.schema("at string, src string, dst string, data string").parquet(
        str(tmp_path / "in" / "*")
    )
    with EventStore(packets(), tmp_path / "store") as store:
        query = EventStream(store, changes=lambda _: waiting.pop() if waiting else ()).start(events, availableNow=True)
        assert query.awaitTermination(60)
    truth = Truth(packets(), {"route": set(session.relation("route"))})
    truth.event(packet("n1", "n3", "x"))
    assert_same(EventStore.read(tmp_path / "store"), truth)


def test_a_frame_without_the_columns_of_the_event_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with EventStore(packets(), tmp_path) as store, pytest.raises(StateError, match="no column data"):
        EventStream(store).start(frame(spark, [packet("n1", "n3", "x")]).drop("data"))


def test_rows_with_nulls_are_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame(
        [("n1", "n1", "n3", None), ("n1", "n1", "n3", "x")], "at string, src string, dst string, data string"
    )
    reports: list[BatchReport] = []
    with EventStore(packets(), tmp_path) as store:
        store.load(LINE)
        EventStream(store, on_batch=reports.append).take(rows, 0)
    assert [(each.events, each.outputs, each.letters) for each in reports] == [(1, 1, 1)]
    assert "data is null" in (tmp_path / "dead-letters.jsonl").read_text()
