"""Relations whose rows have one derivation each, whatever the data."""

from __future__ import annotations

import pytest

from whence import Session, Update, load
from whence.plan import compile_plan
from whence.reference import evaluate

BASE = ".decl e(x:number, y:number)\n.decl f(x:number)\n.input e\n.input f\n"


@pytest.mark.parametrize(
    ("rules", "is_distinct"),
    [
        ("p(x, y, z) :- e(x, y), e(y, z).", True),
        ("p(x, y + 1, y) :- e(x, y), x < 3.", True),
        ("p(x, y, z) :- e(x, y), z = x + y, !f(z).", True),
        ("p(1) :- e(1, 2).", True),
        ("p(y, x, x) :- e(x, y), q(x, y). q(x, z) :- p(x, y, z). q(x, y) :- e(x, y).", True),
        ("p(x, z) :- e(x, y), e(y, z).", False),
        ("p(x, y + 1) :- e(x, y).", False),
        ("p(x) :- e(x, _).", False),
        ("p(x, y) :- e(x, y). p(y, x) :- e(x, y).", False),
        ("p(x, y) :- e(x, y). p(1, 2).", False),
        ("p(x) :- f(x), y = range(0, x), y < 5.", False),
    ],
)
def test_heads_that_tell_their_derivations_are_distinct(rules: str, is_distinct: bool) -> None:
    plan = compile_plan(load(BASE + rules + "\n.output p"))
    assert any("p" in stratum.distinct for stratum in plan.strata) == is_distinct


def test_rows_that_were_not_looked_up_at_first_are_maintained_like_others() -> None:
    rules = (
        "pair(x, y, z) :- e(x, y), e(y, z).\n"
        "open(x, z) :- pair(x, _, z), !pair(z, x, x).\n"
        "closed(x) :- f(x), pair(x, x, x).\n"
    )
    program = load(BASE + rules + ".output pair, open, closed")
    base = {"e": {(at % 7, at * at % 5) for at in range(30)}, "f": {(at,) for at in range(4)}}
    session = Session(program, facts=base)
    assert session.views() == evaluate(program, base)
    for op, row in [("-", (0, 0)), ("+", (0, 6)), ("+", (6, 6)), ("+", (0, 0)), ("-", (1, 1)), ("-", (6, 6))]:
        session.apply([Update(op, "e", row)])
        (base["e"].add if op == "+" else base["e"].discard)(row)
        assert session.views() == evaluate(program, base)
    session.add_rule("pair(x, x, x) :- f(x).")
    program = load(BASE + rules + "pair(x, x, x) :- f(x).\n.output pair, open, closed")
    assert session.views() == evaluate(program, base)
    session.drop_rule("pair#1")
    program = load(BASE + rules.partition("\n")[2] + "pair(x, x, x) :- f(x).\n.output pair, open, closed")
    assert session.views() == evaluate(program, base)
