"""Order and inequality, constants, views, sizes, and what is refused."""

from __future__ import annotations

import pytest
from tests.reasoning.queries import BASE, query

from whence.lang import load
from whence.reasoning import NotConjunctive, Query, Verdict, contained, equivalent, query_of, redundant_rules
from whence.semiring import NotInThisSemiring


def verdict(left: Query, right: Query, name: str = "boolean") -> Verdict:
    return contained(left, right, name).verdict


def test_cases_of_order_are_told_apart() -> None:
    either = query("Q(x) :- R(x, y), x <= y.", "Q(x) :- R(x, y), y < x.")
    assert equivalent(query("Q(x) :- R(x, y)."), either, "polynomial").verdict is Verdict.YES
    overlapping = query("Q(x) :- R(x, y), x <= y.", "Q(x) :- R(x, y), y <= x.")
    assert equivalent(query("Q(x) :- R(x, y)."), overlapping, "why").verdict is Verdict.YES
    answer = equivalent(query("Q(x) :- R(x, y)."), overlapping, "natural")
    assert answer.counterexample is not None
    assert (answer.counterexample.left, answer.counterexample.right) == (1, 2)


def test_klugs_example_needs_several_mappings() -> None:
    left = query("Q() :- R(x, y), R(y, z), x <= z.")
    assert verdict(query("Q() :- R(x, y), R(y, x)."), left) is Verdict.YES
    assert verdict(left, query("Q() :- R(x, y), x <= y.")) is Verdict.YES


def test_numbers_are_not_dense() -> None:
    between = query("Q(x) :- S(x), 1 < x, x < 3.")
    assert equivalent(between, query("Q(x) :- S(x), x = 2."), "polynomial").verdict is Verdict.YES
    text = BASE.replace("number", "float") + ".decl Q(x:float)\nQ(x) :- S(x), 1.0 < x, x < 3.0."
    other = BASE.replace("number", "float") + ".decl Q(x:float)\nQ(x) :- S(x), x = 2.0."
    dense, one = (query_of(load(each), "Q") for each in (text, other))
    assert verdict(dense, one) is Verdict.NO
    assert verdict(one, dense) is Verdict.YES


def test_unsigned_numbers_begin_at_zero() -> None:
    text = BASE.replace("number", "unsigned") + ".decl Q(x:unsigned)\n"
    low, zero = (query_of(load(f"{text}Q(x) :- S(x), {each}."), "Q") for each in ("x < 1", "x = 0"))
    assert equivalent(low, zero, "natural").verdict is Verdict.YES


def test_a_rule_that_cannot_hold_adds_nothing() -> None:
    assert equivalent(query("Q(x) :- S(x).", "Q(x) :- S(x), x < x."), query("Q(x) :- S(x)."), "polynomial").mappings
    never = query("Q(x) :- S(x).", "Q(x) :- R(x, y), x < y, y < x.")
    assert equivalent(never, query("Q(x) :- S(x)."), "polynomial").verdict is Verdict.YES


def test_views_are_written_out_with_variables_of_their_own() -> None:
    views = BASE + ".decl V(x:number)\nV(x) :- R(x, y), y != 1.\n.decl Q(x:number)\nQ(x) :- V(x), V(x)."
    plain = query("Q(x) :- R(x, y), R(x, z), y != 1, z != 1.")
    assert equivalent(query_of(load(views), "Q"), plain, "polynomial").verdict is Verdict.YES


def test_a_view_that_is_fed_too_is_refused() -> None:
    text = BASE + ".decl V(x:number)\n.input V\nV(x) :- S(x).\n.decl Q(x:number)\nQ(x) :- V(x)."
    with pytest.raises(NotConjunctive, match=r"read with \.input and derived"):
        query_of(load(text), "Q")


def test_views_in_sql() -> None:
    tables = "CREATE TABLE R (x INTEGER NOT NULL, y INTEGER NOT NULL);"
    sql = load(f"{tables} CREATE VIEW Q AS SELECT a.x FROM R a, R b WHERE a.y = b.x AND b.y < 5;", dialect="sql")
    assert verdict(query_of(sql, "Q"), query("Q(x) :- R(x, y).")) is Verdict.YES


def ten_atoms(shape: str) -> str:
    names = [f"v{at}" for at in range(12)]
    pairs = {
        "chain": [(names[at], names[at + 1]) for at in range(10)],
        "star": [("v0", names[at]) for at in range(1, 11)],
        "cycle": [(names[at], names[(at + 1) % 10]) for at in range(10)],
        "clique": [(a, b) for at, a in enumerate(names[:5]) for b in names[at + 1 : 5]],
        "tree": [(names[at // 2], names[at]) for at in range(1, 11)],
    }[shape]
    return f"Q(v0) :- {', '.join(f'R({a}, {b})' for a, b in pairs)}."


@pytest.mark.parametrize("name", ["boolean", "lineage", "why", "trio", "polynomial", "natural", "tropical"])
def test_self_joins_of_ten_atoms_are_decided(name: str) -> None:
    shapes = [query(ten_atoms(shape)) for shape in ("chain", "star", "cycle", "clique", "tree")]
    for at, one in enumerate(shapes):
        assert equivalent(one, one, name).verdict is Verdict.YES
        other = shapes[at - 1]
        assert equivalent(one, other, name).verdict is Verdict.NO


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("Q(x) :- S(x), !T(x).", "literal of kind negation"),
        ("Q(x) :- S(x), T(y), x = y + 1.", "terms other than variables and constants"),
        ("Q(x) :- S(x), x = count : { T(_) }.", "literal of kind aggregation"),
        ("Q(x) :- S(x). Q(x) :- Q(y), R(y, x).", "Q is recursive"),
    ],
)
def test_what_is_not_conjunctive_is_refused_with_its_place(rules: str, problem: str) -> None:
    with pytest.raises(NotConjunctive, match=problem):
        query(*rules.split("\n"))


def test_queries_with_other_columns_are_not_compared() -> None:
    with pytest.raises(NotConjunctive, match="same columns"):
        verdict(query("Q(x) :- S(x)."), query("Q(x, x) :- S(x)."))
    other = BASE.replace("R(x:number, y:number)", "R(x:symbol, y:symbol)") + ".decl Q(x:symbol)\nQ(x) :- R(x, _)."
    with pytest.raises(NotConjunctive, match="same columns"):
        verdict(query_of(load(other), "Q"), query("Q(x) :- R(x, _)."))


def test_rings_have_no_order_and_series_are_cut_off() -> None:
    one = query("Q(x) :- S(x).")
    with pytest.raises(NotInThisSemiring, match="has no order"):
        contained(one, one, "integer")
    with pytest.raises(NotInThisSemiring, match="series"):
        equivalent(one, one, "series")


def names(text: str, semiring: str = "boolean") -> list[str]:
    return [each.rule.name for each in redundant_rules(load(BASE + text), semiring)]


def test_rules_that_others_make_superfluous() -> None:
    text = (
        ".decl Q(x:number)\n.output Q\nQ(x) :- R(x, y).\nQ(x) :- R(x, y), S(y).\nQ(x) :- R(x, z).\nQ(x) :- S(x), !T(x)."
    )
    assert names(text) == ["Q#2", "Q#3"]
    assert names(text, "lineage") == ["Q#3"]
    assert names(text, "natural") == []
    assert names(".decl Q(x:number)\nQ(x) :- S(x).\nQ(x) :- R(x, y), x < y, y < x.", "natural") == ["Q#2"]


def test_recursive_rules_are_compared_as_they_stand() -> None:
    text = ".decl P(x:number, y:number)\n.output P\nP(x, y) :- R(x, y).\nP(x, z) :- P(x, y), R(y, z).\n"
    assert names(text + "P(x, z) :- P(x, y), R(y, z), P(x, u).") == ["P#3"]
    assert names(text + "P(x, z) :- P(x, y), P(y, z).") == []
