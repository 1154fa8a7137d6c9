"""A choice depends on the program as written, not on what the planner makes of it."""

from __future__ import annotations

import pytest

from whence import Session, Update, load
from whence.reference import evaluate
from whence.session import STRATEGIES

# The 1 comes before the 0; the wildcards of the first rule make the planner put it elsewhere.
TEXT = """
.decl e(x:number, y:number)
.decl f(x:number)
.decl w(x:number, y:number, z:number)
.input e, f, w
t(x) :- w(x, 1, _), !w(_, x, _).
q(0) :- e(x, x), f(x).
.decl pick(x:number, y:number) choice-domain x, y
pick(x, y) :- e(x, y).
p(x, y) :- pick(x, y), !f(x).
"""
EDGES = [(0, 2), (1, 2), (3, 1)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_values_written_in_other_rules_are_preferred_in_the_order_of_writing(strategy: str) -> None:
    program = load(TEXT)
    session = Session(program, strategy=strategy)
    session.apply([Update("+", "e", row) for row in EDGES])
    assert set(session.relation("pick")) == {(1, 2), (3, 1)}
    assert session.views() == evaluate(program, {"e": EDGES})
    assert set(Session(program, facts={"e": EDGES}, wanted=["p"], strategy=strategy).relation("p")) == {(1, 2), (3, 1)}


def test_rules_that_come_and_go_bring_their_preferences() -> None:
    session = Session(load(TEXT), facts={"e": EDGES})
    changes = session.drop_rule("t#1")  # now the 0 is the first
    assert (changes.deleted["pick"], changes.inserted["pick"]) == ([(1, 2)], [(0, 2)])
    assert session.views() == evaluate(session.program, {"e": EDGES})
    session.add_rule("t(3) :- f(1).")
    assert session.views() == evaluate(session.program, {"e": EDGES})
