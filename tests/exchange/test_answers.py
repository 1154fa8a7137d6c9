"""Queries: certain answers, and those with nulls."""

from __future__ import annotations

import sqlite3

import pytest
from tests.exchange.test_vectors import GUS
from tests.exchange.vectors import FIRST, MAPPINGS, MUSC, NAMES, OSCI, SCHEMAS, SECOND, confederation, null, numbers

from whence.exchange.answers import answers, sql_answers
from whence.exchange.instance import Instance
from whence.lang.diagnostics import ProgramError

FILES = (("test.peers", SCHEMAS + MAPPINGS),)


def test_an_invented_value_is_no_certain_answer() -> None:
    """1.3"""
    instance, files = Instance(confederation(NAMES), GUS), (("test.peers", NAMES),)
    assert answers(instance, files, f'ans(b, n) :- B(b, n), n = "{OSCI}".') == set()
    assert answers(instance, files, f'ans(n) :- B(b, n), n = "{OSCI}".') == {(OSCI,)}
    assert answers(instance, files, f'ans(b) :- B(b, "{MUSC}").', nulls=True) == {(null(MUSC),)}


def test_nulls_join() -> None:
    """3.2"""
    pairs = {(8, 8), (2, 2), (2, 3), (3, 2), (3, 3), (5, 5), (5, 6), (6, 5), (6, 6)}
    instance = numbers()
    before = {name: instance.relation(name) for name in instance.confederation.relations}
    assert answers(instance, FILES, "ans(y, z) :- B(x, y), B(x, z)") == pairs
    assert answers(instance, FILES, "ans(x, y) :- B(x, y).") == {(7, 8)}
    assert {name: instance.relation(name) for name in instance.confederation.relations} == before


def test_rules_may_use_each_other() -> None:
    text = "path(x, y) :- U(x, y). path(x, z) :- path(x, y), U(y, z). ans(x) :- path(x, x)."
    assert answers(numbers(), FILES, text) == {(5,), (6,)}
    assert answers(numbers(), FILES, "ans(x) :- B(x, 3).", nulls=True) == {(FIRST,)}
    assert answers(numbers(), FILES, "ans(x) :- B(x, 6).", nulls=True) == {(SECOND,)}


@pytest.mark.parametrize("text", ["ans(x)", "ans(z) :- B(x, y)."])
def test_what_is_not_a_query_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"made of rules|come from no relation"):
        answers(numbers(), FILES, text)
    with pytest.raises(ProgramError):
        answers(numbers(), FILES, "ans(x) :- Q(x), B(x, y).")
    with pytest.raises(ProgramError):
        answers(numbers(), FILES, "ans(x) :- B(x,")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name1 FROM U",
        "SELECT a.name1, b.name2 FROM U a JOIN U b ON a.name2 = b.name1 WHERE a.name1 <> 2",
        "SELECT name1 FROM U WHERE name1 IN (2, 5) OR name2 = 5 UNION SELECT name2 FROM U WHERE name2 > 5",
        "SELECT name1 + 1, 'x' FROM U WHERE name1 < name2;",
        "WITH RECURSIVE r(a, b) AS (SELECT name1, name2 FROM U UNION SELECT r.a, U.name2 FROM r JOIN U ON r.b = U.name1) "
        "SELECT a FROM r WHERE a = b",
    ],
)
def test_sql_gives_what_a_database_gives(query: str) -> None:
    instance = numbers()
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE U (name1, name2)")
        connection.executemany("INSERT INTO U VALUES (?, ?)", instance.relation("uBio.U"))
        expected = set(connection.execute(query))
    connection.close()
    assert sql_answers(instance, FILES, "uBio", query) == expected


def test_sql_over_nulls() -> None:
    pairs = "SELECT x.name, y.name FROM B x JOIN B y ON x.bid = y.bid"
    rules = answers(numbers(), FILES, "ans(y, z) :- B(x, y), B(x, z)")
    assert sql_answers(numbers(), FILES, "BioSQL", pairs) == rules
    assert sql_answers(numbers(), FILES, "BioSQL", "SELECT * FROM B") == {(7, 8)}
    assert sql_answers(numbers(), FILES, "BioSQL", "SELECT bid FROM B WHERE name = 3", nulls=True) == {(FIRST,)}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM U",
        "SELECT name1, count(*), max(name2), sum(name2) FROM U GROUP BY name1 HAVING count(*) > 0",
        "SELECT name1 FROM U EXCEPT SELECT name2 FROM U",
        "SELECT name1 FROM U WHERE NOT EXISTS (SELECT 1 FROM U v WHERE v.name2 = U.name1)",
        "SELECT count(*) FROM U WHERE name1 + 1 > name2",
    ],
)
def test_sql_about_the_rows_that_are_there_gives_what_a_database_gives(query: str) -> None:
    test_sql_gives_what_a_database_gives(query)


def test_sql_counts_and_groups_by_nulls() -> None:
    """numbers() has a known row, and two nulls, one of them with two names and one with two others."""
    instance = numbers()
    rows = instance.relation("BioSQL.B")
    groups = {bid: sum(1 for row in rows if row[0] == bid) for bid, _ in rows}
    assert sql_answers(instance, FILES, "BioSQL", "SELECT count(*) FROM B") == {(len(rows),)}
    by = "SELECT bid, count(*) FROM B GROUP BY bid"
    assert sql_answers(instance, FILES, "BioSQL", by) == {(7, 1)}
    assert sql_answers(instance, FILES, "BioSQL", by, nulls=True) == set(groups.items())
    names = "SELECT max(name), count(*) FROM B"
    assert sql_answers(instance, FILES, "BioSQL", names) == {(max(name for _, name in rows), len(rows))}
    alone = "SELECT bid, name FROM B WHERE NOT EXISTS (SELECT 1 FROM B other WHERE other.bid = B.bid AND other.name <> B.name)"
    assert sql_answers(instance, FILES, "BioSQL", alone, nulls=True) == {row for row in rows if groups[row[0]] == 1}


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT sum(bid) FROM B", "B.bid holds invented values, which cannot be aggregated by sum"),
        ("SELECT count(*) FROM B WHERE bid > 3", "B.bid holds invented values, which cannot be compared by >"),
        (
            "SELECT bid + 1, count(*) FROM B GROUP BY bid + 1",
            "B.bid holds invented values, which cannot be computed with",
        ),
        (
            "SELECT name FROM B WHERE NOT EXISTS (SELECT 1 FROM B other WHERE other.name = B.bid)",
            "cannot be looked for in vain",
        ),
    ],
)
def test_sql_that_would_need_to_know_an_invented_value_is_refused(query: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        sql_answers(numbers(), FILES, "BioSQL", query)


def test_mistakes_in_sql_are_shown_in_the_query() -> None:
    with pytest.raises(ProgramError) as caught:
        sql_answers(numbers(), FILES, "BioSQL", "SELECT nam\nFROM B")
    assert str(caught.value).startswith("<query>:1:8: error[W0603]")
    with pytest.raises(ProgramError):
        sql_answers(numbers(), FILES, "BioSQL", "SELECT name1 FROM U")
