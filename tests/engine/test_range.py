"""`range` is maintained like anything else, and a range without end meets the limits."""

from __future__ import annotations

import pytest

from whence import Session, Update, load
from whence.limits import Limits, RunawayError
from whence.reference import evaluate

TEXT = """
.decl span(from:number, to:number)
.decl taken(n:number)
.decl steps(f:float, t:float, s:float)
.input span, taken, steps
.output free, odd, part
free(n) :- span(a, b), n = range(a, b), !taken(n).
odd(n) :- span(a, b), taken(m), n = range(a, b, 2), n != m.
part(x, n) :- steps(f, t, s), x = range(f, t, s), n = count : { taken(m), m = range(0, 3) }.
member(m) :- taken(m), span(a, b), m = range(a, b).
.output member
"""


def test_ranges_are_maintained_through_every_literal() -> None:
    program = load(TEXT)
    session = Session(program)
    assert all(stratum.native for stratum in session.plan.strata)
    base: dict[str, set[object]] = {}
    for op, relation, row in [
        ("+", "span", (3, 7)),
        ("+", "taken", (4,)),
        ("+", "span", (6, 2)),
        ("+", "steps", (0.0, 1.0, 0.25)),
        ("+", "taken", (2,)),
        ("-", "taken", (4,)),
        ("+", "steps", (1.0, 1.0, 0.0)),
        ("+", "span", (-(2**63), 3 - 2**63)),
        ("-", "span", (3, 7)),
        ("-", "steps", (0.0, 1.0, 0.25)),
        ("-", "taken", (2,)),
    ]:
        rows = base.setdefault(relation, set())
        (rows.add if op == "+" else rows.remove)(row)
        session.apply([Update(op, relation, row)])
        assert session.views() == evaluate(program, base)  # type: ignore[arg-type]


def test_a_range_longer_than_a_portion() -> None:
    session = Session(load(".decl n(x:unsigned)\n.input n\n.output m\nm(x, y) :- n(x), y = range(x, 100000).\n"))
    session.apply([Update("+", "n", (0,)), Update("+", "n", (99_990,))])
    assert len(session.relation("m")) == 100_010
    assert len(session.apply([Update("-", "n", (0,))]).deleted["m"]) == 100_000


def test_a_range_that_does_not_end_stops_at_the_limit() -> None:
    with pytest.raises(RunawayError, match="p#1"):
        Session(load("p(x) :- x = range(0, 1000000000000).\n.output p\n"), limits=Limits(max_tuples=200_000))


def test_a_product_that_is_too_large_stops_within_its_round() -> None:
    text = ".decl a(x:number)\n.input a\n.output p\np(x, y) :- a(x), a(y).\n"
    with pytest.raises(RunawayError, match="stopped at"):
        Session(load(text), facts={"a": [(at,) for at in range(3000)]}, limits=Limits(max_tuples=200_000))
