"""Questions about SQL views other than `why`: what is told names tables, views and the query, and repairs work in DuckDB too."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from random import Random
from typing import cast

import duckdb
import pytest
from tests.lang.sql.statements import SCHEMA, Statements, random_row
from tests.lang.sql.statements import TABLES as RANDOM_TABLES

from whence import ProgramError, Session, Update, load
from whence.cli.whynot import told
from whence.lang.bags import named_relations
from whence.lang.types import Tuple
from whence.provenance import CannotExplain, Fact, graph_of, how, probability, rank_dependence, whatif, why, whynot
from whence.provenance.annotations import Annotations
from whence.provenance.base import free_facts
from whence.provenance.matching import FactPattern, parse_pattern
from whence.provenance.repairs import Effort, Repair
from whence.provenance.responsibility import contributions
from whence.provenance.show import show_fact
from whence.provenance.to_json import changes_to_json, why_to_json, whynot_to_json
from whence.provenance.whynot import closest_absent

TABLES = """
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, CHECK (amount < 100));
CREATE TABLE sale(city TEXT, amount INTEGER);
"""
VIEWS = """
CREATE VIEW listed AS SELECT c.name, o.amount FROM customer c LEFT JOIN orders o ON o.customer = c.id;
CREATE VIEW dear AS SELECT c.name, o.amount FROM customer c JOIN orders o ON o.customer = c.id WHERE o.amount > 6;
CREATE VIEW large AS SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 6;
CREATE VIEW total AS
  SELECT c.name, SUM(o.amount) AS spent FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.name;
CREATE VIEW words AS SELECT city FROM customer UNION ALL SELECT name FROM customer;
CREATE VIEW idle AS SELECT name FROM customer WHERE id NOT IN (SELECT customer FROM orders WHERE customer IS NOT NULL);
CREATE VIEW thrifty AS
  SELECT name FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND amount > 4);
CREATE VIEW ranked AS SELECT c.name, o.amount, ROW_NUMBER() OVER (PARTITION BY c.id ORDER BY o.amount) AS place
  FROM customer c JOIN orders o ON o.customer = c.id;
CREATE VIEW cities AS SELECT city, COUNT(*) AS n, SUM(amount) AS total FROM sale GROUP BY city HAVING COUNT(*) > 1;
CREATE VIEW sold AS SELECT city, amount * 2 AS double FROM sale WHERE amount BETWEEN 3 AND 10;
CREATE VIEW best AS SELECT name, amount FROM listed WHERE amount = (SELECT MAX(amount) FROM orders);
CREATE RECURSIVE VIEW chain(top, sub) AS SELECT id, customer FROM orders WHERE customer IS NOT NULL
  UNION SELECT c.top, o.amount FROM chain c JOIN orders o ON o.customer = c.sub;
"""
FACTS: Mapping[str, list[Tuple]] = {
    "customer": [(1, "ada", "Rome"), (2, "bob", None), (3, "eve", "Bern")],
    "orders": [(10, 1, 5), (11, 1, 7), (12, None, 9), (13, 2, 5)],
    "sale": [("Rome", 3), ("Rome", 3), ("Bern", 4), (None, 1)],
}
TOLD: dict[str, str] = {
    'listed("eve", 5)': """\
listed("eve", 5) does not hold
  listed#1 comes closest with
    found       customer(3, "eve", "Bern")
    missing     orders(_, 3, 5)
it would hold with  + orders(14, 3, 5)

listed#1  views.sql:6  SELECT c.name, o.amount FROM customer c LEFT JOIN orders o ON o.customer = c.id""",
    'dear("ada", 5)': """\
dear("ada", 5) does not hold
  dear#1 comes closest with
    found       customer(1, "ada", "Rome")
    found       orders(10, 1, 5)
    false       o.amount > 6
no changes of base facts""",
    'large("ada", nil)': """\
large("ada", nil) does not hold
  large#1 comes closest with
    found       customer(1, "ada", "Rome")
    in the way  orders(11, 1, 7)
it would hold with  - orders(11, 1, 7)
""",
    'large("bob", 13)': """\
large("bob", 13) does not hold
  large#1 comes closest with
    found       customer(2, "bob", nil)
    found       orders(13, 2, 5)
    false       o.amount > 6
it would hold with  + orders(13, 2, 10)  - orders(13, 2, 5)
""",
    'total("ada", 13)': """\
total("ada", 13) does not hold
  total#1 comes closest with
    found       customer(1, "ada", "Rome")
    found       orders(10, 1, 5)
    false       SUM(o.amount) (it is 12)
it would hold with  + orders(14, 1, 1)
""",
    'total("eve", 5)': """\
total("eve", 5) does not hold
  total#1 comes closest with
    found       customer(3, "eve", "Bern")
    false       SUM(o.amount) (it is nil)
it would hold with  + orders(14, 3, 5)
""",
    'words("Paris")': """\
words("Paris") does not hold
  words#1 comes closest with
    missing     customer(_, _, "Paris")
  words#2 comes closest with
    missing     customer(_, "Paris", _)
it would hold with  + customer(4, "Paris", "Bern")
""",
    'idle("bob")': """\
idle("bob") does not hold
  idle#1 comes closest with
    found       customer(2, "bob", nil)
    in the way  orders(13, 2, 5)
it would hold with  - orders(13, 2, 5)
""",
    'thrifty("ada")': """\
thrifty("ada") does not hold
  thrifty#1 comes closest with
    found       customer(1, "ada", "Rome")
    in the way  orders(10, 1, 5)
it would hold with  + customer(4, "ada", "Bern")
""",
    'ranked("ada", 7, 1)': """\
ranked("ada", 7, 1) does not hold
  ranked#1 comes closest with
    found       customer(1, "ada", "Rome")
    found       orders(11, 1, 7)
    found       orders(10, 1, 5)
    false       ROW_NUMBER() OVER (PARTITION BY c.id ORDER BY o.amount) (it is 2)
it would hold with  - orders(10, 1, 5)
""",
    'cities("Bern", 2, 8)': """\
cities("Bern", 2, 8) does not hold
  cities#1 comes closest with
    found       sale("Bern", 4)
    false       COUNT(*) (it is 1)
    false       SUM(amount) (it is 4)
it would hold with  + sale("Bern", 4)
""",
    'sold("Bern", 7)': """\
sold("Bern", 7) does not hold
  sold#1 comes closest with
    found       sale("Bern", 4)
    false       double = 7 (it is 8)
no changes of base facts""",
    'best("bob", 5)': """\
best("bob", 5) does not hold
  best#1 comes closest with
    found       listed("bob", 5)
    false       SELECT MAX(amount) (it is 9)
""",
    "chain(10, 3)": """\
chain(10, 3) does not hold
  chain#1 comes closest with
    missing     orders(10, 3, _)
  chain#2 comes closest with
    found       chain(10, 1)
    missing     orders(_, 1, 3)
it would hold with  + orders(14, 1, 3)
""",
}


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(load(TABLES + VIEWS, name="views.sql", dialect="sql"), facts=FACTS)


def behind(session: Session) -> list[str]:
    """The names that nobody wrote."""
    return [name for name in session.program.relations if name not in named_relations(session.program)]


def names_none(text: str, session: Session) -> bool:
    return not [name for name in behind(session) if f"{name}(" in text or f"{name}#" in text]


@pytest.mark.parametrize("fact", TOLD)
def test_what_is_missing_is_told_in_terms_of_tables_and_views(fact: str, session: Session) -> None:
    answer = whynot(session, fact, repairs=1)
    text = "\n".join(told(answer, session.program, asked_for=1))
    assert text.startswith(TOLD[fact])
    assert names_none(text, session)
    assert names_none(json.dumps(whynot_to_json(answer)), session)


def test_a_repair_that_a_check_refuses_is_not_suggested(session: Session) -> None:
    assert not whynot(session, "dear", ("eve", 200)).repairs
    assert whynot(session, "dear", ("eve", 99)).repairs


def test_repairs_among_one_table(session: Session) -> None:
    found = whynot(session, "cities", ("Bern", 2, 8), among=["sale"]).repairs
    assert found[0] == Repair((Fact("sale", ("Bern", 4)),), ())


def test_both_copies_of_a_row_have_to_go(session: Session) -> None:
    taken = "SELECT city FROM sale WHERE city IS NOT NULL"
    text = f"{TABLES} CREATE VIEW without AS SELECT name FROM customer WHERE city NOT IN ({taken});"
    asked = Session(load(text, dialect="sql"), facts=FACTS)
    rome = Fact("sale", ("Rome", 3))
    assert whynot(asked, "without", ("ada",), among=["sale"]).repairs == (Repair((), (rome, rome)),)


@pytest.mark.parametrize("chunk", range(4))
def test_repairs_of_random_views_are_right_in_duckdb(chunk: int) -> None:
    asked = repaired = 0
    for seed in range(chunk, 120, 4):
        random = Random(seed)
        query, _ = Statements(random).query()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                session = Session(load(f"{SCHEMA} CREATE VIEW v AS {query};", dialect="sql"))
            except ProgramError:
                continue
            base = filled(session, random)
            fact = taken_away(session, base, random)
            if fact is None:
                continue
            asked += 1
            answer = whynot(session, *fact, repairs=1, effort=Effort(changes=2, seconds=0.5))
            assert names_none("\n".join(told(answer, session.program, asked_for=1)), session)
        for repair in answer.repairs:
            base.subtract(map(tuple, repair.deletions))
            base.update(map(tuple, repair.insertions))
            assert has(fact.tuple, query, base), f"seed {seed}: {query} {repair}"
            repaired += 1
    assert repaired > 0.5 * asked > 2


def filled(session: Session, random: Random) -> Counter[tuple[str, Tuple]]:
    """Puts random rows in; what is there then."""
    rows = [Update("+", name, cast("Tuple", random_row(random, name))) for name in RANDOM_TABLES for _ in range(4)]
    refused: set[int] = set()
    session.apply(session.admit(rows, lambda broken: refused.add(broken.at)), checked=True)
    return Counter((each.relation, each.tuple) for at, each in enumerate(rows) if at not in refused)


def taken_away(session: Session, base: Counter[tuple[str, Tuple]], random: Random) -> Fact | None:
    """A row that the view loses with a row of a table, which is taken away."""
    for name, row in random.sample(sorted(base, key=repr), len(base)):
        lost = whatif(session, without=[(name, row)]).deleted.get("v", [])
        if lost and base[name, row] == 1:
            session.apply([Update("-", name, row)])
            del base[name, row]
            found = [each for each in lost if each not in session.relation("v")]
            return Fact("v", random.choice(found)) if found else None
    return None


def has(row: Tuple, query: str, base: Counter[tuple[str, Tuple]]) -> bool:
    """Whether the row is in DuckDB's answer, if it has one."""
    database = duckdb.connect()
    database.execute(SCHEMA)
    for name, each in base.elements():
        database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(each))})", each)
    try:
        return row in database.execute(query).fetchall()
    except duckdb.Error:  # of rows that it cannot compute with
        return True


LIBRARY = """
CREATE TABLE member(id INTEGER PRIMARY KEY, name TEXT NOT NULL, level TEXT CHECK (level IN ('basic', 'gold')));
CREATE TABLE loan(member INTEGER NOT NULL REFERENCES member, book TEXT NOT NULL, taken DATE NOT NULL, price DECIMAL(6,2));
INSERT INTO member VALUES (1, 'Ann', 'gold'), (2, 'Bob', 'basic'), (3, 'Cid', NULL);
INSERT INTO loan VALUES (1, 'Emma', '2024-01-02', 1.50), (2, 'Emma', '2024-01-05', 2), (2, 'Dune', '2024-02-10', 2),
  (2, 'Dune', '2024-02-10', 2);
CREATE VIEW late AS WITH due AS (SELECT member, book, taken + INTERVAL '14 days' AS due FROM loan)
  SELECT m.name, d.book, d.due FROM due d JOIN member m ON m.id = d.member WHERE d.due < TIMESTAMP '2024-02-28';
CREATE VIEW paid AS SELECT m.name, SUM(l.price * 0.5) AS fees, ROUND(AVG(l.price), 1) AS mean
  FROM member m JOIN loan l ON l.member = m.id GROUP BY m.name HAVING SUM(l.price) > 1;
"""


@pytest.fixture(scope="module")
def library() -> Session:
    program, facts = free_facts(load(LIBRARY, name="library.sql", dialect="sql"))
    return Session(program, facts=facts)


def test_rows_of_a_query_with_a_name_are_shown_with_their_own_columns(library: Session) -> None:
    answer = why(library, "late", ("Bob", "Dune", datetime(2024, 2, 24)))  # noqa: DTZ001
    assert str(answer).startswith(
        """\
late("Bob", "Dune", 2024-02-24 00:00:00)  by late#1
├─ due(2, "Dune", 2024-02-24 00:00:00)  by due#1
│  └─ loan(2, "Dune", 2024-02-10, 2.00)
└─ member(2, "Bob", "basic")

due#1   library.sql:7  SELECT member, book, taken + INTERVAL '14 days' AS due FROM loan
late#1  library.sql:7  WITH due AS (SELECT"""
    )


def test_a_pattern_takes_computed_values_that_are_there(library: Session) -> None:
    pattern = parse_pattern('late("Cid", "Dune", _)', library.program)
    assert isinstance(pattern, FactPattern)
    (fact,) = closest_absent(library, pattern, 1).facts
    assert fact.tuple[:2] == ("Cid", "Dune")
    (attempt,) = whynot(library, *fact, repairs=0).attempts
    assert show_fact(attempt.found[0]) == 'member(3, "Cid", nil)'
    assert attempt.missing[0].relation == "due"
    empty = Session(load("CREATE TABLE t(a TEXT); CREATE VIEW v AS SELECT a, a > 'b' AS more FROM t;", dialect="sql"))
    with pytest.raises(CannotExplain, match="nothing that is there has a value for more"):
        closest_absent(empty, FactPattern("v", {0: "a"}, {}), 1)


def test_a_query_that_became_several_rules_is_told_once(library: Session) -> None:
    (attempt,) = whynot(library, 'paid("Ann", 0.9, 1.5)', repairs=0).attempts
    assert attempt.failed == ("SUM(l.price * 0.5) (it is 0.750)",)


# -- the other questions


def test_changes_are_told_of_tables_and_views_rows_as_often_as_they_go(session: Session) -> None:
    changes = whatif(session, without=['sale("Rome", 3)'])
    assert changes.deleted == {"cities": [("Rome", 2, 6)], "sale": [("Rome", 3)], "sold": [("Rome", 6)]}
    assert not changes.inserted
    more = whatif(session, given=['sale("Rome", 3)'])
    assert more.inserted == {"cities": [("Rome", 3, 9)], "sale": [("Rome", 3)], "sold": [("Rome", 6)]}
    assert names_none(json.dumps(changes_to_json(more)), session)


def test_rows_of_tables_are_ranked(session: Session) -> None:
    ranked = rank_dependence(session)
    assert {each.fact.relation for each in ranked} == {"customer", "orders", "sale"}
    assert next(each for each in ranked if each.fact == Fact("sale", ("Rome", 3))).lost == 2


def test_equal_rows_go_by_one_name_in_provenance(session: Session) -> None:
    fact = Fact("sold", ("Rome", 6))
    graph = graph_of(session, *fact)
    told = {each: how(graph, fact, each, program=session.program) for each in ("lineage", "polynomial", "counting")}
    assert told == {"lineage": '{sale("Rome", 3)}', "polynomial": '2*sale("Rome", 3)', "counting": "2"}


def test_each_of_two_equal_rows_has_its_share_and_its_chance(session: Session) -> None:
    fact = Fact("sold", ("Rome", 6))
    shares = contributions(session, *fact, among=["sale"])
    assert [(each.fact, each.responsibility) for each in shares] == [(Fact("sale", ("Rome", 3)), 0.5)] * 2
    chances = Annotations(["sale=0.5"], session.program, float)
    assert probability(session, *fact, lambda base: chances(base) or 1.0).low == pytest.approx(0.75)


def test_a_question_without_an_exact_answer_is_refused_with_the_query(session: Session) -> None:
    with pytest.raises(CannotExplain) as refused:
        probability(session, "cities", ("Rome", 2, 6), lambda _: 0.5)
    assert names_none(str(refused.value), session)
    assert "(SELECT city, COUNT(*) AS n" in str(refused.value)
    assert "the facts of sale would have to be certain" in str(refused.value)


def test_proofs_have_rows_of_tables_in_every_shape(session: Session) -> None:
    answer = why(session, "cities", ("Rome", 2, 6))
    assert names_none(json.dumps(why_to_json(answer)), session)
    assert all(
        tuple(premise.fact for premise in part.premises) == part.firing.premises
        for part in answer.shown[0]
        if part.firing is not None
    )
