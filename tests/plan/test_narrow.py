"""Rows of a recursion that few partners ask for are kept by themselves, where that is worth its while."""

from __future__ import annotations

import pytest
from tests.plan.changes import random_epochs
from tests.plan.test_lean import shown

from whence import Session, load
from whence.plan import compile_plan
from whence.plan.narrow import narrow
from whence.prepared import prepare
from whence.reference import evaluate

BASE = """.decl new(v:number, o:number) .decl copy(v:number, w:number) .decl get(v:number, w:number)
.decl put(v:number, w:number) .decl f(x:number) .input new, copy, get, put, f
"""
SIZES = {"new": 20_000, "copy": 40_000, "get": 300, "put": 300, "f": 9_000}
BEGIN = "pt(v, o) :- new(v, o). pt(v, o) :- copy(v, w), pt(w, o). "
BEGUN = ["pt(v, o) :- copy(v, w), pt(w, o)", "pt(v, o) :- new(v, o)"]
CASES = {
    "few variables are loaded from and stored to": (
        BEGIN + "pt(v, o) :- get(v, w), pt(w, p), heap(p, o). heap(p, o) :- put(v, w), pt(v, p), pt(w, o).",
        [
            *BEGUN,
            "heap(p, o) :- put(v, w), pt!near(v, p), pt!near(w, o)",
            "pt!near(v0, v1) :- pt(v0, v1), get(v2, v0)",
            "pt!near(v0, v1) :- pt(v0, v1), put(v0, v2)",
            "pt!near(v0, v1) :- pt(v0, v1), put(v2, v0)",
            "pt(v, o) :- get(v, w), pt!near(w, p), heap(p, o)",
        ],
    ),
    "who asks for the same shares it": (
        BEGIN + "pt(v, o) :- get(v, w), pt(w, p), pt(p, o). pt(v, o) :- get(v, u), pt(u, o), pt(o, o).",
        [
            *BEGUN,
            "pt!near(v0, v1) :- pt(v0, v1), get(v2, v0)",
            "pt(v, o) :- get(v, u), pt!near(u, o), pt(o, o)",
            "pt(v, o) :- get(v, w), pt!near(w, p), pt(p, o)",
        ],
    ),
    "with constants, equal columns and columns that nobody looks at": (
        BEGIN + "pt(v, v) :- get(v, w), pt(w, w), pt(v, 1), pt(_, w), pt(2, 3).",
        [
            *BEGUN,
            "pt!near(v0) :- pt(_, v0), get(v1, v0)",
            "pt!near(v0) :- pt(v0, 1), get(v0, v1)",
            "pt!near(v0) :- pt(v0, v0), get(v1, v0)",
            "pt(v, v) :- pt(2, 3), pt!near(v), get(v, w), pt!near(w), pt!near(w)",
        ],
    ),
}
LEFT_ALONE = {
    "only one atom of the recursion": "pt(v, o) :- new(v, o). pt(v, o) :- copy(v, w), pt(w, p), get(p, o).",
    "nobody small asks": BEGIN + "pt(v, o) :- f(w), pt(v, w), pt(w, o).",
    "who asks has none of its variables": BEGIN + "pt(v, o) :- get(_, 1), pt(v, w), pt(w, o).",
    "it is below": "a(v, o) :- new(v, o). b(v, o) :- get(v, w), a(w, p), a(p, o). b(v, o) :- copy(v, w), b(w, o).",
    "who asks is derived": BEGIN + "few(x) :- get(x, x). pt(v, o) :- few(w), pt(v, w), pt(w, o).",
}


@pytest.mark.parametrize(("rules", "expected"), CASES.values(), ids=CASES)
def test_what_is_kept_by_itself(rules: str, expected: list[str]) -> None:
    assert shown(narrow(load(BASE + rules), SIZES)) == sorted(expected)


@pytest.mark.parametrize("rules", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_stays_as_it_is(rules: str) -> None:
    program = load(BASE + rules)
    assert narrow(program, SIZES) == program


def test_sizes_have_to_be_known_and_to_differ() -> None:
    program = load(BASE + CASES["who asks for the same shares it"][0])
    small = {name: size // 50 for name, size in SIZES.items()}
    for sizes in ({}, small, dict.fromkeys(SIZES, 10_000), {"get": 300}):
        assert narrow(program, sizes) == program


def test_only_where_nobody_asks_why() -> None:
    program = load(BASE + CASES["who asks for the same shares it"][0])
    names = {lean: compile_plan(program, sizes=SIZES, lean=lean).program.relations for lean in (True, False)}
    assert [any("!near" in name for name in names[lean]) for lean in (True, False)] == [True, False]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(5))
def test_the_rows_are_the_same_whatever_changes(case: str, seed: int) -> None:
    program = load(BASE + CASES[case][0])
    session = Session(prepare(program, sizes=SIZES, lean=True))
    assert any("!near" in name for name in session.plan.program.relations)
    for updates, base in random_epochs(seed, dict.fromkeys(("new", "copy", "get", "put"), 2), values=6):
        session.apply(updates)
        expected = evaluate(program, base)
        assert session.views() == {name: expected[name] for name in session.views()}
