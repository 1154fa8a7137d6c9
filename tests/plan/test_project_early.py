"""Parts of bodies of which only some columns matter are found once, and bodies that have the same part share it."""

from __future__ import annotations

import random

import pytest
from tests.plan.test_lean import shown

from whence import Session, load
from whence.plan.project_early import project_early
from whence.prepared import prepare
from whence.reference import evaluate

BASE = ".decl a(x:number, y:number) .decl b(x:number, y:number) .decl c(x:number, y:number) .decl d(x:number) .input a, b, c, d\n"
BASE += ".decl t(x:number, y:number, z:number) .input t\n"
CASES = {
    "a chain of values that have to exist": (
        "far(x) :- a(x, y), b(y, z), c(z, w).",
        ["b!for(v0) :- b(v0, v1), c!for(v1)", "c!for(v0) :- c(v0, v1)", "far(x) :- a(x, y), b!for(y)"],
    ),
    "an atom with its tests": (
        "p(x, z) :- a(x, y), b(y, z), c(z, w), d(w), !d(z), w != z.",
        ["c!for(v0) :- c(v0, v1), Comparison, d(v1)", "p(x, z) :- a(x, y), b(y, z), !d(z), c!for(z)"],
    ),
    "a part that two rules have, whatever its variables are called": (
        "p(x) :- a(x, y), b(y, z), d(z). q(u, v) :- a(u, v), b(v, w), d(w).",
        [
            "b!for(v0) :- b(v0, v1), d(v1)",
            "p(x) :- a(x, y), b!for(y)",
            "q(u, v) :- a(u, v), b!for(v)",
        ],
    ),
    "a part below a recursion": (
        "r(x, y) :- a(x, y). r(x, z) :- r(x, y), a(y, z), c(z, _).",
        ["c!for(v0) :- c(v0, _)", "r(x, y) :- a(x, y)", "r(x, z) :- r(x, y), a(y, z), c!for(z)"],
    ),
}
LEFT_ALONE = {
    "nothing is asked for twice": "p(x) :- d(x), c(x, _).",
    "the atom is the recursion's own": "r(x) :- d(x). s(x, y) :- a(x, y), s(y, _). s(x, x) :- r(x).",
    "the value is looked at": "p(x, w) :- a(x, y), b(y, w).",
    "a functor might have no value": "p(x) :- a(x, y), b(y, z), z / y > 1.",
    "two columns matter, which may tell its rows": "p(x, z) :- a(x, y), t(x, y, _), b(y, z).",
    "it goes round": "p(x) :- a(x, y), b(y, z), c(z, x).",
}


@pytest.mark.parametrize(("rules", "expected"), CASES.values(), ids=CASES)
def test_parts_that_only_have_to_exist(rules: str, expected: list[str]) -> None:
    assert shown(project_early(load(BASE + rules), {})) == sorted(expected)


@pytest.mark.parametrize("rules", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_stays_as_it_is(rules: str) -> None:
    program = load(BASE + rules)
    assert project_early(program, {}) == program


def test_a_relation_that_is_much_larger_than_the_others_is_not_gone_through() -> None:
    program = load(BASE + "far(x) :- a(x, y), c(y, w).")
    assert project_early(program, {"a": 10, "c": 1000}) == program
    assert project_early(program, {"a": 1000, "c": 1000}) != program
    assert project_early(program, {"c": 1000}) != program


def test_long_chains_take_no_longer_than_their_links() -> None:
    rng = random.Random(1)
    links = [(rng.randrange(40), rng.randrange(40)) for _ in range(400)]
    text = ".decl e(x:number, y:number) .input e .output far\nfar(x) :- e(x, y), e(y, z), e(z, u), e(u, v), e(v, w).\n"
    facts = {"e": set(links)}
    session = Session(prepare(load(text), wanted=["far"], lean=True), facts=facts)
    assert set(session.relation("far")) == evaluate(load(text), facts)["far"]
    assert session.last_epoch["derivations"] <= 5 * len(facts["e"])
