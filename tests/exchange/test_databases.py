"""Tables of peers in databases: the same exchange whatever they are in, and plain tables for whoever reads them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.exchange.vectors import DROS, MUSC, NAMES, OSCI, PERI, null
from tests.pipeline.conftest import database, postgres_server  # noqa: F401

from whence.exchange.databases import open_tables
from whence.exchange.instance import Delta
from whence.exchange.model import Column, Relation
from whence.exchange.peer import Peer
from whence.exchange.tables import PeerTables
from whence.io import FactError
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.sources.capture import capture_sql

B = Relation("BioSQL", "B", (Column("bid", "number"), Column("name", "symbol")))
ALL = {(4472, PERI), (null(OSCI), OSCI), (null(OSCI), DROS), (null(MUSC), MUSC)}


@pytest.fixture(params=["csv", "sqlite", "duckdb", "parquet", "postgres"])
def address(request: pytest.FixtureRequest) -> str | None:
    places = {"csv": None, "sqlite": "sqlite:own.db", "duckdb": "duckdb:own.duckdb", "parquet": "parquet:own"}
    return request.getfixturevalue("database") if request.param == "postgres" else places[request.param]


def content(tables: PeerTables, relation: Relation = B) -> set[Tuple]:
    return tables.read([relation])[relation.full_name]


def edit(tables: PeerTables, *, add: set[Tuple] = frozenset(), drop: set[Tuple] = frozenset()) -> None:  # type: ignore[assignment]
    tables.apply(Delta({B.full_name: add}, {B.full_name: drop}), [B])


def test_rows_survive_and_doing_it_again_changes_nothing(address: str | None, tmp_path: Path) -> None:
    tables = open_tables(address, tmp_path)
    assert content(tables) == set()
    rows: set[Tuple] = {(1, "a"), (-(2**63), "$5"), (null("x", 1), 'say "no"'), (null(null("y")), ""), (7, "ü\n,")}
    for _ in range(2):
        edit(tables, add=rows)
        assert content(tables) == rows
    for _ in range(2):
        edit(tables, add={(2, "b")}, drop={(1, "a"), (null("x", 1), 'say "no"'), (null("never"), "z")})
        assert content(tables) == rows - {(1, "a"), (null("x", 1), 'say "no"')} | {(2, "b")}


def test_every_type_survives(address: str | None, tmp_path: Path) -> None:
    relation = Relation("A", "R", tuple(Column(name, name) for name in ("number", "unsigned", "float", "symbol")))
    rows: set[Tuple] = {(2**63 - 1, 2**63 - 1, 0.1, "x"), (0, 0, -1e300, ""), (null(1.5), null(), null("a"), null(2))}
    tables = open_tables(address, tmp_path)
    tables.apply(Delta({"A.R": rows}, {}), [relation])
    assert content(tables, relation) == rows


def test_an_exchange_through_a_database(address: str | None, tmp_path: Path) -> None:
    store, files = tmp_path / "store", (("all.peers", NAMES),)
    Peer.create(tmp_path / "gus", "GUS", store, files=files).close()
    (tmp_path / "gus/tables").mkdir()
    (tmp_path / "gus/tables/G.csv").write_text(f"id,name,canon\n1,{OSCI},{DROS}\n2,{MUSC},{MUSC}\n")
    with Peer.open(tmp_path / "gus") as gus:
        gus.publish()
    Peer.create(tmp_path / "biosql", "BioSQL", store, where=address).close()
    with Peer.open(tmp_path / "biosql") as peer:
        edit(peer.tables, add={(4472, PERI)})
        peer.import_()
        assert content(peer.tables) == ALL
    with Peer.open(tmp_path / "biosql") as peer:
        edit(peer.tables, drop={(null(MUSC), MUSC)})
        peer.import_()
        assert content(peer.tables) == ALL - {(null(MUSC), MUSC)}
        assert peer.instance.part("BioSQL.B", "rejected") == {(null(MUSC), MUSC)}


def test_readers_see_plain_tables_and_users_edit_their_own(database: str, tmp_path: Path) -> None:  # noqa: F811
    with psycopg.connect(database) as connection:
        connection.execute('CREATE TABLE "B" (bid int, name text, noted timestamptz DEFAULT now())')
        connection.execute('INSERT INTO "B" VALUES (4472, %s)', (PERI,))
    tables = open_tables(database, tmp_path)
    assert content(tables) == {(4472, PERI)}
    edit(tables, add=ALL)
    with psycopg.connect(database) as connection:
        found = connection.execute('SELECT bid, name, bid_null, noted IS NULL FROM "B" ORDER BY name').fetchall()
        assert found == [
            (None, DROS, f'$m1_b["{OSCI}"]', False),
            (None, MUSC, f'$m1_b["{MUSC}"]', False),
            (None, OSCI, f'$m1_b["{OSCI}"]', False),
            (4472, PERI, None, False),
        ]
        connection.execute('DELETE FROM "B" WHERE name = %s', (MUSC,))
    assert content(tables) == ALL - {(null(MUSC), MUSC)}


def test_a_failing_exchange_leaves_the_tables_as_they_were(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "own.db") as connection:
        connection.execute("CREATE TABLE B (bid INTEGER, name TEXT CHECK (name <> 'bad'))")
        connection.execute("INSERT INTO B VALUES (1, 'a')")
    connection.close()
    tables = open_tables("sqlite:own.db", tmp_path)
    with pytest.raises(StateError, match="CHECK constraint failed"):
        edit(tables, add={(2, "b"), (3, "bad")}, drop={(1, "a")})
    assert content(tables) == {(1, "a")}


def test_what_is_wrong_with_a_table_is_told(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "own.db") as connection:
        connection.execute("CREATE TABLE B (bid TEXT, name TEXT)")
        connection.execute("INSERT INTO B VALUES (NULL, 'a'), ('x', 'b')")
        connection.execute("CREATE TABLE C (bid TEXT)")
    connection.close()
    tables = open_tables("sqlite:own.db", tmp_path)
    with pytest.raises(FactError) as caught:
        tables.read([B, Relation("BioSQL", "C", B.columns)])
    assert list(caught.value.problems) == [
        "table B, row 1: bid is NULL, and no mapping invented that",
        "table B, row 2: 'x' is not a number",
        "table C has no column name",
    ]
    with pytest.raises(StateError, match="there are no tables at oracle:x"):
        open_tables("oracle:x", tmp_path)
    with pytest.raises(FactError, match="cannot connect to PostgreSQL"):
        content(open_tables("postgresql://nobody@127.0.0.1:1/none", tmp_path))


def test_only_what_was_touched_is_read_of_captured_tables(database: str, tmp_path: Path) -> None:  # noqa: F811
    store, files = tmp_path / "store", (("all.peers", NAMES),)
    with psycopg.connect(database) as connection:
        connection.execute('CREATE TABLE "B" (bid bigint, name text NOT NULL, own serial PRIMARY KEY)')
        connection.execute('INSERT INTO "B" VALUES (4472, %s), (1, %s)', (PERI, "mistake"))
        connection.execute(capture_sql(["B"]))
    Peer.create(tmp_path / "biosql", "BioSQL", store, files=files, where=database).close()
    Peer.create(tmp_path / "gus", "GUS", store).close()
    (tmp_path / "gus/tables").mkdir()
    (tmp_path / "gus/tables/G.csv").write_text(f"id,name,canon\n1,{OSCI},{DROS}\n2,{MUSC},{MUSC}\n")
    with Peer.open(tmp_path / "gus") as gus:
        gus.publish()
    with Peer.open(tmp_path / "biosql") as peer:
        peer.import_()
    with psycopg.connect(database) as connection, Peer.open(tmp_path / "biosql") as peer:
        assert peer.pending_edits() == []
        connection.execute('DELETE FROM "B" WHERE name = %s', (MUSC,))
        connection.execute('UPDATE "B" SET name = %s WHERE bid = 1', ("Blatta orientalis",))
        connection.execute('INSERT INTO "B" VALUES (2, %s)', ("undone",))
        connection.execute('DELETE FROM "B" WHERE bid = 2')
        assert peer.pending_edits() == [], "not committed"
        connection.commit()
        # One that nobody captured: it is not looked for.
        connection.execute('ALTER TABLE "B" DISABLE TRIGGER USER')
        connection.execute('INSERT INTO "B" VALUES (3, %s)', ("unnoticed",))
        connection.execute('ALTER TABLE "B" ENABLE TRIGGER USER')
        connection.commit()
        assert {tuple(each) for each in peer.pending_edits()} == {
            ("+", "rejected", "BioSQL.B", (null(MUSC), MUSC)),
            ("-", "local", "BioSQL.B", (1, "mistake")),
            ("+", "local", "BioSQL.B", (1, "Blatta orientalis")),
        }
        peer.import_()
        assert peer.pending_edits() == []
        # What is forgotten is not known: the table is read.
        connection.execute("SELECT whence_capture.forget('public.B', now() + interval '1 day')")
        connection.execute('DELETE FROM "B" WHERE bid = 4472')
        connection.commit()
        assert {tuple(each)[:2] + tuple(each)[3:] for each in peer.pending_edits()} >= {("-", "local", (4472, PERI))}


def test_parquet_written_elsewhere(tmp_path: Path) -> None:
    tables = open_tables("parquet:own", tmp_path)
    (tmp_path / "own/B.parquet").mkdir(parents=True)
    for at, row in enumerate(((1, "a"), (2, "b"))):
        pq.write_table(pa.table({"bid": [row[0]], "name": [row[1]]}), tmp_path / f"own/B.parquet/part-{at}.parquet")
    assert content(tables) == {(1, "a"), (2, "b")}
    with pytest.raises(StateError, match="cannot replace at once"):
        edit(tables, add={(3, "c")})
    pq.write_table(pa.table({"bid": ["x", None], "name": ["a", "b"]}), tmp_path / "own/C.parquet")
    (tmp_path / "own/D.parquet").write_text("no")
    with pytest.raises(FactError) as caught:
        tables.read([Relation("BioSQL", name, B.columns) for name in ("C", "D")])
    first, second, third = caught.value.problems
    assert first.endswith("C.parquet: row 1: 'x' is not a number")
    assert second.endswith("row 2: bid is NULL, and no mapping invented that")
    assert "D.parquet: " in third
