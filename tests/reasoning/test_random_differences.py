"""Random sums of queries: forms, merging, folding and rules of maintenance against evaluation by brute force."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reasoning.queries import query, rules
from tests.reasoning.test_differences import PLAIN, value_of

from whence.reasoning import Verdict, equivalent
from whence.reasoning.costs import Estimates, observe
from whence.reasoning.forms import added, form_of, merged, negated, same, sum_of
from whence.reasoning.maintenance import AFTER, CHANGE, after_views, maintenance
from whence.reasoning.queries import Conjunctive, Query
from whence.reasoning.rewriting import View, reformulate, steps, unfolded
from whence.semiring import Integer

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "20"))
few = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
unions = st.lists(rules(comparisons=True), min_size=1, max_size=2).map(lambda each: query(*each))
plain = st.lists(rules(), min_size=1, max_size=2).map(lambda each: query(*each))


def facts(seed: int) -> dict[str, dict[tuple[int, ...], int]]:
    drawn = random.Random(seed)
    return {
        "R": {(x, y): drawn.choice([-2, -1, 1, 2, 3]) for x in range(4) for y in range(4) if drawn.random() < 0.5},
        "S": {(x,): drawn.choice([-1, 1, 2]) for x in range(4) if drawn.random() < 0.7},
    }


@given(rule=rules(comparisons=True), names=st.permutations("xyz"), data=st.data())
@few
def test_a_form_is_the_same_for_all_names_and_orders(rule: str, names: list[str], data: st.DataObject) -> None:
    head, body = rule.rstrip(".").split(" :- ")
    atoms = body.replace("), ", ")|").split("|")
    turned = f"{head} :- {', '.join(data.draw(st.permutations(atoms)))}.".translate(
        str.maketrans("xyz", "".join(names))
    )
    one, other = query(rule), query(turned)
    assert sum_of(one.parts) == sum_of(other.parts)


@given(one=plain, other=plain)
@few
def test_equal_forms_decide_what_mappings_decide(one: Query, other: Query) -> None:
    assert (sum_of(one.parts) == sum_of(other.parts)) == (equivalent(one, other, "integer").verdict is Verdict.YES)


@given(one=unions, other=unions, seed=st.integers(0, 2**16))
@few
def test_merging_and_orders_say_the_same(one: Query, other: Query, seed: int) -> None:
    difference = added(sum_of(one.parts), negated(sum_of(other.parts)))
    there = facts(seed)
    assert value_of(merged(difference), there, Integer()) == value_of(difference, there, Integer())
    is_same = same(one.parts, other.parts)
    assert is_same == (equivalent(one, other, "integer").verdict is Verdict.YES)


@given(asked=unions, held=unions, seed=st.integers(0, 2**16))
@few
def test_every_step_and_what_is_chosen_says_the_same(asked: Query, held: Query, seed: int) -> None:
    view = View("V", held.parts)
    there: dict[str, Mapping[tuple[int, ...], int]] = dict(facts(seed))
    there["V"] = value_of(sum_of(held.parts), there, Integer())
    wanted = sum_of(asked.parts)
    expected = value_of(wanted, there, Integer())
    for each in list(steps(wanted, [view]))[:10]:
        assert value_of(each, there, Integer()) == expected
        assert not merged(added(unfolded(each, {"V": view}), negated(wanted)))
    known = Estimates({name: observe(rows, len(next(iter(rows), (0,)))) for name, rows in there.items()})
    if all(there.values()):
        found = reformulate(merged(wanted), [view], known, seconds=5, most_steps=20)
        assert value_of(found.sum, there, Integer()) == expected
        assert found.cost <= found.original_cost


def by_position(part: Conjunctive, changing: str) -> list[Conjunctive]:
    """What delta plans do: one rule for each literal that changes, those before it after the change, those behind it before."""
    made = []
    for at, (name, args) in enumerate(part.atoms):
        if name == changing:
            before = tuple((each + AFTER if each == changing else each, terms) for each, terms in part.atoms[:at])
            made.append(replace(part, atoms=(*before, (name + CHANGE, args), *part.atoms[at + 1 :])))
    return made


@given(asked=plain)
@settings(few, max_examples=min(EXAMPLES, 200))  # an example may take a second
def test_rules_of_maintenance_are_those_of_delta_plans(asked: Query) -> None:
    if "R" not in asked.base:
        return
    known = Estimates(
        {**PLAIN.observed, "S": observe([(x,) for x in range(1000)], 1), "V": observe([(x,) for x in range(5000)], 1)}
    )
    found = maintenance(View("V", asked.parts), ["R"], known, seconds=0.2).sum
    views = {each.name: each for each in after_views(asked.parts, ["R"])} | {"V": View("V", asked.parts)}
    planned = sum_of(each for part in asked.parts for each in by_position(part, "R"))
    assert unfolded(found, views) == unfolded(planned, views)


@pytest.mark.parametrize("size", [4, 8])
def test_forms_of_what_looks_alike_everywhere(size: int) -> None:
    """Cycles, and as many atoms of which nothing is shared."""
    cycle = "Q() :- " + ", ".join(f"R(v{at}, v{(at + 1) % size})" for at in range(size)) + "."
    turned = "Q() :- " + ", ".join(f"R(v{(at + 3) % size}, v{(at + 4) % size})" for at in range(size)) + "."
    assert form_of(query(cycle).parts[0]) == form_of(query(turned).parts[0])
    half = size // 2
    two = "Q() :- " + ", ".join(f"R(v{at}, v{at + 1 - half * (at % half == half - 1)})" for at in range(size)) + "."
    assert form_of(query(two).parts[0]) != form_of(query(cycle).parts[0])
    apart = "Q() :- " + ", ".join(f"R(v{at}, w{at})" for at in range(size)) + "."
    assert len(form_of(query(apart).parts[0]).atoms) == size
