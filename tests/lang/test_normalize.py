"""What a rule stands for: alternatives, negation, and the scopes of variables in aggregates."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from whence.lang import ProgramError, load
from whence.lang.program import Aggregation
from whence.lang.types import Tuple
from whence.reference import evaluate

BASE = ".decl a(x: number)\n.input a\n.decl e(x: number, y: number)\n.input e\n"
NODES = [(1,), (2,), (3,)]
EDGES = [(1, 2), (1, 3), (2, 3), (3, 3)]


def derive(rules: str, a: Iterable[Tuple] = NODES, e: Iterable[Tuple] = EDGES) -> set[Tuple]:
    return evaluate(load(BASE + rules), {"a": a, "e": e})["r"]


def names(rules: str) -> list[str]:
    return [rule.name for rule in load(BASE + rules).rules]


def aggregate(rules: str) -> Aggregation:
    (found,) = (each for rule in load(BASE + rules).rules for each in rule.body if isinstance(each, Aggregation))
    return found


# -- alternatives -----------------------------------------------------------------------------------------------------


def test_each_alternative_and_each_head_is_a_rule_with_a_name() -> None:
    assert names("r(x), s(x) :- a(x), (x = 1 ; x = 2).") == ["r#1", "r#2", "s#1", "s#2"]
    assert names("up: r(x), s(x) :- a(x), (x = 1 ; x = 2).") == ["up/1", "up/2", "up/3", "up/4"]
    assert names("up: r(x) :- a(x).\nr(1).\nr(2).") == ["up", "r#1", "r#2"]


def test_false_derives_nothing_and_true_is_no_literal() -> None:
    assert names("r(x) :- a(x), (false ; true).") == ["r#1"]
    assert names("r(x) :- a(x), false.\nr(x) :- a(x), true.") == ["r#1", "r#2"]
    assert derive("r(x) :- a(x), false.") == set()
    assert derive("r(x) :- a(x), (false ; x = 2).") == {(2,)}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("!(x = 1 ; x = 2)", {3}),
        ("!(x > 1, x < 3)", {1, 3}),
        ("!!(x > 1)", {2, 3}),
        ("!(!e(x, 2))", {1}),
        ("!(e(x, 2), x < 2)", {2, 3}),
        ("!(x = 1 ; e(x, 2), false)", {2, 3}),
        ('!match("[12]", to_string(x))', {3}),
        ('!contains("1", to_string(x))', {2, 3}),
        ("(x = 1 ; x = 2), (x = 2 ; x = 3)", {2}),
    ],
)
def test_negation_goes_inwards(body: str, expected: set[int]) -> None:
    assert derive(f"r(x) :- a(x), {body}.") == {(each,) for each in expected}


# -- scopes of aggregates ---------------------------------------------------------------------------------------------


def test_a_variable_of_the_rule_groups_the_aggregate() -> None:
    assert derive("r(x, n) :- a(x), n = count : { e(x, _) }.") == {(1, 2), (2, 1), (3, 1)}
    assert aggregate("r(x, n) :- a(x), n = count : { e(x, y), y > 1 }.").outer == ("x",)


def test_a_variable_that_only_the_aggregate_names_is_its_own() -> None:
    assert derive("r(n) :- n = sum x : { e(x, _) }.") == {(7,)}
    assert aggregate("r(n) :- n = sum x : { e(x, y), y > 1 }.").outer == ()


def test_the_target_is_the_aggregates_own_even_if_the_rule_names_it() -> None:
    assert derive("r(x, m) :- a(x), m = max x : { a(x) }.") == {(1, 3), (2, 3), (3, 3)}


def test_two_aggregates_do_not_share_their_variables() -> None:
    assert derive("r(m, n) :- m = min x : { a(x) }, n = max x : { a(x) }.") == {(1, 3)}


def test_a_group_without_rows_counts_zero_and_has_no_minimum() -> None:
    rules = "r(x, n) :- a(x), n = {} : {{ e(y, x), y < x }}."
    assert derive(rules.format("count")) == {(1, 0), (2, 1), (3, 2)}
    assert derive(rules.format("sum y")) == {(1, 0), (2, 1), (3, 3)}
    assert derive(rules.format("min y")) == {(2, 1), (3, 1)}
    assert derive(rules.format("mean y")) == {(2, 1.0), (3, 1.5)}


def test_an_aggregate_sums_rows_not_values() -> None:
    rows = [(1, 5), (2, 5), (3, 1)]
    assert derive("r(n) :- n = sum w : { e(_, w) }.", e=rows) == {(11,)}
    assert derive("r(n) :- n = sum w : { e(x, w), x < 3 }.", e=rows) == {(10,)}
    assert derive("r(n) :- n = count : { e(_, _) }.", e=rows) == {(3,)}


def test_wildcards_beside_other_atoms_do_not_multiply() -> None:
    assert derive("r(n) :- n = count : { a(x), e(x, _) }.") == {(3,)}


def test_a_variable_bound_by_min_or_max_is_a_witness() -> None:
    rows = [(1, 9), (2, 5), (3, 5)]
    assert derive("r(x, m) :- m = min w : { e(x, w) }.", e=rows) == {(2, 5), (3, 5)}
    assert derive("r(x, m) :- m = max w : { e(x, w) }.", e=rows) == {(1, 9)}
    assert derive("r(g, x, m) :- a(g), m = max w : { e(x, w), x >= g }.", e=rows) == {
        (1, 1, 9),
        (2, 2, 5),
        (2, 3, 5),
        (3, 3, 5),
    }


@pytest.mark.parametrize("op", ["sum w", "count", "mean w"])
def test_other_aggregates_have_no_witness(op: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load(BASE + f"r(x, m) :- m = {op} : {{ e(x, w), w > 0 }}.")
    assert [each.code for each in caught.value.diagnostics if each.severity == "error"] == ["W0203"]


def test_aggregates_nest() -> None:
    assert derive("r(m) :- m = max n : { a(x), n = count : { e(x, _) } }.") == {(2,)}
    assert derive("r(x, m) :- a(x), m = sum n : { e(x, y), n = count : { e(y, z), z > x } }.") == {
        (1, 2),
        (2, 1),
        (3, 0),
    }
    assert derive("r(n) :- n = sum (count : { e(x, _) }) : { a(x) }.") == {(4,)}


def test_aggregates_stand_anywhere_in_a_term() -> None:
    assert derive("r(x, 1 + count : { e(x, _) }) :- a(x).") == {(1, 3), (2, 2), (3, 2)}
    assert derive("r(x) :- a(x), count : { e(x, _) } > sum y : { e(x, y), y < 3 } - 1.") == {(1,), (2,), (3,)}
    assert derive("r(count : { a(_) }).") == {(3,)}


def test_an_aggregate_over_alternatives_runs_over_their_union() -> None:
    assert derive("r(n) :- n = count : { a(x), x < 2 ; a(x), x > 2 }.") == {(2,)}
    assert derive("r(n) :- n = sum x : { a(x), x < 3 ; a(x), x > 1 }.") == {(6,)}
    assert derive("r(n) :- n = count : { a(x), false }.") == {(0,)}


def test_too_many_alternatives_in_an_aggregate_are_refused() -> None:
    choice = ", ".join(["(x = 1 ; x = 2 ; x = 3)"] * 7)
    with pytest.raises(ProgramError, match="W0111"):
        load(BASE + f"r(n) :- n = count : {{ a(x), {choice} }}.")


# -- ranges -----------------------------------------------------------------------------------------------------------


def test_ranges_are_literals_wherever_they_stand() -> None:
    assert derive("r(x + range(0, 2)) :- a(x), x > 1.") == {(2,), (3,), (4,)}
    assert derive("r(x) :- a(x), x = range(2, 9).") == {(2,), (3,)}
    assert derive("r(n) :- n = sum x : { x = range(0, 4) }.") == {(6,)}
    assert derive("r(range(3, 0, -1)).") == {(3,), (2,), (1,)}
