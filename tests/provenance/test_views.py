"""Proofs of SQL views speak of the user's tables and views, and rest on what the proofs with all their steps rest on."""

from __future__ import annotations

import json
import warnings
from random import Random
from typing import cast

import pytest
from tests.lang.sql.statements import SCHEMA, Statements, random_row
from tests.lang.sql.statements import TABLES as RANDOM_TABLES

from whence import ProgramError, Session, Update, load
from whence.lang.types import Tuple
from whence.provenance.check import Checker
from whence.provenance.copies import Rows
from whence.provenance.derive import Deriver
from whence.provenance.expand import derivation_graph
from whence.provenance.export import EXPORTS, graph_of_proof
from whence.provenance.graph import Fact
from whence.provenance.how import how
from whence.provenance.proofs import Proof, smallest_proof
from whence.provenance.to_json import why_to_json
from whence.provenance.tree import show_graph
from whence.provenance.views import graph_of_views, proof_of_views
from whence.provenance.why import why

TABLES = """
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER);
INSERT INTO customer VALUES (1, 'ada', 'Rome'), (2, 'bob', NULL), (3, 'eve', 'Bern');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, NULL, 9), (13, 2, 5);
"""
VIEWS = """
CREATE VIEW listed AS SELECT c.name, o.amount FROM customer c LEFT JOIN orders o ON o.customer = c.id;
CREATE VIEW large AS
  SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 6;
CREATE VIEW ranked AS SELECT c.name, o.amount, ROW_NUMBER() OVER (PARTITION BY c.id ORDER BY o.amount) AS place
  FROM customer c JOIN orders o ON o.customer = c.id;
CREATE VIEW running AS SELECT id, SUM(amount) OVER (ORDER BY id) AS sofar FROM orders;
CREATE VIEW total AS
  SELECT c.name, SUM(o.amount) AS spent FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.name;
CREATE VIEW words AS SELECT city FROM customer UNION ALL SELECT name FROM customer;
CREATE VIEW amounts AS SELECT amount FROM orders;
CREATE VIEW best AS SELECT name, amount FROM listed WHERE amount = (SELECT MAX(amount) FROM orders WHERE customer = 1);
CREATE VIEW idle AS SELECT name FROM customer WHERE id NOT IN (SELECT customer FROM orders WHERE customer IS NOT NULL);
CREATE VIEW first_two AS SELECT name, amount FROM listed ORDER BY amount LIMIT 2;
CREATE VIEW both_sides AS SELECT c.name, o.id FROM customer c FULL JOIN orders o ON o.customer = c.id;
CREATE VIEW rich AS WITH spent AS (SELECT customer, SUM(amount) AS s FROM orders GROUP BY customer)
  SELECT c.name FROM customer c JOIN spent ON spent.customer = c.id WHERE s > 6;
CREATE VIEW places AS SELECT name FROM customer WHERE city IS NOT NULL EXCEPT ALL SELECT name FROM best;
CREATE RECURSIVE VIEW below(top, sub) AS SELECT id, customer FROM orders WHERE customer IS NOT NULL
  UNION SELECT b.top, o.id FROM below b LEFT JOIN orders o ON o.customer = b.sub;
"""


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(load(TABLES + VIEWS, name="views.sql", dialect="sql"))


def leaves(proof: Proof) -> set[Fact]:
    return {part.fact for part in proof if part.firing is None}


def relations(proof: Proof) -> set[str]:
    return {part.fact.relation for part in proof}


def views(session: Session) -> list[str]:
    outputs = [each.relation for each in session.program.transfers_of("output")]
    return [name for name in outputs if not session.program.relations[name].helper]


TOLD: dict[tuple[str, Tuple], str] = {
    ("listed", ("eve", None)): """\
listed("eve", nil)  by listed#1
├─ customer(3, "eve", "Bern")
└─ no orders(_, 3, _)

listed#1  views.sql:7  SELECT c.name, o.amount FROM customer c LEFT JOIN orders o ON o.customer = c.id""",
    ("large", ("bob", None)): """\
large("bob", nil)  by large#1
├─ customer(2, "bob", nil)
└─ no partner with id = 2 in (orders o ON o.customer = c.id AND o.amount > 6)

large#1  views.sql:9  SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 6""",
    ("total", ("ada", 12)): """\
total("ada", 12)  by total#1
└─ sum = 12
   ├─ customer(1, "ada", "Rome")
   ├─ orders(10, 1, 5)
   └─ orders(11, 1, 7)
""",
    ("total", ("eve", None)): """\
total("eve", nil)  by total#1
├─ customer(3, "eve", "Bern")
├─ no orders(_, 3, _)
└─ no value that is not null with name = "eve"
""",
    ("ranked", ("ada", 7, 2)): """\
ranked("ada", 7, 2)  by ranked#1
├─ customer(1, "ada", "Rome")
├─ orders(11, 1, 7)
└─ rows = 2
   ├─ customer(1, "ada", "Rome")
   ├─ orders(10, 1, 5)
   └─ orders(11, 1, 7)
""",
    ("running", (11, 12)): """\
running(11, 12)  by running#1
├─ orders(11, 1, 7)
└─ rows = 4
   ├─ orders(10, 1, 5)
""",
    ("words", ("ada",)): """\
words("ada")  by words#2
└─ customer(1, "ada", "Rome")

words#2  views.sql:15  SELECT name FROM customer""",
    ("best", ("ada", 7)): """\
best("ada", 7)  by best#1
├─ listed("ada", 7)  by listed#1
│  ├─ customer(1, "ada", "Rome")
│  └─ orders(11, 1, 7)
└─ max = 7
   └─ orders(11, 1, 7)
""",
    ("idle", ("eve",)): """\
idle("eve")  by idle#1
├─ customer(3, "eve", "Bern")
└─ no row with customer = 3 in (SELECT customer FROM orders WHERE customer IS NOT NULL)
""",
    ("rich", ("ada",)): """\
rich("ada")  by rich#1
├─ customer(1, "ada", "Rome")
└─ spent(1, 12)  by spent#1
   └─ sum = 12
""",
}


@pytest.mark.parametrize(
    ("fact", "text"), TOLD.items(), ids=lambda each: str(each[0]) if isinstance(each, tuple) else ""
)
def test_a_row_of_a_view_is_explained_by_rows_of_tables_and_views(
    fact: tuple[str, Tuple], text: str, session: Session
) -> None:
    assert str(why(session, *fact)).startswith(text)


def test_shown_proofs_rest_on_the_same_facts_and_name_no_helper(session: Session) -> None:
    assert any(relation.helper for relation in session.program.relations.values())
    assert proved_and_shown(session) > 40


def apply_admitted(session: Session, updates: list[Update]) -> None:
    """Those that break no key."""
    session.apply(session.admit(updates, lambda _: None), checked=True)


@pytest.mark.parametrize("chunk", range(5))
def test_shown_proofs_of_random_queries_rest_on_the_same_facts(chunk: int) -> None:
    rows = 0
    for seed in range(chunk, 100, 5):
        random = Random(seed)
        query, _ = Statements(random).query()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                session = Session(load(f"{SCHEMA} CREATE VIEW v AS {query};", dialect="sql"))
            except ProgramError:
                continue
            updates = [
                Update("+", table, cast("Tuple", random_row(random, table)))
                for table in RANDOM_TABLES
                for _ in range(3)
            ]
            apply_admitted(session, updates)
            rows += proved_and_shown(session)
    assert rows > 10


def proved_and_shown(session: Session) -> int:
    """How many rows of views were looked at."""
    program, deriver = session.program, Deriver(session)
    helpers = {name for name, relation in program.relations.items() if relation.helper}
    checker = Checker(program, session.base())
    rows, rows_of = 0, Rows(program).of
    for name in views(session):
        for row in session.relation(name):
            proof, _ = smallest_proof(deriver, Fact(name, row))
            checker.check(proof)
            shown = proof_of_views(proof, program)
            assert shown.fact == proof.fact
            assert leaves(shown) == {rows_of(each) for each in leaves(proof)}
            assert not relations(shown) & helpers
            assert all(each.firing is None or each.fact == each.firing.head for each in shown)
            assert all(
                each.firing is None or tuple(premise.fact for premise in each.premises) == each.firing.premises
                for each in shown
            )
            rows += 1
    return rows


@pytest.mark.parametrize("name", ["listed", "words", "amounts", "both_sides"])
def test_graphs_of_views_have_the_same_provenance(name: str, session: Session) -> None:
    for row in session.relation(name):
        fact = Fact(name, row)
        graph = derivation_graph(Deriver(session), [fact])
        shown = graph_of_views(graph, session.program)
        assert all(not session.program.relations[each.relation].helper for each in shown.facts)
        for semiring in ("posbool", "polynomial"):
            assert how(shown, fact, semiring) == how(graph, fact, semiring)


def test_everything_that_is_told_of_a_view_is_free_of_helpers(session: Session) -> None:
    helpers = [name for name, relation in session.program.relations.items() if relation.helper]
    for fact in TOLD:
        answer = why(session, *fact)
        told = [json.dumps(why_to_json(answer)), str(answer)]
        graph = graph_of_proof(answer.shown)
        told += [export(graph, session.program) for name, export in EXPORTS.items() if name != "prov"]
        whole = derivation_graph(Deriver(session), [Fact(*fact)])
        told.append(show_graph(graph_of_views(whole, session.program), session.program))
        for text in told:
            assert not [name for name in helpers if f"{name}(" in text or f"{name}#" in text]


def test_a_row_of_a_helper_is_explained_if_it_is_asked_for(session: Session) -> None:
    row = min(session.relation("listed.rows"), key=repr)
    answer = why(session, "listed.rows", row)
    assert answer.shown[0].fact == Fact("listed.rows", row)
    assert relations(answer.shown[0]) <= {"listed.rows", "customer", "orders"}


def test_programs_of_rules_are_shown_as_they_are() -> None:
    session = Session(load('a("x"). b(x) :- a(x). c(x) :- b(x).'))
    (proof,) = why(session, "c", ("x",)).proofs
    assert proof_of_views(proof, session.program) is proof
