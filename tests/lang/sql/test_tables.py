"""Tables of SQL under random updates: equal rows against DuckDB, constraints against SQLite, both after each epoch."""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections import Counter
from random import Random

import duckdb
import pandas as pd
import pytest

from whence import ProgramError, Session, Update, load
from whence.constraints import Broken, ConstraintError
from whence.lang.program import Program
from whence.lang.tables import numbered
from whence.prepared import prepare
from whence.session import evaluate

SEEDS = max(6, int(os.environ.get("WHENCE_EXAMPLES", "0")) // 20)
SCHEMA = """
CREATE TABLE t(a BIGINT, s TEXT);
CREATE TABLE k(id BIGINT NOT NULL PRIMARY KEY, a BIGINT UNIQUE, n BIGINT CHECK (n > 0), CHECK (a <> n));
CREATE TABLE p(x BIGINT NOT NULL, y TEXT NOT NULL, PRIMARY KEY (x, y));
"""
QUERIES = [
    "SELECT a, s FROM t",
    "SELECT s FROM t",
    "SELECT DISTINCT s FROM t",
    "SELECT a, COUNT(*) AS n, COUNT(s) AS m, SUM(a) AS total FROM t GROUP BY a",
    "SELECT COUNT(*) AS n FROM t AS one JOIN t AS other ON one.a = other.a",
    "SELECT t.s, k.n FROM t LEFT JOIN k ON k.a = t.a",
    "SELECT t.a, p.y FROM t FULL JOIN p ON p.x = t.a",
    "SELECT a FROM t UNION ALL SELECT n FROM k UNION ALL SELECT x FROM p",
    "SELECT a FROM t EXCEPT ALL SELECT n FROM k",
    "SELECT a FROM t INTERSECT ALL SELECT x FROM p",
    "SELECT id FROM k WHERE EXISTS (SELECT 1 FROM t WHERE t.a = k.a)",
    "SELECT s, ROW_NUMBER() OVER (PARTITION BY s ORDER BY a) AS place FROM t",
    "SELECT a, s FROM t ORDER BY a NULLS LAST, s NULLS LAST LIMIT 3",
]
KEYLESS = "CREATE TABLE t(a BIGINT, s TEXT); CREATE VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a;"
Row = tuple[object, ...]


def loaded(text: str) -> Program:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(text, dialect="sql")


def random_update(random: Random) -> Update:
    few = (None, 1, 2, 3)
    table = random.choice("ttkkp")
    row: Row = {
        "t": (random.choice(few), random.choice((None, "x", "y"))),
        "k": (random.choice((1, 2, 3)), random.choice(few), random.choice((None, 0, 1, 2))),
        "p": (random.choice((1, 2)), random.choice(("x", "y"))),
    }[table]
    return Update(random.choice("++-"), table, row)  # type: ignore[arg-type]


def taken_by_sqlite(database: sqlite3.Connection, update: Update) -> bool:
    marks = ", ".join("?" * len(update.tuple))
    if update.op == "+":
        try:
            database.execute(f"INSERT INTO {update.relation} VALUES ({marks})", update.tuple)
        except sqlite3.IntegrityError:
            return False
        return True
    names = {"t": ("a", "s"), "k": ("id", "a", "n"), "p": ("x", "y")}[update.relation]
    same = " AND ".join(f"{name} IS ?" for name in names)
    database.execute(
        f"DELETE FROM {update.relation} WHERE rowid = (SELECT MIN(rowid) FROM {update.relation} WHERE {same})",
        update.tuple,
    )
    return True


@pytest.mark.parametrize("seed", range(SEEDS))
def test_tables_hold_what_sqlite_holds_and_views_show_what_duckdb_shows(seed: int) -> None:
    random = Random(seed)
    views = " ".join(f"CREATE VIEW v{at} AS {query};" for at, query in enumerate(QUERIES))
    session = Session(loaded(SCHEMA + views))
    holding = sqlite3.connect(":memory:")
    holding.executescript(SCHEMA)
    for _ in range(6):
        updates = [random_update(random) for _ in range(random.randint(0, 12))]
        refused: list[Broken] = []
        admitted = session.admit(updates, refused.append)
        session.apply(admitted, checked=True)
        expected = [at for at, update in enumerate(updates) if not taken_by_sqlite(holding, update)]
        assert sorted(each.at for each in refused) == expected, f"seed {seed}"
        with duckdb.connect() as database:
            database.execute(SCHEMA)
            for table in ("t", "k", "p"):
                rows = holding.execute(f"SELECT * FROM {table}").fetchall()
                assert Counter(session.bag(table)) == Counter(rows), f"seed {seed}: {table}"
                for row in rows:
                    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            for at, query in enumerate(QUERIES):
                assert Counter(session.bag(f"v{at}")) == Counter(database.execute(query).fetchall()), query


def test_what_is_deleted_is_one_copy_however_many_there_are() -> None:
    session = Session(loaded(KEYLESS), facts={"t": [(1, "x")] * 1000})
    assert session.bag("v") == [(1, 1000)]
    for left in range(999, 900, -1):
        assert session.apply([Update("-", "t", (1, "x"))]).inserted["v"] == [(1, left)]
    session.apply([Update("-", "t", (1, "x"))] * 901 + [Update("+", "t", (1, "x"))])
    assert session.bag("t") == [(1, "x")]


def test_copies_come_in_frames_and_files_of_any_length() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 1], "s": ["x", "x", None, "y"]})
    session = Session(loaded(KEYLESS), facts={"t": frame})
    assert Counter(session.bag("t")) == Counter(frame.where(frame.notna(), None).itertuples(index=False, name=None))
    assert session.bag("v") == [(1, 3), (2, 1)]
    assert evaluate(loaded(KEYLESS), {"t": [(1, "x"), (1, "x")]})["v"] == {(1, 2)}


def test_a_row_of_the_text_is_a_copy_beside_those_that_come() -> None:
    session = Session(
        loaded("CREATE TABLE t(a BIGINT); INSERT INTO t VALUES (1), (1); SELECT a FROM t;"), facts={"t": [(1,)]}
    )
    assert session.bag("result") == [(1,)] * 3
    session.apply([Update("-", "t", (1,))] * 3 + [Update("+", "t", (1,))])
    assert session.bag("result") == [(1,)] * 3  # what stands in the text stays


def test_an_epoch_that_is_tried_or_fails_leaves_the_copies_as_they_were() -> None:
    session = Session(loaded(KEYLESS), facts={"t": [(1, "x")] * 3})
    assert session.trial([Update("-", "t", (1, "x"))]).inserted["v"] == [(1, 2)]
    with pytest.raises(ValueError, match="symbol"):
        session.apply([Update("-", "t", (1, "x")), Update("-", "t", (1, 2))])
    assert session.bag("t") == [(1, "x")] * 3


def test_a_program_that_counts_nothing_has_no_rows_of_copies() -> None:
    program = loaded("CREATE TABLE t(a BIGINT); CREATE VIEW v AS SELECT DISTINCT a FROM t;")
    assert "t.rows" not in program.relations
    session = Session(program, facts={"t": [(1,), (1,)]})
    session.apply([Update("-", "t", (1,))])
    assert session.bag("v") == [(1,)]  # as in every database: one is left
    session.apply([Update("-", "t", (1,))])
    assert session.bag("v") == []


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            (1, "z", 7),
            r'k\(1, "z", 7\) breaks PRIMARY KEY \(id\): k\(1, "a", 5\) is there already: leave it out, or delete',
        ),
        ((2, "a", 7), r'k\(2, "a", 7\) breaks UNIQUE \(c\): k\(1, "a", 5\) is there already'),
        ((2, "b", 0), r'k\(2, "b", 0\) breaks CHECK \(n > 0\): leave it out'),
        ((1, "a", 5), r'k\(1, "a", 5\) breaks PRIMARY KEY \(id\): it is there already'),
    ],
)
def test_a_session_refuses_what_breaks_a_constraint(row: Row, reason: str) -> None:
    program = loaded("CREATE TABLE k(id BIGINT PRIMARY KEY, c TEXT UNIQUE, n BIGINT CHECK (n > 0)); SELECT id FROM k;")
    session = Session(program, facts={"k": [(1, "a", 5)]})
    with pytest.raises(ConstraintError, match=f"update 2: {reason}"):
        session.apply([Update("+", "k", (9, "q", 1)), Update("+", "k", row)])  # type: ignore[arg-type]
    assert set(session.relation("k")) == {(1, "a", 5)}
    with pytest.raises(ConstraintError, match=f"row 2: {reason}"):
        Session(program, facts={"k": [(1, "a", 5), row]})  # type: ignore[list-item]
    with pytest.raises(ConstraintError, match=f"row 2: {reason}"):
        Session(program, facts={"k": pd.DataFrame([(1, "a", 5), row], columns=["id", "c", "n"])})


def test_a_key_is_free_once_its_row_is_deleted_and_only_then() -> None:
    session = Session(
        loaded("CREATE TABLE k(id BIGINT PRIMARY KEY, c TEXT); SELECT id FROM k;"), facts={"k": [(1, "a")]}
    )
    old, new = Update("-", "k", (1, "a")), Update("+", "k", (1, "b"))
    with pytest.raises(ConstraintError):
        session.apply([new, old])
    session.apply([old, new])
    assert set(session.relation("k")) == {(1, "b")}


def test_rows_of_the_text_that_break_a_key_or_a_check_are_reported() -> None:
    with pytest.raises(ProgramError, match=r"k has a row with this key already: PRIMARY KEY \(id\)"):
        loaded(
            "CREATE TABLE k(id BIGINT PRIMARY KEY, c TEXT); INSERT INTO k VALUES (1, 'a'), (0 + 1, 'b'); SELECT id FROM k;"
        )
    program = loaded(
        "CREATE TABLE k(id BIGINT PRIMARY KEY CHECK (id < 9)); INSERT INTO k VALUES (10); SELECT id FROM k;"
    )
    with pytest.raises(ConstraintError, match=r"the program: k\(10\) breaks CHECK \(id < 9\)"):
        Session(program)


def test_a_check_with_a_subquery_is_refused() -> None:
    with pytest.raises(ProgramError, match="a subquery in CHECK is not supported"):
        loaded("CREATE TABLE k(id BIGINT PRIMARY KEY CHECK (id IN (SELECT 1))); SELECT id FROM k;")


def test_numbers_of_copies_are_no_relation_to_be_updated() -> None:
    session = Session(loaded(KEYLESS))
    with pytest.raises(ValueError, match=r"t\.copies follows from what its table holds"):
        session.apply([Update("+", "t.copies", (1, "x", 2))])


def test_an_image_has_the_copies() -> None:
    session = Session(loaded(KEYLESS), facts={"t": [(1, "x")] * 3})
    image = session.image()
    assert image is not None
    resumed = Session.resumed(prepare(session.program), image)
    assert resumed is not None
    resumed.apply([Update("+", "t", (1, "x"))])
    assert resumed.bag("v") == [(1, 4)]


def test_questions_in_sql_count_copies() -> None:
    session = Session(loaded(KEYLESS), facts={"t": [(1, "x")] * 3})
    assert session.query("SELECT COUNT(*) AS n FROM t").rows == [(3,)]


def test_numbering_begins_behind_what_is_there() -> None:
    assert numbered([("a",), ("a",)], {("a",): 2}) == ([], [("a", 3), ("a", 4)])
