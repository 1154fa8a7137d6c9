"""What one rule asks of a relation is asked where the relation is derived, if it is little."""

from __future__ import annotations

import pytest
from tests.plan.changes import random_epochs
from tests.plan.test_lean import shown

from whence import Session, load
from whence.plan import compile_plan
from whence.plan.ask_early import ask_early
from whence.prepared import prepare
from whence.reference import evaluate

BASE = """.decl big(x:number, y:number) .decl more(x:number, y:number) .decl few(x:number, y:number) .decl one(x:number)
.input big, more, few, one
"""
SIZES = {"big": 50_000, "more": 40_000, "few": 200, "one": 90}
WANTED = ".output top "
CASES = {
    "all variables are asked for": (
        "mid(x, z) :- big(x, y), more(y, z). top(x, y) :- few(y, x), mid(x, y).",
        ["mid!asked(x, z) :- big(x, y), more(y, z), few(z, x)", "top(x, y) :- few(y, x), mid!asked(x, y)"],
    ),
    "by every rule that answers": (
        "mid(x, y) :- big(y, x). mid(z, 1) :- more(z, _), z > 2. top(x, x) :- mid(x, y), few(x, y), !one(y).",
        [
            "mid!asked(x, y) :- big(y, x), few(x, y)",
            "mid!asked(z, 1) :- more(z, _), Comparison, few(z, 1)",
            "top(x, x) :- mid!asked(x, y), !one(y), few(x, y)",
        ],
    ),
    "what is asked asks on": (
        "low(x) :- big(x, _). mid(x) :- low(x), more(x, x). top(x, x) :- one(x), mid(x).",
        [
            "low!asked(x) :- big(x, _), one(x)",
            "mid!asked(x) :- low!asked(x), more(x, x), one(x)",
            "top(x, x) :- one(x), mid!asked(x)",
        ],
    ),
    "of recursions below": (
        "r(x, y) :- big(x, y). r(x, z) :- r(x, y), big(y, z). "
        "mid(x, z) :- r(x, y), big(y, z). top(x, y) :- mid(x, y), few(x, y).",
        [
            "mid!asked(x, z) :- r(x, y), big(y, z), few(x, z)",
            "r(x, y) :- big(x, y)",
            "r(x, z) :- r(x, y), big(y, z)",
            "top(x, y) :- mid!asked(x, y), few(x, y)",
        ],
    ),
}
LEFT_ALONE = {
    "two rules look at it": "mid(x, y) :- big(x, y). top(x, y) :- few(x, y), mid(x, y). top(x, y) :- mid(x, y), one(x).",
    "it is looked at twice": "mid(x, y) :- big(x, y). top(x, y) :- few(x, y), mid(x, y), mid(y, x).",
    "it is wanted": "mid(x, y) :- big(x, y). top(x, y) :- few(x, y), mid(x, y). .output mid",
    "it is put in, too": ".decl mid(x:number, y:number) .input mid mid(x, y) :- big(x, y). top(x, y) :- few(x, y), mid(x, y).",
    "one variable is not asked for": "mid(x, y) :- big(x, y). top(x, y) :- one(x), mid(x, y).",
    "who asks has others": "mid(x) :- big(x, _). top(x, y) :- few(x, y), mid(x).",
    "who asks has many": "mid(x, y) :- big(x, y). top(x, y) :- more(x, y), mid(x, y).",
    "who asks is derived": "few(x, y) :- big(x, y). mid(x, y) :- big(x, y). top(x, y) :- few(x, y), mid(x, y).",
    "the answers are as few": "mid(x, y) :- few(x, y). top(x, y) :- few(x, y), mid(x, y).",
    "an answer is computed": "mid(x, y + 1) :- big(x, y). top(x, y) :- few(x, y), mid(x, y).",
    "recursive": "mid(x, y) :- big(x, y). mid(x, z) :- mid(x, y), big(y, z). top(x, y) :- few(x, y), mid(x, y).",
    "it must not be there": "mid(x, y) :- big(x, y). top(x, y) :- few(x, y), !mid(x, y).",
    "it is counted": "mid(x, y) :- big(x, y). top(x, n) :- one(x), n = count : { few(x, y), mid(x, y) }.",
    "of a fact": "mid(1, 2). mid(x, y) :- big(x, y). top(x, y) :- few(x, y), mid(x, y).",
}


@pytest.mark.parametrize(("rules", "expected"), CASES.values(), ids=CASES)
def test_what_is_asked_early(rules: str, expected: list[str]) -> None:
    assert shown(ask_early(load(BASE + rules + WANTED), frozenset(["top"]), SIZES)) == sorted(expected)


@pytest.mark.parametrize("rules", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_stays_as_it_is(rules: str) -> None:
    program = load(BASE + rules + WANTED)
    assert ask_early(program, frozenset(program.outputs), SIZES) == program


def test_sizes_have_to_be_known_and_to_differ() -> None:
    program = load(BASE + CASES["all variables are asked for"][0] + WANTED)
    for sizes in ({}, {"few": 10}, {name: size // 60 for name, size in SIZES.items()}, dict.fromkeys(SIZES, 10_000)):
        assert ask_early(program, frozenset(["top"]), sizes) == program


def test_only_where_nobody_asks_why_or_for_all() -> None:
    program = load(BASE + CASES["all variables are asked for"][0] + WANTED)
    for wanted, lean, expected in ((["top"], True, True), (["top"], False, False), (None, True, False)):
        relations = compile_plan(program, wanted, SIZES, lean=lean).program.relations
        assert ("mid!asked" in relations) == expected


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(5))
def test_the_rows_are_the_same_whatever_changes(case: str, seed: int) -> None:
    program = load(BASE + CASES[case][0] + WANTED)
    session = Session(prepare(program, wanted=["top"], sizes=SIZES, lean=True))
    assert "mid!asked" in session.plan.program.relations
    for updates, base in random_epochs(seed, {"big": 2, "more": 2, "few": 2, "one": 1}, values=4):
        session.apply(updates)
        assert session.views() == {"top": evaluate(program, base)["top"]}
