"""Of atoms with equally many columns bound, the one of the smallest relation is joined first, if sizes are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whence import Session, Update, load
from whence.lang.order import Candidate
from whence.plan import compile_plan
from whence.plan.steps import Check, Join
from whence.prepared import prepare

TEXT = """
.decl r(x:number, y:number)
.decl s(y:number, z:number)
.decl t(x:number, z:number)
.input r, s, t
.output triangle
triangle(x, y, z) :- r(x, y), s(y, z), t(x, z).
"""


def order(sizes: Mapping[str, int] | None) -> list[str]:
    """What is joined when r changes."""
    plan = compile_plan(load(TEXT), None, sizes)
    (delta,) = (each for stratum in plan.strata for each in stratum.deltas if each.scan and each.scan.relation == "r")
    return [step.relation for step in delta.steps if isinstance(step, Join | Check)]


def test_the_smallest_relation_comes_first() -> None:
    assert order({"r": 10, "s": 1000, "t": 10}) == ["t", "s"]
    assert order({"r": 10, "s": 10, "t": 1000}) == ["s", "t"]


def test_without_sizes_the_text_decides() -> None:
    assert order(None) == order({"s": 5, "t": 5}) == ["s", "t"]


def test_a_relation_of_unknown_size_comes_last() -> None:
    assert order({"t": 10**9}) == ["t", "s"]


def test_what_is_bound_already_is_asked_before_anything_else_is_joined() -> None:
    text = """
    .decl a(x:number, y:number) .decl b(x:number, y:number, z:number) .decl c(y:number)
    .input a, b, c
    .output p
    p(x, z) :- a(x, y), b(x, y, z), c(y).
    """
    plan = compile_plan(load(text), None, {"a": 10, "b": 1000, "c": 100_000})
    deltas = [each for stratum in plan.strata for each in stratum.deltas if each.scan and each.scan.relation == "a"]
    joined = [step.relation for delta in deltas for step in delta.steps if isinstance(step, Join | Check)]
    assert joined == ["c", "b"]


def test_a_session_plans_with_the_sizes_of_its_facts_and_again_when_rules_change() -> None:
    links = {(1, at) for at in range(50)}
    session = Session(load(TEXT), facts={"r": {(0, 1)}, "s": links, "t": {(0, 7), (0, 99)}})
    assert set(session.relation("triangle")) == {(0, 1, 7)}
    session.apply(Update("+", "t", (0, at)) for at in range(200))
    assert len(session.relation("triangle")) == 50
    session.add_rule("triangle(y, x, z) :- s(y, z), t(x, z), r(x, y).")
    deltas = [each for stratum in session.plan.strata for each in stratum.deltas if each.scan]
    joined = {
        (delta.rule.name, delta.scan.relation if delta.scan else ""): [
            step.relation for step in delta.steps if isinstance(step, Join | Check)
        ]
        for delta in deltas
    }
    assert joined["triangle#1", "r"] == joined["triangle#2", "r"] == ["s", "t"]
    assert len(session.relation("triangle")) == 100


def test_the_order_is_what_is_passed_in() -> None:
    asked: list[tuple[list[tuple[str, tuple[int, ...]]], Mapping[str, int]]] = []

    def last_first(candidates: Sequence[Candidate], sizes: Mapping[str, int]) -> int:
        asked.append(([(each.atom.relation, each.bound) for each in candidates], sizes))
        return len(candidates) - 1

    prepared = prepare(load(TEXT), sizes={"s": 1}, join_order=last_first)
    assert ([("s", (0,)), ("t", (0,))], {"s": 1}) in asked
    (delta,) = (
        each for stratum in prepared.plan.strata for each in stratum.deltas if each.scan and each.scan.relation == "r"
    )
    assert [step.relation for step in delta.steps if isinstance(step, Join | Check)] == ["t", "s"]
    session = Session(prepared, facts={"r": [(1, 2)], "s": [(2, 3)], "t": [(1, 3), (1, 4)]})
    assert session.views()["triangle"] == {(1, 2, 3)}
    asked.clear()
    session.add_rule("triangle(x, x, x) :- r(x, y), s(y, x), t(x, x).")
    assert asked, "rules that come later are planned the same way"


def test_tests_come_as_soon_as_they_can_whatever_is_picked() -> None:
    text = (
        "p(x, z) :- r(x, y), s(y, z), x < 3, z > x. .decl r(x:number, y:number) .decl s(y:number, z:number) .input r, s"
    )
    plan = compile_plan(load(text), None, None, lambda candidates, sizes: 0)
    (delta,) = (each for stratum in plan.strata for each in stratum.deltas if each.scan and each.scan.relation == "r")
    assert [type(step).__name__ for step in delta.steps] == ["Compare", "Join", "Compare"]
