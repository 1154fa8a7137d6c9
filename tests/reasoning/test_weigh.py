"""Sums over mappings, group by group, against all mappings one by one; games against all pure answers."""

from __future__ import annotations

import os
from collections import Counter
from fractions import Fraction
from math import prod

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reasoning.queries import query, rules

from whence.reasoning.cases import Fact
from whence.reasoning.games import best_mixture
from whence.reasoning.mappings import Steps, mappings
from whence.reasoning.weigh import cheapest, hits, number_of, powers

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "40"))
few = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
weights = st.dictionaries(
    st.one_of(
        st.tuples(st.just("R"), st.tuples(st.integers(0, 2), st.integers(0, 2))),
        st.tuples(st.just("S"), st.tuples(st.integers(0, 2))),
    ),
    st.integers(0, 5),
    max_size=9,
)


@given(rule=rules(comparisons=True, most_atoms=5), weighed=weights, head=st.integers(0, 2))
@few
def test_sums_are_those_over_all_mappings(rule: str, weighed: dict[Fact, int], head: int) -> None:
    for part in query(rule).parts:
        every = [met for _, met in mappings(part, weighed, (head,), Steps())]
        facts = tuple(weighed)
        assert number_of(part, weighed, (head,), Steps()) == sum(
            prod(weighed[fact] ** times for fact, times in met.items()) for met in every
        )
        counted = Counter(tuple(met[fact] for fact in facts) for met in every)
        assert powers(part, facts, (head,), Steps()) == counted
        limit = dict.fromkeys(facts, 1)
        few_hits = {used: number for used, number in counted.items() if all(times <= 1 for times in used)}
        assert powers(part, facts, (head,), Steps(), at_most=limit) == few_hits
        found = cheapest(part, weighed, (head,), Steps())
        costs = [sum(weighed[fact] * times for fact, times in met.items()) for met in every]
        assert (found is None) == (not costs)
        if found is not None:
            assert found[0] == min(costs)
            assert hits(part, found[1]) in [dict(met) for met in every]


def test_a_star_does_not_take_as_many_steps_as_it_has_mappings() -> None:
    star = query("Q(x) :- " + ", ".join(f"R(x, y{at})" for at in range(10)) + ".").parts[0]
    facts = {("R", (0, at)): 1 for at in range(10)}
    assert number_of(star, facts, (0,), Steps(100)) == 10**10


@given(
    st.integers(1, 4).flatmap(
        lambda size: st.lists(st.lists(st.integers(-4, 4), min_size=size, max_size=size), min_size=1, max_size=4)
    )
)
@few
def test_the_best_mixture_is_sure_of_its_value_and_no_row_of_more(payoffs: list[list[int]]) -> None:
    value, mixture = best_mixture(payoffs)
    assert sum(mixture) == 1
    assert all(each >= 0 for each in mixture)
    columns = list(zip(*payoffs, strict=True))
    assert min(sum(each * gain for each, gain in zip(mixture, column, strict=True)) for column in columns) == value
    # The other player has a mixture that gives away no more: the same question, seen from the other side.
    other, _ = best_mixture([[-gain for gain in column] for column in columns])
    assert other == -value
    assert isinstance(value, Fraction)
