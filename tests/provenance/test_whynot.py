"""What keeps a fact from holding, and repairs that really repair."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.programs import DERIVED, Run, runs
from tests.provenance.sessions import SOME, base_of, session_after

from whence import Session, load
from whence.provenance.derive import CannotExplain
from whence.provenance.graph import Fact
from whence.provenance.repairs import Effort
from whence.provenance.whynot import whynot
from whence.reference import evaluate

REACH = """
.decl link(x:symbol, y:symbol)
.decl down(x:symbol)
.input link
.input down
r1: reach(x, y) :- link(x, y), !down(y).
r2: reach(x, z) :- reach(x, y), link(y, z), !down(z).
.output reach
"""


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@SOME
@given(runs(), st.data())
def test_repairs_make_the_fact_true_in_a_reevaluation(run: Run, data: st.DataObject) -> None:
    session = session_after(run)
    base = base_of(session)
    before = session.views()
    name = data.draw(st.sampled_from(sorted(DERIVED)))
    row = tuple(data.draw(st.integers(0, 4)) for _ in range(DERIVED[name]))
    if row in before[name]:
        return
    answer = whynot(session, name, row, effort=Effort(changes=3, trials=200))
    for repair in answer.repairs:
        after = {each: set(rows) for each, rows in base.items()}
        for fact in repair.insertions:
            after.setdefault(fact.relation, set()).add(fact.tuple)
        for fact in repair.deletions:
            after[fact.relation].remove(fact.tuple)
        assert row in evaluate(run.program, after)[name]
    assert [len(each) for each in answer.repairs] == sorted(len(each) for each in answer.repairs)
    assert session.views() == before


def test_the_smallest_repair_of_reachability_is_found() -> None:
    """Against brute force over all sets of up to two insertions and deletions, on graphs of four nodes."""
    nodes = "abcd"
    program = load(REACH)
    for links in [("ab", "cd"), ("ab", "bc"), ("ba",), ("ab", "bc", "cd")]:
        for down in ["", "d", "c"]:
            facts = {"link": {tuple(each) for each in links}, "down": {(each,) for each in down}}
            if ("a", "d") in evaluate(program, facts)["reach"]:
                continue
            changes = [Fact("link", pair) for pair in product(nodes, repeat=2)] + [Fact("down", (n,)) for n in down]
            sizes = [
                size
                for size in (1, 2)
                for chosen in combinations(changes, size)
                if ("a", "d") in evaluate(program, toggled(facts, chosen))["reach"]
            ]
            repairs = whynot(Session(program, facts=facts), "reach", ("a", "d"), repairs=1).repairs
            assert len(repairs[0]) == min(sizes)


def toggled(facts, chosen) -> dict[str, set]:
    after = {name: set(rows) for name, rows in facts.items()}
    for fact in chosen:
        after[fact.relation] ^= {fact.tuple}
    return after


def test_the_closest_attempt_of_each_rule() -> None:
    session = Session(load(REACH), facts={"link": [("a", "b"), ("b", "c")], "down": [("c",)]})
    answer = whynot(session, "reach", ("a", "c"))
    first, second = answer.attempts
    assert [fact.tuple for fact in second.found] == [("a", "b"), ("b", "c")]
    assert (second.missing, second.present) == ((), (Fact("down", ("c",)),))
    assert first.rule == "r1"
    assert {each.relation for each in first.missing} == {"link"}
    assert answer.repairs[0].deletions == (Fact("down", ("c",)),)


def test_a_derived_blocker_loses_all_its_proofs() -> None:
    text = (
        ".decl e(x:number) .input e .decl f(x:number) .input f .decl g(x:number) .input g\n"
        "bad(x) :- e(x). bad(x) :- f(x). good(x) :- g(x), !bad(x). .output good"
    )
    session = Session(load(text), facts={"e": [(1,)], "f": [(1,)], "g": [(1,)]})
    (repair,) = whynot(session, "good", (1,)).repairs
    assert repair.deletions == (Fact("e", (1,)), Fact("f", (1,)))


def test_comparisons_that_fail_are_shown_and_not_repaired() -> None:
    text = ".decl e(x:number) .input e\nbig(x) :- e(x), x > 10. .output big"
    answer = whynot(Session(load(text), facts={"e": [(3,)]}), "big", (3,))
    assert answer.attempts[0].failed == ("x > 10",)
    assert answer.repairs == ()


def test_a_loser_names_the_winner() -> None:
    pairs = ".decl e(x:number, y:number) .input e\n"
    choice = f"{pairs}.decl pick(x:number, y:number) choice-domain x\npick(x, y) :- e(x, y). .output pick"
    answer = whynot(Session(load(choice), facts={"e": [(1, 2), (1, 3)]}), "pick", (1, 3))
    assert answer.beaten_by == (Fact("pick", (1, 2)),)
    rules = "top(x, y) :- e(x, y).\ntop(x, y) <= top(x, z) :- y < z. .output top"
    best = f"{pairs}.decl top(x:number, y:number)\n{rules}"
    answer = whynot(Session(load(best), facts={"e": [(1, 2), (1, 3)]}), "top", (1, 2))
    assert answer.beaten_by == (Fact("top", (1, 3)),)


def test_what_holds_is_refused() -> None:
    with pytest.raises(CannotExplain, match="holds"):
        whynot(Session(load(REACH), facts={"link": [("a", "b")]}), "reach", ("a", "b"))


def test_columns_that_do_not_matter_are_filled_from_facts_that_are_there() -> None:
    text = ".decl link(x:symbol, y:symbol, cost:number) .input link\nreach(x, y) :- link(x, y, _). .output reach"
    session = Session(load(text), facts={"link": [("a", "b", 7)]})
    (repair,) = whynot(session, "reach", ("b", "a")).repairs
    assert repair.insertions == (Fact("link", ("b", "a", 7)),)
