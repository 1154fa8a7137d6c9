"""Joins that go round and that several rules have are found once, and no others."""

from __future__ import annotations

import random

import pytest
from tests.plan.test_lean import shown

from whence import Session, load
from whence.plan import compile_plan
from whence.plan.share_joins import share_joins
from whence.prepared import prepare
from whence.reference import evaluate

BASE = ".decl e(x:number, y:number) .decl r(x:number, y:number) .decl f(x:number) .input e, r, f\n"
TRIANGLE = "e(x, y), e(y, z), e(z, x)"
FOUND = "e!shared(x, y, z) :- e(x, y), e(y, z), e(z, x)"
CASES = {
    "whatever the variables are called, and however the atoms are ordered": (
        f"p(x, y, z) :- {TRIANGLE}. q(u, v) :- e(w, u), f(w), e(u, v), e(v, w), u != w.",
        [FOUND, "p(x, y, z) :- e!shared(x, y, z)", "q(u, v) :- e!shared(w, u, v), Comparison, f(w)"],
    ),
    "only columns that are looked at, and as few as it takes": (
        f"p(x) :- {TRIANGLE}. q(u) :- e(u, v), e(v, w), e(w, u), f(v).",
        [
            "e!shared(x, y) :- e(x, y), e(y, z), e(z, x)",
            "p(x) :- e!shared(x, y)",
            "q(u) :- e!shared(u, v), f(v)",
        ],
    ),
    "a corner is a corner": (
        f"p(x) :- {TRIANGLE}. q(v) :- e(u, v), e(v, w), e(w, u). s(w) :- e(u, v), e(v, w), e(w, u), r(w, w).",
        [
            "e!shared(x) :- e(x, y), e(y, z), e(z, x)",
            "p(x) :- e!shared(x)",
            "q(v) :- e!shared(v)",
            "s(w) :- e!shared(w), r(w, w)",
        ],
    ),
    "both ways": (
        "p(x, y) :- e(x, y), r(y, x). q(x) :- e(x, y), r(y, x), f(y).",
        ["e!shared(x, y) :- e(x, y), r(y, x)", "p(x, y) :- e!shared(x, y)", "q(x) :- e!shared(x, y), f(y)"],
    ),
    "a long way round": (
        "p(x) :- e(x, y), e(y, z), e(z, u), e(u, v), e(v, w), e(w, x)."
        " q(x) :- e(x, y), e(y, z), e(z, u), e(u, v), e(v, w), e(w, x).",
        [
            "e!shared(x) :- e(x, y), e(y, z), e(z, u), e(u, v), e(v, w), e(w, x)",
            "p(x) :- e!shared(x)",
            "q(x) :- e!shared(x)",
        ],
    ),
    "tests and values belong to it, if all that share it have them": (
        "p(x, n) :- e(x, y), r(y, x), !f(x), x < y, n = x + y. q(m) :- e(u, v), r(v, u), !f(u), u < v, m = u + v, f(v).",
        [
            "e!shared(x, y, n) :- e(x, y), !f(x), Comparison, Comparison, r(y, x)",
            "p(x, n) :- e!shared(x, y, n)",
            "q(m) :- e!shared(u, v, m), f(v)",
        ],
    ),
    "a larger one has a smaller one in it": (
        f"p(x) :- {TRIANGLE}. q(x) :- {TRIANGLE}, r(u, x), r(u, y). s(x) :- {TRIANGLE}, r(u, x), r(u, y), f(z).",
        [
            FOUND,
            "e!shared(x, z) :- e!shared(x, y, z), r(u, x), r(u, y)",
            "p(x) :- e!shared(x, y, z)",
            "q(x) :- e!shared(x, z)",
            "s(x) :- e!shared(x, z), f(z)",
        ],
    ),
    "a larger one that only tests a smaller one": (
        f"p(x) :- {TRIANGLE}. q(x) :- {TRIANGLE}, r(x, y), f(x). s(x) :- {TRIANGLE}, r(x, y), f(x), f(z).",
        [
            FOUND,
            "p(x) :- e!shared(x, y, z)",
            "q(x) :- e!shared(x, y, z), r(x, y), f(x)",
            "s(x) :- e!shared(x, y, z), r(x, y), f(x), f(z)",
        ],
    ),
    "twice in one body": (
        f"p(x, y) :- {TRIANGLE}. q(x, u) :- {TRIANGLE}, r(x, u), e(u, v), e(v, w), e(w, u).",
        [
            "e!shared(x, y) :- e(x, y), e(y, z), e(z, x)",
            "p(x, y) :- e!shared(x, y)",
            "q(x, u) :- e!shared(u, v), e!shared(x, y), r(x, u)",
        ],
    ),
    "below a recursion": (
        f"p(x, y) :- {TRIANGLE}. c(x, y) :- f(x), r(x, y). c(x, z) :- c(x, y), e(y, z), e(z, u), e(u, y).",
        [
            "c(x, y) :- f(x), r(x, y)",
            "c(x, z) :- e!shared(y, z), c(x, y)",
            "e!shared(x, y) :- e(x, y), e(y, z), e(z, x)",
            "p(x, y) :- e!shared(x, y)",
        ],
    ),
}
LEFT_ALONE = {
    "a path keeps all that it looks at": "p(x, z) :- e(x, y), e(y, z). q(x, z) :- e(x, y), e(y, z), f(x).",
    "a path of which few columns matter": "p(x) :- e(x, y), e(y, z). q(x) :- e(x, y), e(y, z), f(z).",
    "a path with a test at each step": (
        "p(x, z) :- e(x, y), r(x, y), e(y, z), r(y, z). q(x) :- e(x, y), r(x, y), e(y, z), r(y, z)."
    ),
    "two that go round and meet in one value": (
        "p(y) :- e(x, y), e(y, x), r(y, z), r(z, y). q(y) :- e(x, y), e(y, x), r(y, z), r(z, y), f(x)."
    ),
    "a filter is read as quickly as its helper": "p(x, y) :- e(x, y), f(x), f(y). q(x) :- e(x, y), f(x), f(y), r(y, x).",
    "nobody asks for all of it": f"p(x) :- {TRIANGLE}, f(x). q(x) :- {TRIANGLE}, r(x, _). s(x) :- {TRIANGLE}, x < 3.",
    "a constant leaves little": f"p(x) :- {TRIANGLE}. q(x) :- e(x, 1), e(1, z), e(z, x).",
    "only one has it": f"p(x) :- {TRIANGLE}. q(x) :- e(x, y), e(y, z), e(x, z).",
    "variables that are the same are not those that differ": f"p(x, y) :- {TRIANGLE}. q(x) :- e(x, x), f(x).",
    "the recursion derives it": (
        "c(x, y) :- e(x, y). c(x, z) :- c(x, y), c(y, z), c(z, x). c(z, x) :- c(x, y), c(y, z), c(z, x)."
    ),
    "an aggregate is about it": f"p(x) :- {TRIANGLE}. q(n) :- n = count : {{ {TRIANGLE} }}.",
}


@pytest.mark.parametrize(("rules", "expected"), CASES.values(), ids=CASES)
def test_joins_that_rules_share(rules: str, expected: list[str]) -> None:
    assert shown(share_joins(load(BASE + rules))) == sorted(expected)


@pytest.mark.parametrize("rules", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_stays_as_it_is(rules: str) -> None:
    program = load(BASE + rules)
    assert share_joins(program) == program


def test_a_search_among_many_that_are_alike_comes_to_an_end() -> None:
    odd = ", ".join(f"e(v{at}, v{(at + 1) % 9})" for at in range(9))
    even = ", ".join(f"e(a{one}, b{two}), e(b{two}, a{one})" for one in range(5) for two in range(5))
    program = load(f"{BASE}p(v0) :- {odd}. q(a0) :- {even}.")
    assert share_joins(program) == program


def test_only_where_nobody_asks_why() -> None:
    program = load(BASE + f"p(x, y) :- {TRIANGLE}. q(x) :- {TRIANGLE}, f(x).\n.output p, q\n")
    assert not any("!" in name for name in compile_plan(program).program.relations)
    assert any("!shared" in name for name in compile_plan(program, program.outputs, lean=True).program.relations)


def test_what_is_shared_is_looked_for_once() -> None:
    rng = random.Random(2)
    facts = {
        "e": {(rng.randrange(60), rng.randrange(60)) for _ in range(600)},
        "r": {(rng.randrange(60), rng.randrange(60)) for _ in range(600)},
        "f": {(at,) for at in range(0, 60, 2)},
    }
    text = BASE + f"p(x, y, z) :- {TRIANGLE}.\nq(x) :- {TRIANGLE}, f(x), !f(y).\ns(x, u) :- {TRIANGLE}, r(z, u).\n"
    program = load(text + ".output p, q, s\n")
    session = Session(prepare(program, wanted=program.outputs, lean=True), facts=facts)
    expected = evaluate(program, facts)
    assert all(set(session.relation(name)) == expected[name] for name in program.outputs)
    session.apply([("-", "e", row) for row in sorted(facts["e"])[::2]])
    expected = evaluate(program, facts | {"e": set(sorted(facts["e"])[1::2])})
    assert all(set(session.relation(name)) == expected[name] for name in program.outputs)
