"""Questions asked once, against views that say the same, and against DuckDB."""

from __future__ import annotations

import random

import duckdb
import pytest

from whence import ProgramError, Session, load
from whence.limits import RunawayError

PROGRAM = """
.decl link(a:number, b:number, w:number) .input link
.decl name(n:number, s:symbol) .input name
reach(x, y) :- link(x, y, _). reach(x, z) :- reach(x, y), link(y, z, _).
.output reach
"""
BODIES = [
    ("x, y", "reach(x, y), x < y"),
    ("x, z", "link(x, y, _), link(y, z, w), w > 2"),
    ("x, s", 'name(x, s), !reach(x, x), s != "n3"'),
    ("n", "n = count : { reach(_, _) }"),
    ("x, n", "name(x, _), n = sum w : { link(x, _, w) }"),
    ("x, y", "reach(x, y), (link(y, x, _) ; x = y)"),
    ("s, m", "reach(3, m), name(m, s)"),
    ("x, u", "link(x, y, w), u = y * 10 + w, u > 20"),
    ("x", "x = range(0, 5), !name(x, _)"),
]
SELECTS = [
    "SELECT link.a, count(*) AS n FROM link GROUP BY link.a",
    "SELECT DISTINCT l.b, n.s FROM link l JOIN name n ON n.n = l.b WHERE l.w >= 2",
    "SELECT max(r.x) AS most FROM reach r",
    "SELECT n.s FROM name n WHERE NOT EXISTS (SELECT 1 FROM reach r WHERE r.x = n.n)",
    "WITH RECURSIVE w(a) AS (SELECT 2 UNION SELECT l.b FROM link l, w WHERE l.a = w.a) SELECT a FROM w",
    "SELECT x FROM reach EXCEPT SELECT n FROM name",
]


def made(seed: int) -> Session:
    draw = random.Random(seed)
    links = {(draw.randrange(9), draw.randrange(9), draw.randrange(5)) for _ in range(draw.randrange(20))}
    names = {(n, f"n{n}") for n in range(9) if draw.random() < 0.8}
    return Session(load(PROGRAM), facts={"link": links, "name": names})


@pytest.mark.parametrize(("variables", "body"), BODIES)
def test_a_body_is_what_a_view_of_it_would_be(variables: str, body: str) -> None:
    for seed in range(12):
        session = made(seed)
        answer = session.query(body)
        view = Session(
            load(f"{PROGRAM} view({', '.join(answer.columns)}) :- {body}. .output view"), facts=session.base()
        ).relation("view")
        assert set(answer) == set(view)
        assert len(answer) == len(view)
        assert set(variables.split(", ")) <= set(answer.columns)
        some = session.query(body, limit=2)
        assert (len(some), some.more) == (min(2, len(view)), len(view) > 2)
        assert set(some) <= set(view)
        assert "query" not in session.program.relations


@pytest.mark.parametrize("text", SELECTS)
def test_a_select_is_duckdbs(text: str) -> None:
    for seed in range(8):
        session = made(seed)
        with duckdb.connect() as peer:
            for name, columns in (("link", "a, b, w"), ("name", "n, s"), ("reach", "x, y")):
                rows = list(session.relation(name))
                typed = ", ".join(f"{each} {'TEXT' if each == 's' else 'BIGINT'}" for each in columns.split(", "))
                peer.execute(f"CREATE TABLE {name} ({typed})")
                if rows:
                    peer.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            expected = {row for row in peer.execute(text).fetchall() if None not in row}
        assert set(session.query(text)) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("reech(x, y)", "did you mean reach?"),
        ("reach(x, y", "unexpected '.'"),
        ("reach(x, y), z > 3", "variable z is bound by no positive atom"),
        ("SELECT foo FROM reach", "column foo is in no table"),
        ("SELECT x FROM nowhere", "nowhere"),
    ],
)
def test_questions_without_a_meaning(text: str, problem: str) -> None:
    with pytest.raises(ProgramError, match=problem.replace("?", r"\?")):
        made(1).query(text)


def test_a_question_can_be_given_little_time() -> None:
    links = {(a, b, 1) for a in range(60) for b in range(60)}
    session = Session(load(PROGRAM), facts={"link": links})
    with pytest.raises(RunawayError):
        session.query("link(a, b, _), link(c, d, _), link(e, f, _), a * b * c * d * e * f < 0", timeout=0.2)


def test_sql_sees_relations_that_may_hold_nil() -> None:
    program = load(".decl e(x:number, y:number?) .input e .output e")
    session = Session(program, facts={"e": [(1, None), (2, 3)]})
    assert sorted(session.query("SELECT x FROM e WHERE y IS NULL")) == [(1,)]
    assert sorted(session.query("SELECT COUNT(*) AS n FROM e")) == [(2,)]
