"""Dates, timestamps and decimals of a program in SQL at every border: the same rows come in and go out, whatever they come in."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from whence import Session, Update, load
from whence.cli import app
from whence.lang.types import Tuple
from whence.pipeline.sinks.postgres import PostgresSink
from whence.pipeline.sources.capture import capture_sql
from whence.spark import evaluate

TEXT = """
CREATE TABLE sale(id BIGINT PRIMARY KEY, day DATE NOT NULL, moment TIMESTAMP, price DECIMAL(12,2), rate NUMERIC(4,3));
CREATE VIEW booked AS
  SELECT id, day + INTERVAL '1' MONTH AS due, CAST(moment AS DATE) AS on_day, price * (1 + rate) AS gross FROM sale;
CREATE VIEW per_month AS
  SELECT DATE_TRUNC('month', day) AS month, SUM(price) AS total, AVG(price) AS mean, MAX(moment) AS latest FROM sale
  GROUP BY DATE_TRUNC('month', day);
"""
PROGRAM = load(TEXT, dialect="sql")
NAMES = ["id", "day", "moment", "price", "rate"]
ROWS: list[Tuple] = [
    (1, date(2024, 1, 31), datetime(2024, 1, 31, 12, 30, 1, 500000), Decimal("19.99"), Decimal("0.190")),  # noqa: DTZ001
    (2, date(2024, 1, 1), datetime(2024, 1, 1), Decimal("9999999999.99"), Decimal("-0.005")),  # noqa: DTZ001
    (3, date(1969, 12, 31), None, None, None),
    (4, date(9999, 11, 30), datetime(1, 1, 1), Decimal("-0.01"), Decimal(0)),  # noqa: DTZ001
]
BOOKED = {
    (1, datetime(2024, 2, 29), date(2024, 1, 31), Decimal("23.78810")),  # noqa: DTZ001
    (2, datetime(2024, 2, 1), date(2024, 1, 1), Decimal("9949999999.99005")),  # noqa: DTZ001
    (3, datetime(1970, 1, 31), None, None),  # noqa: DTZ001
    (4, datetime(9999, 12, 30), date(1, 1, 1), Decimal("-0.01000")),  # noqa: DTZ001
}
PER_MONTH = {
    (datetime(2024, 1, 1), Decimal("10000000019.98"), 5000000009.99, datetime(2024, 1, 31, 12, 30, 1, 500000)),  # noqa: DTZ001
    (datetime(1969, 12, 1), None, None, None),  # noqa: DTZ001
    (datetime(9999, 11, 1), Decimal("-0.01"), -0.01, datetime(1, 1, 1)),  # noqa: DTZ001
}
# As they are printed.
BOOKED_TEXT = """\
1	2024-02-29 00:00:00	2024-01-31	23.78810
2	2024-02-01 00:00:00	2024-01-01	9949999999.99005
3	1970-01-31 00:00:00	nil	nil
4	9999-12-30 00:00:00	0001-01-01	-0.01000
"""
FACTS = """\
1	2024-01-31	2024-01-31 12:30:01.5	19.99	0.19
2	2024-01-01	2024-01-01T00:00	9999999999.99	-0.005
3	1969-12-31	nil	nil	nil
4	9999-11-30	0001-01-01	-0.01	0.000
"""
JSON = [
    {
        "id": row[0],
        **{name: None if value is None else str(value) for name, value in zip(NAMES[1:], row[1:], strict=True)},
    }
    for row in ROWS
]


def check(session: Session) -> None:
    assert set(session.relation("booked")) == BOOKED
    assert set(session.relation("per_month")) == PER_MONTH


def table() -> pa.Table:
    columns = [[row[at] for row in ROWS] for at in range(len(NAMES))]
    types = [pa.int64(), pa.date32(), pa.timestamp("us"), pa.decimal128(12, 2), pa.decimal128(4, 3)]
    return pa.table([pa.array(*each) for each in zip(columns, types, strict=True)], names=NAMES)


def in_duckdb(connection: duckdb.DuckDBPyConnection) -> Any:
    connection.execute(TEXT.partition("CREATE VIEW")[0])
    connection.executemany("INSERT INTO sale VALUES (?, ?, ?, ?, ?)", ROWS)
    return connection.table("sale")


@pytest.mark.parametrize(
    "frame",
    [
        lambda: ROWS,
        table,
        lambda: table().cast(
            pa.schema([*[*table().schema][:3], ("price", pa.decimal128(38, 2)), ("rate", pa.decimal128(38, 9))])
        ),
        lambda: pd.DataFrame(ROWS, columns=NAMES).astype({"id": "int64"}),
        lambda: table().to_pandas(types_mapper=pd.ArrowDtype),
    ],
    ids=["tuples", "arrow", "wide", "pandas", "pandas on arrow"],
)
def test_frames(frame: Callable[[], Any]) -> None:
    check(Session(PROGRAM, facts={"sale": frame()}))


def test_a_relation_of_duckdb() -> None:
    with duckdb.connect() as connection:
        check(Session(PROGRAM, facts={"sale": in_duckdb(connection)}))


def test_a_time_with_a_zone_is_taken_in_utc() -> None:
    program = load(
        "CREATE TABLE t(at TIMESTAMP WITH TIME ZONE); SELECT at, EXTRACT(HOUR FROM at) FROM t", dialect="sql"
    )
    there = timezone(timedelta(hours=2))
    frame = pa.table({"at": pa.array([datetime(2024, 1, 1, 12, tzinfo=there)], pa.timestamp("us", "Europe/Berlin"))})
    assert set(Session(program, facts={"t": frame}).relation("result")) == {(datetime(2024, 1, 1, 10), 10)}  # noqa: DTZ001


def write_csv(folder: Path) -> None:
    lines = [",".join(NAMES), *(line.replace("nil", "").replace("\t", ",") for line in FACTS.splitlines())]
    (folder / "sale.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: (folder / "sale.facts").write_text(FACTS),
        write_csv,
        lambda folder: pq.write_table(table(), folder / "sale.parquet"),
        lambda folder: feather.write_feather(table(), folder / "sale.arrow"),
        lambda folder: (folder / "sale.jsonl").write_text("".join(json.dumps(row) + "\n" for row in JSON)),
    ],
    ids=["facts", "csv", "parquet", "arrow", "jsonl"],
)
def test_files(write: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(TEXT)
    write(tmp_path)
    words = ["eval", str(tmp_path / "views.sql"), "-F", str(tmp_path), "-D", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "booked.csv").read_text() == BOOKED_TEXT


@pytest.mark.parametrize("form", ["lists", "objects", "csv", "parquet"])
def test_updates(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("views.sql").write_text(TEXT)
    path = Path({"csv": "sale.csv", "parquet": "sale.parquet"}.get(form, "updates.jsonl"))
    if form == "csv":
        write_csv(tmp_path)
    elif form == "parquet":
        pq.write_table(table(), path)
    else:
        made = [list(row.values()) for row in JSON] if form == "lists" else JSON
        path.write_text("".join(json.dumps({"op": "+", "relation": "sale", "tuple": row}) + "\n" for row in made))
    words = ["run", "views.sql", "--updates", str(path), "--no-spark", "--quiet", "--sink", "parquet:out"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    changes = [json.loads(line) for line in result.stdout.splitlines()]
    found = {tuple(each["tuple"]) for each in changes if each["relation"] == "booked"}
    expected = {
        tuple(None if value == "nil" else value for value in line.split("\t")) for line in BOOKED_TEXT.splitlines()
    }
    assert found == {(int(row[0] or 0), *row[1:]) for row in expected}
    written = pq.read_table("out/booked").select(["id", "due", "on_day", "gross"])
    assert {tuple(row.values()) for row in written.to_pylist()} == BOOKED
    assert [str(each.type) for each in written.schema][1:] == ["timestamp[us]", "date32[day]", "decimal128(18, 5)"]


def test_views_as_arrow_and_pandas() -> None:
    view = Session(PROGRAM, facts={"sale": ROWS}).relation("booked")
    assert {tuple(row.values()) for row in view.arrow().to_pylist()} == BOOKED
    assert [str(each.type) for each in view.arrow().schema][1:] == ["timestamp[us]", "date32[day]", "decimal128(18, 5)"]
    frame = view.pandas()
    assert frame[frame["id"] == 1]["gross"].tolist() == [Decimal("23.78810")]


def test_questions_in_sql() -> None:
    session = Session(PROGRAM, facts={"sale": ROWS})
    session.apply([Update("-", "sale", ROWS[3])])
    asked = "SELECT id, price + 0.5 AS more FROM sale WHERE day < DATE '2024-01-31' AND rate <= 0.19"
    assert set(session.query(asked)) == {(2, Decimal("10000000000.49"))}
    due = "SELECT id FROM booked WHERE due BETWEEN '2024-02-02' AND TIMESTAMP '2024-12-31 00:00:00'"
    assert set(session.query(due)) == {(1,)}


def test_frames_of_spark(spark: SparkSession) -> None:
    schema = "id bigint, day date, moment timestamp_ntz, price decimal(12,2), rate decimal(4,3)"
    views = evaluate(PROGRAM, {"sale": spark.createDataFrame(ROWS, schema)}, spark=spark)
    assert {tuple(row) for row in views["booked"].collect()} == BOOKED
    assert {tuple(row) for row in views["per_month"].collect()} == PER_MONTH
    kinds = [each.dataType.simpleString() for each in views["per_month"].schema]
    assert kinds == ["timestamp_ntz", "decimal(18,2)", "double", "timestamp_ntz"]


def test_a_captured_table_and_views_in_postgres(
    connection: psycopg.Connection, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("views.sql").write_text(TEXT)
    connection.execute(
        "CREATE TABLE sale (id bigint PRIMARY KEY, day date, moment timestamp, price numeric(12,2), rate numeric(4,3))"
    )
    for row in ROWS:
        connection.execute("INSERT INTO sale VALUES (%s, %s, %s, %s, %s)", row)
    connection.execute(capture_sql(["sale"]))
    words = ["run", "views.sql", "--updates", database, "--no-spark", "--quiet", "--state", "state"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    changes = [json.loads(line) for line in result.stdout.splitlines()]
    assert sum(each["relation"] == "booked" for each in changes) == len(BOOKED)


def test_views_kept_in_postgres(connection: psycopg.Connection, database: str) -> None:
    session = Session(PROGRAM)
    with closing(PostgresSink(database, PROGRAM)) as sink:
        sink.write(0, session.apply([Update("+", "sale", row) for row in ROWS]))
        assert set(connection.execute("SELECT id, due, on_day, gross FROM booked").fetchall()) == BOOKED
        assert set(connection.execute("SELECT month, total, mean, latest FROM per_month").fetchall()) == PER_MONTH
        sink.write(1, session.apply([Update("-", "sale", ROWS[2])]))  # the one with nulls
    left = {row for row in BOOKED if row[0] != 3}
    assert set(connection.execute("SELECT id, due, on_day, gross FROM booked").fetchall()) == left
    assert connection.execute("SELECT count(*) FROM per_month").fetchall() == [(2,)]


def test_a_zone_in_text_is_taken_in_utc() -> None:
    program = load(
        "SELECT TIMESTAMPTZ '2024-01-01 12:00:00+02' AS early, CAST('2024-01-01T' || '12:00Z' AS TIMESTAMP) AS noon",
        dialect="sql",
    )
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)
    assert set(Session(program).relation("result")) == {(noon - timedelta(hours=2), noon)}
