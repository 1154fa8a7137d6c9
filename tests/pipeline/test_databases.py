"""Facts from databases: a DuckDB file, a real PostgreSQL server, and queries of them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import psycopg
import pytest

from whence.io import FactError, read_relation
from whence.lang import load
from whence.lang.types import Tuple

ROWS = "INSERT INTO city VALUES (4, 'Bern'), (30, 'Rome'), (7, 'Oslo')"


def read(columns: str, params: str, folder: Path) -> set[Tuple]:
    program = load(f".decl r({columns})\n.input r({params})\n.output r\n")
    return read_relation(program.transfers[0], program.relations["r"], program.types, folder)


@pytest.fixture
def atlas(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "atlas.db")) as database:
        database.execute("CREATE TABLE city (size INTEGER, name TEXT)")
        database.execute(ROWS)
    return tmp_path


def test_a_table_of_duckdb(atlas: Path) -> None:
    found = read("name:symbol, size:number", 'IO=duckdb, dbname="atlas.db", name="city"', atlas)
    assert found == {("Bern", 4), ("Rome", 30), ("Oslo", 7)}  # columns go by name


def test_a_query_of_duckdb(atlas: Path) -> None:
    query = "SELECT name, count(*) OVER () AS n FROM city WHERE size > 5"
    assert read("name:symbol, n:number", f'IO=duckdb, filename="atlas.db", query="{query}"', atlas) == {
        ("Rome", 2),
        ("Oslo", 2),
    }


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ('IO=duckdb, dbname="atlas.db", name="town"', "town"),
        ('IO=duckdb, dbname="atlas.db", query="SELEC 1"', "SELEC"),
        ('IO=duckdb, dbname="atlas.db", query="SELECT name FROM city"', "has no column size"),
        ('IO=duckdb, dbname="none.db"', "there is no such file"),
        ('IO=duckdb, dbname="atlas.db", query="DROP TABLE city"', "read-only"),
    ],
)
def test_what_duckdb_cannot_give(params: str, problem: str, atlas: Path) -> None:
    with pytest.raises(FactError, match=problem):
        read("name:symbol, size:number", params, atlas)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, whatever its name")
    with pytest.raises(FactError, match=r"text\.db"):
        read("x:symbol", 'IO=duckdb, dbname="text.db"', tmp_path)


def test_tables_and_queries_of_postgres(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE city (size int, name text)")
        connection.execute(ROWS)
    table = f'IO=postgres, url="{database}", name="city"'
    assert read("name:symbol, size:number", table, tmp_path) == {("Bern", 4), ("Rome", 30), ("Oslo", 7)}
    query = f'IO=postgres, url="{database}", query="SELECT max(size) AS largest FROM city"'
    assert read("largest:number", query, tmp_path) == {(30,)}


def test_a_query_of_postgres_only_reads(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE city (size int)")
    for query, problem in (
        ("DELETE FROM city", "read-only"),
        ("SELECT nothing", "nothing"),
        ("SET x.y = 1", "gives no rows"),
    ):
        with pytest.raises(FactError, match=problem):
            read("size:number", f'IO=postgres, url="{database}", query="{query}"', tmp_path)


def test_libpq_knows_the_server_if_the_program_does_not(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in psycopg.conninfo.conninfo_to_dict(database).items():
        monkeypatch.setenv(f"PG{ {'dbname': 'database'}.get(key, key).upper() }".replace(" ", ""), str(value))
    assert read("one:number", 'IO=postgres, query="SELECT 1 AS one"', tmp_path) == {(1,)}


def test_a_server_that_is_not_there_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(FactError) as refused:
        read("x:number", 'IO=postgres, url="postgresql://127.0.0.1:1/none"', tmp_path)
    assert "refused" in str(refused.value)
    assert "PGPASSWORD" in refused.value.hints[0]
