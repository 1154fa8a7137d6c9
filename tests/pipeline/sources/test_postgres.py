"""Every change of a captured table is read exactly once and in order, whatever transactions do meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from whence.pipeline.sources.capture import capture_sql, release_sql
from whence.pipeline.sources.postgres import PostgresReader, PostgresSource

EVERYTHING = ReadAllAvailable()

TYPES: dict[str, DataType] = {
    each.simpleString(): each
    for each in (StringType(), LongType(), DoubleType(), BooleanType(), TimestampType(), BinaryType())
}


def _schema(columns: str) -> StructType:
    """Spark's own reader of such text needs a running Spark."""
    schema = StructType()
    for column in columns.split(", "):
        name, kind = column.rsplit(" ", 1)
        schema.add(name.strip("`"), TYPES[kind])
    return schema


@pytest.fixture
def link(connection: psycopg.Connection) -> str:
    connection.execute("CREATE TABLE link (src text, dst text, ms int, PRIMARY KEY (src, dst))")
    connection.execute("INSERT INTO link VALUES ('a', 'b', 1)")
    connection.execute(capture_sql(["link"]))
    return "link"


@pytest.fixture
def open_reader(database: str, link: str) -> Iterator[object]:
    with ExitStack() as stack:

        def opened(columns: str = "op string, src string, dst string, ms bigint", **options: str) -> PostgresReader:
            source = PostgresSource({"url": database, "table": link, **options})
            reader = source.streamReader(_schema(columns))
            stack.callback(reader.stop)
            return reader

        yield opened


def _read(reader: PostgresReader, start: dict[str, int], end: dict[str, int]) -> list[tuple]:
    return [row for part in reader.partitions(start, end) for row in reader.read(part)]


def _poll(reader: PostgresReader, start: dict[str, int]) -> tuple[list[tuple], dict[str, int]]:
    end = reader.latestOffset(start, EVERYTHING)
    return _read(reader, start, end), end


def test_rows_that_were_there_come_first_then_every_change(open_reader, connection) -> None:
    connection.execute("INSERT INTO link VALUES ('b', 'c', 2)")
    connection.execute("UPDATE link SET ms = 3 WHERE src = 'a'")
    connection.execute("UPDATE link SET ms = 3 WHERE src = 'a'")  # changes nothing
    connection.execute("DELETE FROM link WHERE src = 'b'")
    reader = open_reader()
    rows, end = _poll(reader, reader.initialOffset())
    assert rows == [
        ("+", "a", "b", 1),
        ("+", "b", "c", 2),
        ("-", "a", "b", 1),
        ("+", "a", "b", 3),
        ("-", "b", "c", 2),
    ]
    assert _poll(reader, end) == ([], end)


def test_truncating_deletes_every_row(open_reader, connection) -> None:
    connection.execute("INSERT INTO link VALUES ('b', 'c', 2)")
    reader = open_reader()
    _, end = _poll(reader, reader.initialOffset())
    connection.execute("TRUNCATE link")
    rows, _ = _poll(reader, end)
    assert sorted(rows) == [("-", "a", "b", 1), ("-", "b", "c", 2)]


def test_a_number_that_may_still_appear_is_waited_for(open_reader, connection, database) -> None:
    reader = open_reader()
    _, start = _poll(reader, reader.initialOffset())
    with psycopg.connect(database) as slow, psycopg.connect(database) as other:
        # The other one begins first, so that its transaction id is the lower one; the slow one draws the lower number.
        other.execute("SELECT pg_current_xact_id()")
        slow.execute("INSERT INTO link VALUES ('slow', 'x', 1)")
        other.execute("INSERT INTO link VALUES ('other', 'x', 1)")
        other.commit()
        assert _poll(reader, start) == ([], start)
        slow.commit()
    rows, _ = _poll(reader, start)
    assert rows == [("+", "slow", "x", 1), ("+", "other", "x", 1)]


def test_a_prepared_transaction_is_waited_for(open_reader, connection, database) -> None:
    reader = open_reader()
    _, start = _poll(reader, reader.initialOffset())
    connection.execute("BEGIN")
    connection.execute("INSERT INTO link VALUES ('prepared', 'x', 1)")
    connection.execute("PREPARE TRANSACTION 'one'")
    connection.execute("INSERT INTO link VALUES ('other', 'x', 1)")
    assert _poll(reader, start) == ([], start)
    connection.execute("COMMIT PREPARED 'one'")
    assert [row[1] for row in _poll(reader, start)[0]] == ["prepared", "other"]


def test_what_was_rolled_back_leaves_no_trace_and_blocks_nothing(open_reader, connection, database) -> None:
    reader = open_reader()
    _, start = _poll(reader, reader.initialOffset())
    with psycopg.connect(database) as undone:
        undone.execute("INSERT INTO link VALUES ('undone', 'x', 1)")
        connection.execute("INSERT INTO link VALUES ('done', 'x', 1)")
        undone.rollback()
    assert _poll(reader, start)[0] == [("+", "done", "x", 1)]


@pytest.mark.parametrize("seed", range(6))
def test_random_transactions_arrive_once_and_in_order(seed: int, open_reader, connection, database) -> None:
    choose = random.Random(seed)
    reader = open_reader("op string, src string, ms bigint")
    replica: set[tuple[str, int]] = set()
    offset = reader.initialOffset()

    def poll() -> None:
        nonlocal offset
        rows, offset = _poll(reader, offset)
        for op, *row in rows:
            # Once and in order means: never there already, never gone already.
            assert (tuple(row) in replica) == (op == "-")
            replica.symmetric_difference_update([tuple(row)])

    with ExitStack() as stack:
        sessions = [stack.enter_context(psycopg.connect(database)) for _ in range(4)]
        locked: dict[str, int] = {}  # by which session, until it ends its transaction
        for _ in range(250):
            who = choose.randrange(len(sessions))
            key = choose.choice("abcdefgh")
            match choose.randrange(10):
                case 0:
                    poll()
                case 1 | 2:
                    choose.choice([sessions[who].commit, sessions[who].commit, sessions[who].rollback])()
                    locked = {name: holder for name, holder in locked.items() if holder != who}
                case 3:
                    sessions[who].execute("SELECT pg_current_xact_id()")  # an id long before a number
                case _ if locked.setdefault(key, who) == who:
                    _change(sessions[who], key, choose)
        for each in sessions:
            each.commit()
    poll()
    assert replica == set(connection.execute("SELECT src, ms FROM link").fetchall())


def _change(session: psycopg.Connection, key: str, choose: random.Random) -> None:
    if choose.random() < 0.3:
        session.execute("DELETE FROM link WHERE src = %s", (key,))
    else:
        session.execute(
            "INSERT INTO link VALUES (%s, 'b', %s) ON CONFLICT (src, dst) DO UPDATE SET ms = excluded.ms",
            (key, choose.randrange(1000)),
        )


def test_a_lost_connection_is_replaced(open_reader, connection) -> None:
    reader = open_reader()
    _, start = _poll(reader, reader.initialOffset())
    connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    connection.execute("INSERT INTO link VALUES ('b', 'c', 2)")
    assert _poll(reader, start)[0] == [("+", "b", "c", 2)]


def test_those_who_write_to_the_table_need_no_other_rights(open_reader, connection) -> None:
    connection.execute("CREATE ROLE clerk; GRANT INSERT, TRUNCATE ON link TO clerk; SET ROLE clerk")
    connection.execute("TRUNCATE link")
    connection.execute("INSERT INTO link VALUES ('b', 'c', 2)")
    reader = open_reader()
    assert _poll(reader, reader.initialOffset())[0][1:] == [("-", "a", "b", 1), ("+", "b", "c", 2)]


def test_the_source_only_needs_to_read(open_reader, connection, database) -> None:
    connection.execute("CREATE ROLE auditor; GRANT USAGE ON SCHEMA whence_capture TO auditor")
    connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA whence_capture TO auditor")
    reader = open_reader(url=f"{database}&options=-crole%3Dauditor")
    assert _poll(reader, reader.initialOffset())[0] == [("+", "a", "b", 1)]


def test_epochs_can_be_limited(open_reader, connection) -> None:
    connection.execute("INSERT INTO link SELECT 'n' || n, 'x', n FROM generate_series(1, 9) AS n")
    reader = open_reader(maxRowsPerEpoch="4")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    offset, sizes = reader.initialOffset(), []
    while (end := reader.latestOffset(offset, limit)) != offset:
        sizes.append(len(_read(reader, offset, end)))
        offset = end
    assert sizes == [4, 4, 2]


def test_available_now_stops_at_what_is_there(open_reader, connection) -> None:
    reader = open_reader()
    reader.prepareForTriggerAvailableNow()
    connection.execute("INSERT INTO link VALUES ('late', 'x', 1)")
    rows, end = _poll(reader, reader.initialOffset())
    assert rows == [("+", "a", "b", 1)]
    assert _poll(reader, end) == ([], end)


def test_changes_of_other_tables_make_no_epoch(open_reader, connection) -> None:
    reader = open_reader()
    _, end = _poll(reader, reader.initialOffset())
    connection.execute("CREATE TABLE other (x int PRIMARY KEY)")
    connection.execute(capture_sql(["other"]))
    connection.execute("INSERT INTO other VALUES (1)")
    assert reader.latestOffset(end, EVERYTHING) == end


def test_capturing_again_changes_nothing(open_reader, connection) -> None:
    connection.execute(capture_sql(["link"]))
    reader = open_reader()
    assert len(_poll(reader, reader.initialOffset())[0]) == 1


def test_a_reader_that_missed_forgotten_changes_stops(open_reader, connection) -> None:
    reader = open_reader()
    _, read_so_far = _poll(reader, reader.initialOffset())
    connection.execute("INSERT INTO link VALUES ('b', 'c', 2)")
    behind, end = read_so_far, reader.latestOffset(read_so_far, EVERYTHING)
    assert connection.execute("SELECT whence_capture.forget('public.link', now() + interval '1 hour')").fetchone() == (
        2,
    )
    connection.execute("INSERT INTO link VALUES ('c', 'd', 2)")
    assert _poll(reader, end)[0] == [("+", "c", "d", 2)]
    with pytest.raises(RuntimeError, match=r"up to number \d+ are no longer there"):
        _read(reader, behind, end)
    with pytest.raises(RuntimeError, match="a new query cannot tell what the table held"):
        open_reader().initialOffset()
    connection.execute(release_sql(["link"]))
    connection.execute(capture_sql(["link"]))
    anew = open_reader()
    assert len(_poll(anew, anew.initialOffset())[0]) == 3


def test_changes_missed_while_released_are_noticed(open_reader, connection) -> None:
    reader = open_reader()
    _, end = _poll(reader, reader.initialOffset())
    connection.execute(release_sql(["link"]))
    connection.execute("DELETE FROM link")
    connection.execute("INSERT INTO link VALUES ('b', 'c', 2)")
    connection.execute(capture_sql(["link"]))
    with pytest.raises(RuntimeError, match="start it anew"):
        _poll(reader, end)


def test_columns_keep_their_types(connection, database) -> None:
    connection.execute(
        """CREATE TABLE "Odd % Names" (n smallint PRIMARY KEY, f real, b bool, d date, "t z" timestamptz, u uuid, time text,
           "100%" int)"""
    )
    connection.execute(capture_sql(["Odd % Names"]))
    source = PostgresSource({"url": database, "table": "Odd % Names"})
    assert source.schema() == (
        "`op` string, `seq` bigint, `time` string, `n` bigint, `f` double, `b` boolean, `d` date, `t z` timestamp, "
        "`u` string, `100%` bigint"
    )
    connection.execute(
        """INSERT INTO "Odd % Names" VALUES (1, 'Infinity', true, '2026-02-03', '2026-02-03 04:05+06',
           'd3b07384-d9a0-4c9b-8f0e-3d0f1f1f1f1f', 'noon', 5), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""
    )
    reader = source.streamReader(
        _schema("time string, n bigint, f double, b boolean, d string, `t z` timestamp, 100% bigint")
    )
    rows, _ = _poll(reader, reader.initialOffset())
    reader.stop()
    assert rows[0][:5] == ("noon", 1, float("inf"), True, "2026-02-03")
    assert rows[0][5].timestamp() == 1770069900.0
    assert rows[0][6] == 5
    assert rows[1] == (None, 2, None, None, None, None, None)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"table": "link"}, "needs the option url"),
        ({"url": "x"}, "needs the option table"),
        ({"table": "a.b.c"}, "is not a table: write TABLE or SCHEMA.TABLE"),
        ({"table": "nowhere"}, "there is no table public.nowhere"),
        ({"table": "link", "maxRowsPerEpoch": "0"}, "1 or more, not '0'"),
        ({"table": "priced"}, "priced.price is numeric: say with .schema"),
        ({"table": "ops"}, "has a column op"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], complaint: str, connection, database, link) -> None:
    connection.execute("CREATE TABLE priced (price numeric); CREATE TABLE ops (op text)")
    with pytest.raises(ValueError, match=complaint):
        PostgresSource({**({} if complaint.endswith("url") else {"url": database}), **options}).schema()


def test_a_table_that_is_not_captured_is_named(connection, database) -> None:
    connection.execute("CREATE TABLE plain (x int PRIMARY KEY)")
    reader = PostgresSource({"url": database, "table": "plain"}).streamReader(_schema("op string, x bigint"))
    with pytest.raises(RuntimeError, match=r"public.plain is not captured: whence capture public.plain"):
        reader.initialOffset()


@pytest.mark.parametrize(
    ("columns", "complaint"), [("nope bigint", "has no column nope"), ("ms binary", "read as binary")]
)
def test_wrong_columns_are_named(columns: str, complaint: str, open_reader) -> None:
    with pytest.raises(ValueError, match=complaint):
        open_reader(columns)


def test_a_table_without_a_primary_key_is_refused(connection) -> None:
    connection.execute("CREATE TABLE bag (x int)")
    with pytest.raises(psycopg.errors.RaiseException, match="has no primary key"):
        connection.execute(capture_sql(["bag"]))
