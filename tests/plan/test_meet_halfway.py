"""Long joins inside a recursion are found in two steps, if that leaves out a variable."""

from __future__ import annotations

import pytest
from tests.plan.changes import random_epochs
from tests.plan.test_lean import shown

from whence import Session, load
from whence.plan import compile_plan
from whence.plan.meet_halfway import meet_halfway
from whence.prepared import prepare
from whence.reference import evaluate

BASE = ".decl e(x:number, y:number) .decl f(x:number, y:number) .input e, f "
BEGIN = "a(x, y) :- e(x, y). b(x, y) :- f(x, y). b(x, y) :- a(x, y). "
BEGUN = ["a(x, y) :- e(x, y)", "b(x, y) :- a(x, y)", "b(x, y) :- f(x, y)"]
CASES = {
    "what comes last is left out first": (
        BEGIN + "a(x, y) :- a(u, x), b(u, v), a(v, y).",
        [*BEGUN, "a(x, y) :- a(u, x), b!by(u, y)", "b!by(v0, v2) :- b(v0, v1), a(v1, v2)"],
    ),
    "one helper is joined with another": (
        BEGIN + "a(x, y) :- a(x, u), b(u, v), a(v, w), b(w, y).",
        [
            *BEGUN,
            "a!by(v0, v2) :- a(v0, v1), b(v1, v2)",
            "a(x, y) :- a(x, u), b!by(u, y)",
            "b!by(v0, v2) :- b(v0, v1), a!by(v1, v2)",
        ],
    ),
    "rules with the same half share it": (
        BEGIN + "a(x, y) :- b(x, u), a(u, v), b(v, y). b(x, y) :- a(y, u), a(u, v), b(v, x).",
        [
            *BEGUN,
            "a!by(v0, v2) :- a(v0, v1), b(v1, v2)",
            "a(x, y) :- b(x, u), a!by(u, y)",
            "b(x, y) :- a(y, u), a!by(u, x)",
        ],
    ),
    "with constants, and columns that nobody looks at": (
        BEGIN + "a(x, 1) :- b(x, u), a(u, v), b(v, 2), a(_, x).",
        [
            *BEGUN,
            "a(x, 1) :- b!by!by(x), a(_, x)",
            "b!by(v1) :- b(v0, 2), a(v1, v0)",
            "b!by!by(v1) :- b!by(v0), b(v1, v0)",
        ],
    ),
    "a circle": (
        BEGIN + "a(1, 1) :- a(u, v), b(v, u), a(u, u).",
        [*BEGUN, "a!by(v0) :- a(v0, v1), b(v1, v0)", "a(1, 1) :- a!by(u), a(u, u)"],
    ),
}
LEFT_ALONE = {
    "two atoms": BEGIN + "a(x, y) :- a(x, u), b(u, y).",
    "an atom from below may be small": BEGIN + "a(x, y) :- e(u, x), b(u, v), a(v, y).",
    "all variables are looked at": BEGIN + "a(x, y) :- a(x, y), b(y, x), a(y, y).",
    "what is left is wider": "c(x, y, z) :- e(x, y), f(y, z). c(x, y, z) :- c(x, u, z), c(u, y, v), c(v, z, x).",
    "a test": BEGIN + "a(x, y) :- a(u, x), b(u, v), a(v, y), v < 3.",
    "not recursive": "a(x, y) :- e(x, y). b(x, y) :- f(x, y). c(x, y) :- a(u, x), b(u, v), a(v, y).",
    "they have nothing in common": BEGIN + "a(x, y) :- a(x, u), b(v, y), a(w, w).",
}


@pytest.mark.parametrize(("rules", "expected"), CASES.values(), ids=CASES)
def test_what_is_found_in_two_steps(rules: str, expected: list[str]) -> None:
    assert shown(meet_halfway(load(BASE + rules))) == sorted(expected)


@pytest.mark.parametrize("rules", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_stays_as_it_is(rules: str) -> None:
    program = load(BASE + rules)
    assert meet_halfway(program) == program


def test_only_where_nobody_asks_why() -> None:
    program = load(BASE + CASES["what comes last is left out first"][0])
    names = {lean: compile_plan(program, lean=lean).program.relations for lean in (True, False)}
    assert [any("!by" in name for name in names[lean]) for lean in (True, False)] == [True, False]


def test_dense_relations_are_not_gone_over_four_variables_at_once() -> None:
    program = load(BASE + CASES["what comes last is left out first"][0])
    facts = {name: [(x, y) for x in range(30) for y in range(30)] for name in ("e", "f")}
    derivations = [
        Session(prepare(program, lean=lean), facts=facts).last_epoch["derivations"] for lean in (True, False)
    ]
    assert 10 * derivations[0] < derivations[1]
    assert derivations[1] > 30**4


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(5))
def test_the_rows_are_the_same_whatever_changes(case: str, seed: int) -> None:
    program = load(BASE + CASES[case][0])
    session = Session(prepare(program, lean=True))
    assert any("!by" in name for name in session.plan.program.relations)
    for updates, base in random_epochs(seed, {"e": 2, "f": 2}, values=6):
        session.apply(updates)
        expected = evaluate(program, base)
        assert session.views() == {name: expected[name] for name in session.views()}
