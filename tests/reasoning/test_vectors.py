"""Published examples of containment, in corrected forms, and examples that tell semirings apart."""

from __future__ import annotations

import pytest
from tests.reasoning.queries import query, refuted

from whence.reasoning import Answer, Query, Verdict, contained, equivalent
from whence.reference.annotated import evaluate_annotated
from whence.semiring import SEMIRINGS, TRIO
from whence.semiring.polynomials import monomial

YES, NO = Verdict.YES, Verdict.NO


def is_contained(left: Query, right: Query, name: str) -> bool:
    return decided(contained(left, right, name))


def is_equivalent(left: Query, right: Query, name: str) -> bool:
    return decided(equivalent(left, right, name))


def decided(answer: Answer) -> bool:
    assert answer.verdict is not Verdict.UNDECIDED
    assert (answer.counterexample is not None) == (answer.verdict is NO)
    return answer.verdict is YES


def test_a_redundant_join_shows_in_lineage_tv_4_1() -> None:
    p, q = query("Q(x, y) :- R(x, y)."), query("Q(x, y) :- R(x, y), R(x, z).")
    assert is_equivalent(p, q, "boolean")
    assert is_contained(p, q, "lineage")
    assert not is_contained(q, p, "lineage")


def test_lineage_forgets_what_was_used_together_tv_4_2() -> None:
    p, q = query("Q(x) :- R(x, y), R(x, x)."), query("Q(u) :- R(u, v).")
    assert is_contained(p, q, "lineage")
    assert not is_contained(p, q, "why")
    assert not is_contained(q, p, "boolean")


def test_equivalent_in_lineage_but_not_isomorphic_tv_4_3() -> None:
    p, q = query("Q(x) :- R(x, y)."), query("Q(x) :- R(x, y), R(x, z).")
    assert is_equivalent(p, q, "lineage")
    for name in ("why", "trio", "polynomial", "boolean-polynomial", "natural", "counting", "integer"):
        assert not is_equivalent(p, q, name)


def test_why_allows_more_use_than_polynomials_tv_4_4() -> None:
    p = query("Q(x, y) :- R(x, y), S(u).")
    q = query("Q(x, y) :- R(x, y), S(u), S(w).")
    answer = contained(p, q, "why")
    assert [dict(each.terms) for each in answer.mappings] == [{"x": "x", "y": "y", "u": "u", "w": "u"}]
    assert not is_contained(p, q, "boolean-polynomial")
    both = query("Q(x, y) :- R(x, y), S(u).", "Q(x, y) :- R(x, y), S(u), S(w).")
    assert is_equivalent(q, both, "why")
    assert not is_equivalent(q, both, "boolean-polynomial")


def test_unions_need_not_be_contained_rule_by_rule_tv_4_5() -> None:
    p1, p2 = "Q() :- R(x, y), R(x, x).", "Q() :- R(x, y), R(y, y)."
    q1, q2 = "Q() :- R(x, y), R(u, u).", "Q() :- R(x, x), R(x, x)."
    for p in (p1, p2):
        assert is_contained(query(p), query(q1), "polynomial")
        assert not is_contained(query(p), query(q2), "polynomial")
    assert not is_contained(query(p1, p2), query(q1), "polynomial")
    assert is_contained(query(p1, p2), query(q1, q2), "polynomial")
    assert not is_contained(query(q1, q2), query(p1, p2), "polynomial")
    x0, x1 = (SEMIRINGS["polynomial"].variable(each) for each in ("x0", "x1"))
    facts = {("R", (0, 0)): x0, ("R", (1, 1)): x1}
    assert refuted(query(q1, q2), query(p1, p2), facts, "polynomial", both_ways=False)


def test_a_rule_twice_tv_4_6() -> None:
    once, twice = query("Q(x) :- S(x)."), query("Q(x) :- S(x).", "Q(y) :- S(y).")
    assert is_equivalent(once, twice, "boolean-polynomial")
    assert not is_equivalent(once, twice, "polynomial")
    assert is_contained(once, twice, "polynomial")
    assert not is_contained(twice, once, "natural")


def test_sums_of_variables_show_powers_to_trio_tv_4_7() -> None:
    q1, q2 = query("Q(x, y) :- R(x, z), R(z, y)."), query("Q(x, y) :- R(x, y).")

    def value(asked: Query, *tokens: str) -> object:
        tag = TRIO.of({monomial(each): 1 for each in tokens})
        facts = {"R": [(1, 1)], "S": [], "T": []}
        known = {name: rows for name, rows in facts.items() if name in asked.program.relations}
        return evaluate_annotated(asked.program, known, TRIO, lambda *_: tag)["Q"][1, 1]

    assert value(q1, "r") == value(q2, "r") == TRIO.variable("r")
    assert str(value(q1, "r", "s")) == "r + s + 2*r*s"
    assert str(value(q2, "r", "s")) == "r + s"
    answer = equivalent(q1, q2, "trio")
    assert answer.verdict is NO
    assert not is_equivalent(q1, q2, "natural")


def test_bags_as_sets_with_a_column_more_tv_4_8() -> None:
    """Each copy of a row becomes a row of its own; as many derivations are left."""
    q = query("Q(x, y) :- R(x, y), R(y, z).")
    rows = {(1, 1): 2, (1, 2): 3, (2, 1): 1}
    bags = evaluate_annotated(q.program, {"R": rows}, SEMIRINGS["natural"], lambda _, row: rows[row])["Q"]
    copies = [(*row, copy) for row, times in rows.items() for copy in range(times)]
    pairs = [(a, b) for a in copies for b in copies if a[1] == b[0]]
    assert bags == {row: sum(a[:2] == row for a, _ in pairs) for row in {a[:2] for a, _ in pairs}}


def test_a_counter_example_may_need_as_many_facts_as_the_left_has_atoms_tv_4_9() -> None:
    p, q = query("Q() :- S(x), R(y, y), T(z)."), query("Q() :- S(x), R(y, y).")
    answer = contained(p, q, "polynomial")
    assert answer.verdict is NO
    assert answer.counterexample is not None
    assert len(answer.counterexample.facts) == 3


def test_a_repeated_atom_counts_for_why_tv_4_10() -> None:
    p, q = query("Q(x) :- S(x), S(x)."), query("Q(x) :- S(x).")
    answer = contained(p, q, "why")
    assert answer.verdict is NO
    assert answer.counterexample is not None
    assert [len(value) for value in answer.counterexample.facts.values()] == [2]
    assert is_equivalent(p, q, "lineage")


def test_lineage_of_a_union_comes_from_several_rules() -> None:
    p, q = query("Q() :- S(x), T(y)."), query("Q() :- S(x).", "Q() :- T(x).")
    assert is_contained(p, q, "lineage")
    assert not is_contained(p, q, "why")


def test_the_cheapest_rule_depends_on_the_costs() -> None:
    p, q = query("Q() :- S(x), T(y)."), query("Q() :- S(x), S(x).", "Q() :- T(x), T(x).")
    # min(2s, 2t) <= s + t: true, but no single mapping shows it.
    assert len(contained(p, q, "tropical").mappings) == 2
    assert not is_contained(p, query("Q() :- S(x), S(x), S(x).", "Q() :- T(x), T(x)."), "tropical")


@pytest.mark.parametrize(("weaker", "stronger", "left", "right"), [
    ("boolean", "lineage", "Q(x) :- S(x), R(x, y).", "Q(x) :- S(x)."),
    ("lineage", "natural", "Q(x) :- S(x), S(x).", "Q(x) :- S(x)."),
    ("trio", "polynomial", "Q(x) :- S(x).", "Q(x) :- S(x), S(x)."),
    ("natural", "tropical", "Q(x) :- S(x).", "Q(x) :- S(x), S(x)."),
    ("boolean", "tropical", "Q(x) :- S(x).", "Q(x) :- S(x), S(x)."),
])  # fmt: skip
def test_what_follows_only_one_way(weaker: str, stronger: str, left: str, right: str) -> None:
    assert is_contained(query(left), query(right), weaker)
    assert not is_contained(query(left), query(right), stronger)


def test_idempotent_provenance_and_numbers_are_incomparable_for_unions() -> None:
    once, twice = query("Q(x) :- S(x)."), query("Q(x) :- S(x).", "Q(x) :- S(x).")
    assert is_contained(twice, once, "boolean-polynomial")
    assert not is_contained(twice, once, "natural")
    larger = query("Q(x) :- S(x), S(x).")
    assert is_contained(once, larger, "natural")
    assert not is_contained(once, larger, "boolean-polynomial")
