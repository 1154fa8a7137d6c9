from __future__ import annotations

import pytest

from whence import load
from whence.plan import compile_plan
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
