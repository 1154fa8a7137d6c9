"""Random queries: every yes and every no against all valuations over small databases, and what follows from what."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reasoning.queries import DECIDED, SOMETIMES, brute_force, databases, query, refuted, rules, unions

from whence.reasoning import Query, Verdict, contained, equivalent
from whence.semiring import SEMIRINGS

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "25"))
few = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def check(left: Query, right: Query, name: str, number: int, *, both_ways: bool) -> Verdict:
    answer = (equivalent if both_ways else contained)(left, right, name)
    if answer.verdict is Verdict.NO:
        example = answer.counterexample
        assert example is not None
        semiring = SEMIRINGS[name]
        found = [brute_force(each, example.facts, semiring).get(example.row, semiring.zero) for each in (left, right)]
        assert found == [example.left, example.right]
        assert found[0] != found[1] if both_ways else not semiring.leq(*found)
    elif answer.verdict is Verdict.YES:
        for facts in databases(name, number):
            assert not refuted(left, right, facts, name, both_ways=both_ways)
    return answer.verdict


@pytest.mark.parametrize("name", [*DECIDED, *SOMETIMES])
@given(left=unions(), right=unions(), number=st.integers(0, 2**32))
@few
def test_unions(left: Query, right: Query, number: int, name: str) -> None:
    for both_ways in (False, True):
        verdict = check(left, right, name, number, both_ways=both_ways)
        assert verdict is not Verdict.UNDECIDED or name in SOMETIMES


@pytest.mark.parametrize("name", ["boolean", "lineage", "why", "trio", "polynomial", "natural", "tropical"])
@given(left=unions(comparisons=True), right=unions(comparisons=True), number=st.integers(0, 2**32))
@few
def test_unions_with_comparisons(left: Query, right: Query, number: int, name: str) -> None:
    for both_ways in (False, True):
        verdict = check(left, right, name, number, both_ways=both_ways)
        assert verdict is not Verdict.UNDECIDED or name in SOMETIMES


@pytest.mark.parametrize("name", [*DECIDED, *SOMETIMES, "integer", "integer-polynomial"])
@given(rule=rules(comparisons=True), names=st.permutations("xyz"))
@few
def test_names_of_variables_do_not_matter(rule: str, names: list[str], name: str) -> None:
    renamed = rule.translate(str.maketrans("xyz", "".join(names)))
    assert equivalent(query(rule), query(renamed), name).verdict is Verdict.YES


# What follows from what, strongest first; neighbours with the same number say the same.
RULES_CONTAINED = ("polynomial boolean-polynomial", "trio why", "natural counting", "lineage", "posbool boolean fuzzy")
RULES_EQUIVALENT = (
    "polynomial boolean-polynomial trio why natural integer integer-polynomial",
    "lineage",
    "posbool boolean access",
)
UNIONS_CONTAINED = (
    ("polynomial", "boolean-polynomial", "why", "lineage", "posbool"),
    ("polynomial", "trio", "natural", "lineage", "boolean"),
    ("trio", "why"),
    ("polynomial", "tropical", "boolean"),
)
UNIONS_EQUIVALENT = (
    "polynomial trio natural counting integer",
    "boolean-polynomial",
    "why",
    "lineage",
    "posbool boolean",
)


def verdicts(left: Query, right: Query, levels: tuple[str, ...], *, both_ways: bool) -> list[Verdict]:
    """One for each level, on which all agree as far as they are decided."""
    result = []
    for level in levels:
        found = {(equivalent if both_ways else contained)(left, right, name).verdict for name in level.split()}
        found = found - {Verdict.UNDECIDED} or found
        assert len(found) == 1, level
        result.append(found.pop())
    return result


def assert_weaker_and_weaker(found: list[Verdict]) -> None:
    for stronger, weaker in pairwise(each for each in found if each is not Verdict.UNDECIDED):
        assert stronger is Verdict.NO or weaker is Verdict.YES


@given(left=rules(), right=rules())
@few
def test_what_follows_from_what_for_rules(left: str, right: str) -> None:
    one, other = query(left), query(right)
    assert_weaker_and_weaker(verdicts(one, other, RULES_CONTAINED, both_ways=False))
    assert_weaker_and_weaker(verdicts(one, other, RULES_EQUIVALENT, both_ways=True))


@given(left=unions(), right=unions())
@few
def test_what_follows_from_what_for_unions(left: Query, right: Query) -> None:
    for levels in UNIONS_CONTAINED:
        assert_weaker_and_weaker(verdicts(left, right, levels, both_ways=False))
    assert_weaker_and_weaker(verdicts(left, right, UNIONS_EQUIVALENT, both_ways=True))
