from __future__ import annotations

import pytest

from whence import load
from whence.plan import compile_evaluation, compile_plan
from whence.plan.decompose import Decomposition, NotDecomposable, decompose

LINK = ".decl link(x:number, y:number) .input link\n"


def decomposition(text: str) -> Decomposition:
    program = compile_plan(load(LINK + text)).program
    (stratum,) = [each for each in program.strata if each.recursive]
    return decompose(program, stratum)


def test_closure_decomposes_by_the_end_that_stays() -> None:
    left = decomposition("r(x, y) :- link(x, y). r(x, z) :- r(x, y), link(y, z).")
    right = decomposition("r(x, y) :- link(x, y). r(x, z) :- link(x, y), r(y, z).")
    assert (left.columns, left.split, left.whole) == ({"r": 0}, {}, ("link",))
    assert (right.columns, right.whole) == ({"r": 1}, ("link",))


def test_inputs_with_the_carried_variable_are_told_apart_by_it() -> None:
    found = decomposition(
        ".decl f(o:number, k:number, x:number) .input f\n.decl g(x:number) .input g\n"
        "r(k, x) :- f(_, k, x). r(k, y) :- r(k, x), link(x, y), f(_, k, y), !g(k)."
    )
    assert (found.columns, found.split, found.whole) == (
        {"r": 0},
        {"f": 1, "g": 0} if "g" in found.split else {"f": 1},
        ("link",),
    )


def test_relations_of_a_cycle_may_carry_at_different_columns() -> None:
    found = decomposition(
        "a(x, y) :- link(x, y). a(x, z) :- b(y, x), link(y, z). b(z, x) :- a(x, y), link(y, z), x < z."
    )
    assert found.columns == {"a": 0, "b": 1}
    assert len(found.proof) == 2


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("r(x, y) :- link(x, y). r(x, z) :- r(x, y), r(y, z).", "does not hand x from r"),
        ("r(x, y) :- link(x, y). r(a, b) :- r(x, y), link(x, a), link(y, b).", "does not hand a from r"),
        ("r(0, y) :- link(_, y). r(1, z) :- r(0, y), link(y, z).", "puts no variable into column 1"),
        ("r(x, y) :- link(x, y). r(y, x) :- r(x, y).", "does not hand y from r"),
    ],
)
def test_what_does_not_decompose_says_why(rules: str, reason: str) -> None:
    with pytest.raises(NotDecomposable, match=reason):
        decomposition(rules)


WEIGHTED = """.decl link(x:number, y:number, w:number) .input link
.decl path(x:number, y:number, d:number) .decl sp(x:number, y:number, d:number)
path(x, y, w) :- link(x, y, w).
path(x, z, d + w) :- sp(x, y, d), link(y, z, w).
"""
ANCHORED = "sp(x, y, m) :- path(x, y, _), m = min d : { path(x, y, d) }."
# Groups are found inside the braces alone: without a row there is no least value.
UNANCHORED = "sp(x, y, m) :- link(x, _, _), link(_, y, _), m = min d : { path(x, y, d) }."


@pytest.mark.parametrize("rule", [ANCHORED, UNANCHORED])
def test_an_aggregate_hands_the_columns_of_its_groups_on(rule: str) -> None:
    program = compile_evaluation(load(WEIGHTED + rule)).program
    (stratum,) = [each for each in program.strata if each.recursive]
    found = decompose(program, stratum)
    assert (found.columns, found.split, found.whole) == ({"path": 0, "sp": 0}, {}, ("link",))
    assert found.proof == (
        "rule path#2 carries x from sp.x to path.x",
        "rule sp#1 carries x from path.x to sp.x",
    )


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        # The group's key lacks the column.
        (
            f"{WEIGHTED}sp(x, y, m) :- path(x, y, _), m = min d : {{ path(_, y, d) }}.",
            "does not hand x from path",
        ),
        # A part would have an empty group for each x of another.
        (
            """.decl link(x:number, y:number) .input link
            .decl busy(x:number) .decl reach(x:number, y:number)
            reach(x, y) :- link(x, y).
            reach(x, z) :- busy(x), reach(x, y), link(y, z).
            busy(x) :- link(_, x), n = count : { reach(x, _) }, n >= 0.""",
            "rule busy#1 has groups also where the recursion has no rows",
        ),
        # A part would have groups of rows that no recursion tells apart.
        (
            f"""{WEIGHTED}.decl given(x:number, y:number, d:number) .input given
            sp(x, y, m) :- link(x, _, _), link(_, y, _), m = min d : {{ given(x, y, d); path(x, y, d) }}.""",
            "rule sp#1 has groups also where the recursion has no rows",
        ),
    ],
)
def test_an_aggregate_over_other_parts_says_so(rules: str, reason: str) -> None:
    program = compile_evaluation(load(rules)).program
    (stratum,) = [each for each in program.strata if each.recursive]
    with pytest.raises(NotDecomposable, match=reason):
        decompose(program, stratum)


def test_a_value_of_an_aggregate_is_not_carried() -> None:
    swapped = """.decl link(x:number, y:number) .input link
    .decl top(d:number, x:number) .decl seen(d:number, x:number)
    seen(x, x) :- link(x, _).
    seen(d, y) :- top(d, x), link(x, y), link(y, x).
    top(m, x) :- seen(_, x), m = max d : { seen(d, x) }.
    """
    program = compile_evaluation(load(swapped)).program
    (stratum,) = [each for each in program.strata if each.recursive]
    with pytest.raises(NotDecomposable, match="does not hand"):
        decompose(program, stratum)
