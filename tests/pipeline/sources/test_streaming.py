"""Views follow a database and a topic through Spark, also over a restart."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from tests.pipeline.sources.broker import Broker

from whence import Changes, load
from whence.pipeline.sinks import CallbackSink, Sink
from whence.pipeline.sinks.postgres import PostgresSink
from whence.pipeline.sources.capture import capture_sql
from whence.pipeline.sources.kafka import KafkaSource
from whence.pipeline.sources.postgres import PostgresSource
from whence.spark import maintain

REACH = load("""
.decl link(src: symbol, dst: symbol)
.input link
.decl reach(src: symbol, dst: symbol)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
""")


def _views_after(frame: DataFrame, state: Path, *sinks: Sink) -> tuple[set[tuple], int]:
    """What `reach` is once all that is there was read, and how many epochs that took since the state began."""
    maintenance = maintain(REACH, {"link": frame}, state=state, once=True, sinks=sinks)
    assert maintenance.await_termination(120)
    return maintenance.view("reach"), maintenance.keeper.epoch


def _fail(epoch: int, _: Changes) -> None:
    raise OSError(f"no room for epoch {epoch}")


def test_views_follow_a_postgres_table_into_another(
    spark: SparkSession, connection: psycopg.Connection, database: str, tmp_path: Path
) -> None:
    connection.execute("CREATE TABLE link (src text, dst text, PRIMARY KEY (src, dst))")
    connection.execute("INSERT INTO link VALUES ('a', 'b'), ('b', 'c')")
    connection.execute(capture_sql(["link"]))
    spark.dataSource.register(PostgresSource)
    changes = spark.readStream.format("whence-postgres").options(url=database, table="link").load()
    sink = PostgresSink(database, REACH)
    assert _views_after(changes, tmp_path / "state", sink) == ({("a", "b"), ("a", "c"), ("b", "c")}, 1)
    connection.execute("UPDATE link SET dst = 'd' WHERE src = 'b'")
    connection.execute("DELETE FROM link WHERE src = 'a'")
    # What is written after a failure comes again, and is in the table once.
    with pytest.raises(OSError, match="no room for epoch 2"):
        _views_after(changes, tmp_path / "state", sink, CallbackSink(_fail))
    connection.execute("INSERT INTO link VALUES ('d', 'e')")
    expected = {("b", "d"), ("b", "e"), ("d", "e")}
    assert _views_after(changes, tmp_path / "state", sink) == (expected, 3)
    assert set(connection.execute("TABLE reach")) == expected
    sink.close()


def test_views_follow_a_kafka_topic(spark: SparkSession, tmp_path: Path) -> None:
    broker = Broker()

    def send(op: str, src: str, dst: str) -> None:
        broker.send("links", json.dumps({"op": op, "src": src, "dst": dst}))

    send("+", "a", "b")
    send("+", "b", "c")
    spark.dataSource.register(KafkaSource)
    messages = (
        spark.readStream.format("whence-kafka")
        .option("kafka.bootstrap.servers", broker.address)
        .option("subscribe", "links")
        .load()
    )
    parsed = f.from_json(messages["value"].cast("string"), "op string, src string, dst string")
    links = messages.select(parsed.alias("link"), messages["offset"].alias("seq")).select("link.*", "seq")
    assert _views_after(links, tmp_path / "state") == ({("a", "b"), ("a", "c"), ("b", "c")}, 1)
    send("-", "b", "c")
    assert _views_after(links, tmp_path / "state") == ({("a", "b")}, 2)
