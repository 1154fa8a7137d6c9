"""Tables that people have: the same rows from every kind of file and frame, and what is wrong with those that are not right."""

from __future__ import annotations

import csv
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from typer.testing import CliRunner

from whence import Session, load
from whence.cli import app
from whence.io import FactError, read_relation

PROGRAM = load(
    ".decl emp(name:symbol, pay:number, share:float) .input emp rich(n) :- emp(n, p, _), p > 10. .output rich"
)
ROWS = {("ann, a", 12, 0.5), ('bob "b"', 5, 1.0), ("eve", 99, 2.25)}
NAMES = ["name", "pay", "share"]


def table(names: list[str] | None = None) -> pa.Table:
    return pa.table(dict(zip(names or NAMES, map(list, zip(*sorted(ROWS), strict=True)), strict=True)))


def base(frame: Any) -> set[tuple[object, ...]]:
    return Session(PROGRAM, facts={"emp": frame}).base()["emp"]


@pytest.mark.parametrize(
    "frame",
    [
        table(),
        table().select(["share", "name", "pay"]),
        table(["NAME", "Pay", "share"]),
        table(["a", "b", "c"]),
        table().to_pandas(),
        table().append_column("more", pa.array([1, 2, 3])),
        table().set_column(0, "name", table().column("name").dictionary_encode()),
        table().set_column(1, "pay", table().column("pay").cast(pa.int8())),
    ],
    ids=["arrow", "order", "case", "position", "pandas", "more", "dictionary", "small"],
)
def test_every_frame_has_the_same_rows(frame: Any) -> None:
    assert base(frame) == ROWS


def test_a_relation_of_duckdb() -> None:
    with duckdb.connect() as peer:
        peer.execute("CREATE TABLE t (name TEXT, pay INT, share DOUBLE)")
        peer.executemany("INSERT INTO t VALUES (?, ?, ?)", list(ROWS))
        assert base(peer.table("t")) == ROWS


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    assert base(polars.from_arrow(table())) == ROWS
    assert base(polars.from_arrow(table()).lazy()) == ROWS


def test_dates_are_text_and_truth_is_a_number() -> None:
    program = load(".decl d(day:symbol, is:number) .input d .output d")
    frame = pa.table({"day": [date(2026, 2, 3)], "is": [True]})
    assert Session(program, facts={"d": frame}).base()["d"] == {("2026-02-03", 1)}


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (pa.table({"name": ["a", None], "pay": [1, 2], "share": [0.5, 1.0]}), "emp, row 2: column name is null"),
        (pa.table({"name": ["a"], "pay": ["1"], "share": [0.5]}), "column pay holds string, not number"),
        (pa.table({"name": [1], "pay": [1], "share": [0.5]}), "column name holds int64, not symbol"),
        (pa.table({"name": ["a"], "pay": [1.5], "share": [0.5]}), "the values of column pay do not fit number"),
        (pa.table({"name": ["a"], "pay": [1]}), "emp has no column share"),
        (
            pa.table({"name": ["a"], "pay": pa.array([2**63], pa.uint64()), "share": [0.5]}),
            "the values of column pay do not fit number",
        ),
    ],
)
def test_what_does_not_fit(frame: pa.Table, problem: str) -> None:
    with pytest.raises(FactError, match=problem):
        base(frame)


def test_decimals_are_floats_where_floats_are_wanted() -> None:
    frame = pa.table({"name": ["a"], "pay": [1], "share": [Decimal("1.25")]})
    assert base(frame) == {("a", 1, 1.25)}


def write_csv(path: Path) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["pay", "name", "share"], *((pay, name, share) for name, pay, share in sorted(ROWS))]
        )


def write_stream(path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table().schema) as stream:
        stream.write_table(table())


FILES = {
    "emp.csv": write_csv,
    "emp.parquet": lambda path: pq.write_table(table(), path),
    "emp.arrow": lambda path: feather.write_feather(table(), str(path)),
    "emp.feather": lambda path: feather.write_feather(table(), str(path), compression="zstd"),
    "emp.arrows": write_stream,
    "emp.jsonl": lambda path: path.write_text("\n".join(json.dumps(row) for row in table().to_pylist())),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("dialect", ["dl", "sql"])
def test_files_are_found_by_their_endings(name: str, dialect: str, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    text = {
        "dl": ".decl emp(name:symbol, pay:number, share:float) .input emp rich(n) :- emp(n, p, _), p > 10. .output rich",
        "sql": "CREATE TABLE emp (name TEXT, pay INT, share DOUBLE PRECISION);"
        "CREATE VIEW rich AS SELECT name FROM emp WHERE pay > 10;",
    }[dialect]
    program = tmp_path / f"p.{dialect}"
    program.write_text(text)
    done = CliRunner().invoke(app, ["eval", str(program), "-F", str(tmp_path), "-D", "-"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[3:5] == ["ann, a", "eve"]
    updates = tmp_path / "u.jsonl"
    updates.write_text('{"op": "-", "relation": "emp", "tuple": ["eve", 99, 2.25]}\n')
    words = [
        "--updates",
        str(updates),
        "-F",
        str(tmp_path),
        "--no-spark",
        "--quiet",
        "--changes",
        str(tmp_path / "c.jsonl"),
    ]
    assert CliRunner().invoke(app, ["run", str(program), *words]).exit_code == 0
    changes = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [(each["op"], each["tuple"]) for each in changes] == [("+", ["ann, a"]), ("+", ["eve"]), ("-", ["eve"])]


def test_a_file_may_be_named_and_a_facts_file_comes_first(tmp_path: Path) -> None:
    FILES["emp.parquet"](tmp_path / "staff.parquet")
    declared = ".decl emp(name:symbol, pay:number, share:float)"
    (tmp_path / "p.dl").write_text(f'{declared} .input emp(filename="staff.parquet") .output emp .printsize emp')
    assert "emp\t3" in CliRunner().invoke(app, ["eval", str(tmp_path / "p.dl"), "-F", str(tmp_path), "-D", "-"]).stdout
    (tmp_path / "q.dl").write_text(f"{declared} .input emp .printsize emp")
    FILES["emp.parquet"](tmp_path / "emp.parquet")
    (tmp_path / "emp.facts").write_text("a\t1\t2\n")
    assert "emp\t1" in CliRunner().invoke(app, ["eval", str(tmp_path / "q.dl"), "-F", str(tmp_path), "-D", "-"]).stdout


def test_damaged_files(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl emp(name:symbol) .input emp .output emp")
    for name, text in (("emp.parquet", "PAR1 no"), ("emp.jsonl", "{nonsense")):
        (tmp_path / name).write_text(text)
        done = CliRunner().invoke(app, ["eval", str(tmp_path / "p.dl"), "-F", str(tmp_path), "-D", "-"])
        assert (done.exit_code, f"{name} cannot be read" in done.stderr) == (1, True), done.output
        (tmp_path / name).unlink()


def test_json_lines_keep_text_that_looks_like_a_time_and_every_digit(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"s": "2024-01-31", "d": "2024-01-31", "m": "2024-01-31T10:00+01:00", "p": 0.1, "q": "12345678901234567.8"}\n'
        '{"s": "2024-02-29", "d": "2024-02-29", "m": null, "p": 7.25, "q": null}\n'
    )
    program = load(
        ".decl t(s:symbol, d:date, m:timestamp?, p:decimal(9,2), q:decimal(18,1)?)\n"
        f'.input t(filename="{tmp_path / "t.jsonl"}")\n.output t\n'
    )
    assert read_relation(program.transfers[0], program.relations["t"], program.types, tmp_path) == {
        ("2024-01-31", date(2024, 1, 31), datetime(2024, 1, 31, 9), Decimal("0.10"), Decimal("12345678901234567.8")),  # noqa: DTZ001
        ("2024-02-29", date(2024, 2, 29), None, Decimal("7.25"), None),
    }


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"d": "2024-02-30", "p": "1"}', "row 1: column d: '2024-02-30' is not a date"),
        ('{"d": "soon", "p": "1"}', "row 1: column d: 'soon' is not a date"),
        ('{"d": "2024-02-28", "p": "1.005"}', "cannot be read"),
        ('{"d": "2024-02-28", "p": "much"}', "cannot be read"),
    ],
)
def test_dates_and_decimals_in_json_lines_that_are_none(row: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(row + "\n")
    program = load(f'.decl t(d:date, p:decimal(9,2))\n.input t(filename="{tmp_path / "t.jsonl"}")\n.output t\n')
    with pytest.raises(FactError, match=problem):
        read_relation(program.transfers[0], program.relations["t"], program.types, tmp_path)
