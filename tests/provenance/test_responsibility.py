"""Responsibility and Shapley values against their definitions, worked out by brute force."""

from __future__ import annotations

import os
import random
from itertools import combinations
from math import factorial, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence import Session, load
from whence.provenance.graph import Fact
from whence.provenance.responsibility import contributions
from whence.reference import evaluate

REACH = load(
    ".decl link(x:number, y:number) .input link\nreach(x, y) :- link(x, y).\nreach(x, z) :- reach(x, y), link(y, z)."
    " .output reach"
)


def subsets(items):
    return (set(chosen) for size in range(len(items) + 1) for chosen in combinations(items, size))


def by_definition(links, row) -> dict[tuple[int, int], tuple[float, float]]:
    holds = {frozenset(each): row in evaluate(REACH, {"link": each})["reach"] for each in subsets(links)}
    everything, number = set(links), len(links)
    values = {}
    for link in links:
        rest = [each for each in links if each != link]
        gone = [
            len(each)
            for each in subsets(rest)
            if holds[frozenset(everything - each)] and not holds[frozenset(everything - each - {link})]
        ]
        share = sum(
            factorial(len(each)) * factorial(number - len(each) - 1) / factorial(number)
            for each in subsets(rest)
            if holds[frozenset(each | {link})] and not holds[frozenset(each)]
        )
        values[link] = (1 / (1 + min(gone)) if gone else 0.0, share)
    return values


@settings(max_examples=int(os.environ.get("WHENCE_EXAMPLES", "25")), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=7, unique=True))
def test_exact_values_agree_with_the_definitions(links) -> None:
    session = Session(REACH, facts={"link": links})
    row = min(session.relation("reach"))
    expected = by_definition(links, row)
    found = {each.fact.tuple: each for each in contributions(session, "reach", row)}
    assert isclose(sum(each.shapley for each in found.values()), 1)
    for link, (responsibility, share) in expected.items():
        if link in found:
            assert found[link].responsibility == responsibility
            assert isclose(found[link].shapley, share, abs_tol=1e-12)
        else:
            assert (responsibility, share) == (0.0, 0.0)


def test_sampled_values_are_within_their_error() -> None:
    rng = random.Random(3)
    links = sorted({(rng.randrange(6), rng.randrange(6)) for _ in range(16)})
    session = Session(REACH, facts={"link": links})
    row = max(session.relation("reach"))
    exact = {each.fact: each.shapley for each in contributions(session, "reach", row)}
    for each in contributions(session, "reach", row, nodes=2, samples=1500):
        assert each.responsibility is None
        assert abs(each.shapley - exact[each.fact]) <= each.error < 0.06


def test_what_is_granted_has_no_share() -> None:
    text = ".decl e(x:number) .input e .decl f(x:number) .input f\np(x) :- e(x), f(x). .output p"
    session = Session(load(text), facts={"e": [(1,)], "f": [(1,)]})
    (only,) = contributions(session, "p", (1,), among=["e"])
    assert (only.fact, only.responsibility) == (Fact("e", (1,)), 1.0)
    assert only.shapley == pytest.approx(1.0)
