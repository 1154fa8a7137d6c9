"""Tables of SQLite databases, written and read by Python's own module on the other side."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.io import FactError, read_relation, write_relation
from whence.lang import load
from whence.lang.program import Program
from whence.lang.types import Tuple, Variant

TYPES = ".type Pair = [a:number, b:symbol]\n.type Shape = Dot {} | Box { w:number }\n"
DATABASE = 'IO=sqlite, dbname="data.db"'


def program(columns: str, params: str = DATABASE) -> Program:
    return load(f"{TYPES}.decl r({columns})\n.input r({params})\n.output r({params})\n")


def read(columns: str, folder: Path, params: str = DATABASE) -> set[Tuple]:
    checked = program(columns, params)
    return read_relation(checked.transfers[0], checked.relations["r"], checked.types, folder)


def write(columns: str, rows: Iterable[Tuple], folder: Path, params: str = DATABASE) -> None:
    checked = program(columns, params)
    write_relation(checked.transfers[1], checked.relations["r"], checked.types, rows, folder)


def ask(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "data.db")) as database:
        return database.execute(query).fetchall()


def make(folder: Path, script: str) -> None:
    with closing(sqlite3.connect(folder / "data.db")) as database:
        database.executescript(script)


def refusal(columns: str, folder: Path, params: str = DATABASE) -> str:
    with pytest.raises(FactError) as caught:
        read(columns, folder, params)
    return str(caught.value).replace(str(folder), "FOLDER")


def test_a_table_has_the_names_and_types_of_the_columns(tmp_path: Path) -> None:
    write("x: number, y: symbol, z: float, X: unsigned", {(1, "a", 0.5, 2**64 - 1), (-5, "é\n", 2.0, 7)}, tmp_path)
    assert ask(tmp_path, "SELECT name, type FROM pragma_table_info('r')") == [
        ("x", "INTEGER"),
        ("y", "TEXT"),
        ("z", "REAL"),
        ("X_4", ""),
    ]
    assert ask(tmp_path, "SELECT * FROM r") == [(-5, "é\n", 2.0, 7), (1, "a", 0.5, "18446744073709551615")]


def test_tables_and_views_are_read_by_the_places_of_their_columns(tmp_path: Path) -> None:
    make(
        tmp_path,
        "CREATE TABLE t(n, s); INSERT INTO t VALUES (1, 'a'), ('2', 'b'), (3, 4); CREATE VIEW r AS SELECT s, n FROM t;",
    )
    assert read("x: symbol, y: number", tmp_path) == {("a", 1), ("b", 2), ("4", 3)}
    assert read("x: number, y: symbol", tmp_path, DATABASE + ', name="t"') == {(1, "a"), (2, "b"), (3, "4")}


def test_what_souffle_writes_is_read(tmp_path: Path) -> None:
    make(
        tmp_path,
        """
        CREATE TABLE __SymbolTable(id INTEGER PRIMARY KEY, symbol TEXT UNIQUE);
        INSERT INTO __SymbolTable VALUES (1, 'a'), (2, 'b');
        CREATE TABLE _r('0' INTEGER, '1' INTEGER);
        INSERT INTO _r VALUES (1, 7), (2, 8);
        CREATE VIEW r AS SELECT s.symbol AS '0', _r.'1' FROM _r JOIN __SymbolTable s ON s.id = _r.'0';
        """,
    )
    assert read("x: symbol, y: number", tmp_path) == {("a", 7), ("b", 8)}


def test_a_table_takes_the_place_of_one_of_its_name_and_leaves_the_others(tmp_path: Path) -> None:
    make(tmp_path, "CREATE TABLE t(n); INSERT INTO t VALUES (1); CREATE VIEW R AS SELECT * FROM t;")
    write("x: number", {(5,)}, tmp_path)
    write("x: number", {(6,)}, tmp_path)
    assert ask(tmp_path, "SELECT * FROM r") == [(6,)]
    assert ask(tmp_path, "SELECT * FROM t") == [(1,)]


COLUMNS = "a: number, b: symbol, c: float, d: unsigned, p: Pair, s: Shape, l: list<number>"
NUMBER = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.sets(
    st.tuples(
        NUMBER,
        TEXT,
        st.floats(allow_nan=False).map(lambda value: value + 0.0),
        st.integers(0, 2**64 - 1),
        st.none() | st.tuples(NUMBER, TEXT),
        st.just(Variant("Dot")) | NUMBER.map(lambda number: Variant("Box", (number,))),
        st.lists(NUMBER, max_size=3).map(tuple),
    ),
    max_size=4,
)


@given(rows=ROWS)
def test_rows_read_back(rows: set[Tuple]) -> None:
    with TemporaryDirectory() as folder:
        write(COLUMNS, rows, Path(folder))
        assert read(COLUMNS, Path(folder)) == rows


def test_bad_databases_are_named(tmp_path: Path) -> None:
    assert refusal("x: number", tmp_path).startswith(
        "cannot read FOLDER/data.db: there is no such file\n  hint: .input r"
    )
    make(tmp_path, "CREATE TABLE t(n); CREATE TABLE u(n);")
    assert refusal("x: number", tmp_path) == (
        'FOLDER/data.db has no table or view r\n  hint: it holds t, u; .input r(IO=sqlite, name="…") names another'
    )
    (tmp_path / "data.db").write_text("this is not a database, and long enough to be seen as none" * 20)
    assert refusal("x: number", tmp_path).startswith("cannot read FOLDER/data.db: file is not a database")


def test_bad_rows_are_named(tmp_path: Path) -> None:
    make(
        tmp_path,
        "CREATE TABLE r(n, s); INSERT INTO r VALUES (1, 'a'), (NULL, 'b'), ('x', 'c'), (2.5, 'd'), (1, x'00');",
    )
    assert refusal("x: number, y: symbol", tmp_path) == (
        "FOLDER/data.db: r, row 2: column x: NULL, which a column declared as number? could hold\n"
        "FOLDER/data.db: r, row 3: column x: 'x' is not a number\n"
        "FOLDER/data.db: r, row 4: column x: '2.5' is not a number\n"
        "FOLDER/data.db: r, row 5: column y: bytes, which no column can hold\n"
        "  hint: r has the columns x: number, y: symbol"
    )
    assert refusal("x: number", tmp_path).startswith("FOLDER/data.db: r has the columns n, s, but r(x: number) has 1")


def test_a_table_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    write("x: symbol", {("a",)}, tmp_path)
    with pytest.raises(FactError, match="has no UTF-8 form"):
        write("x: symbol", {("b",), ("\ud800",)}, tmp_path)
    assert ask(tmp_path, "SELECT * FROM r") == [("a",)]
