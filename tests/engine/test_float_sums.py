"""Sums of floats are exact: those of evaluating anew, whatever came and went, and none where a group has no rows."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from whence import Program, Session, Update, load
from whence.reference import evaluate
from whence.session import STRATEGIES

RULES = load("""
.decl m(k:number, x:float) .input m
.decl s(k:number, total:float)
.decl a(k:number, mean:float)
.decl all(total:float)
.decl asked(k:number, total:float)
.decl k(k:number) .input k
s(k, t) :- m(k, _), t = sum x : { m(k, x) }.
a(k, t) :- m(k, _), t = mean x : { m(k, x) }.
all(t) :- t = sum x : { m(_, x) }.
asked(k, t) :- k(k), t = sum x : { m(k, x) }.
.output s, a, all, asked
""")
SQL = load(
    "CREATE TABLE m(k BIGINT, x DOUBLE); CREATE VIEW s AS SELECT k, SUM(x) AS total FROM m GROUP BY k;", dialect="sql"
)
# Values whose sum depends on the order in which they are added, as floats.
VALUES = (0.1, 0.2, 0.3, 1e16, -1e16, 1.0, 2.5, -0.5, 1e-300, 1e308, -1e308, -0.1)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("program", [RULES, SQL], ids=["rules", "SQL"])
def test_a_group_that_empties_has_no_sum(program: Program, strategy: str) -> None:
    session = Session(program, strategy=strategy)
    session.apply([Update("+", "m", (4, 0.5)), Update("+", "m", (5, 0.5))])
    changes = session.apply([Update("-", "m", (4, 0.5))])
    assert session.views()["s"] == {(5, 0.5)}
    assert (changes.deleted["s"], changes.inserted.get("s", [])) == ([(4, 0.5)], [])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_group_that_is_asked_for_has_a_sum_of_zero(strategy: str) -> None:
    session = Session(RULES, strategy=strategy, facts={"k": [(4,)], "m": [(4, 0.5)]})
    session.apply([Update("-", "m", (4, 0.5))])
    assert (session.views()["asked"], session.views()["all"], session.views()["a"]) == ({(4, 0.0)}, {(0.0,)}, set())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(6))
def test_sums_do_not_drift(seed: int, strategy: str) -> None:
    random = Random(seed)
    session = Session(RULES, strategy=strategy, facts={"k": [(0,), (1,)]})
    rows: set[tuple[int, float]] = set()
    for _ in range(25):
        updates = []
        for _ in range(random.randint(1, 5)):
            row = (random.randrange(3), random.choice(VALUES[: 2 + 2 * seed]))  # few of them: groups empty
            op = "-" if row in rows else "+"
            (rows.add if op == "+" else rows.remove)(row)
            updates.append(Update(op, "m", row))
        session.apply(updates)
        views = session.views()
        assert views == evaluate(RULES, {"m": rows, "k": {(0,), (1,)}})
        of = {key: [x for k, x in rows if k == key] for key in {k for k, _ in rows}}
        assert views["s"] == {(key, float(sum(map(Fraction, each)))) for key, each in of.items()}
