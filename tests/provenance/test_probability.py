"""Probabilities against brute force over all worlds, and against known values of two-terminal reliability."""

from __future__ import annotations

import os
import random
from itertools import product
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence import Session, load
from whence.provenance.derive import CannotExplain
from whence.provenance.expand import derivation_graph
from whence.provenance.graph import Fact
from whence.provenance.heights import smallest_choices
from whence.provenance.probability import Budget, necessary_facts, probabilities, probability
from whence.reference import evaluate

REACH = """
.decl link(x:number, y:number)
.input link
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), {second}(y, z).
.output reach
"""
LINEAR, NONLINEAR = load(REACH.format(second="link")), load(REACH.format(second="reach"))
NOTHING_EXACT = Budget(nodes=2, seconds=30)


def brute_force(program, links, chances, row) -> float:
    total = 0.0
    for world in product((False, True), repeat=len(links)):
        weight = 1.0
        for link, there in zip(links, world, strict=True):
            weight *= chances[link] if there else 1 - chances[link]
        present = [link for link, there in zip(links, world, strict=True) if there]
        if row in evaluate(program, {"link": present})["reach"]:
            total += weight
    return total


@settings(max_examples=int(os.environ.get("WHENCE_EXAMPLES", "25")), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=7, unique=True),
    st.sampled_from([LINEAR, NONLINEAR]),
    st.randoms(use_true_random=False),
)
def test_exact_values_and_bounds_agree_with_all_worlds(links, program, rng: random.Random) -> None:
    chances = {link: rng.choice([0.1, 0.5, 0.9, 1.0, 0.0]) for link in links}
    session = Session(program, facts={"link": links})
    rows = sorted(session.relation("reach"))
    given_chances = {Fact("link", link): chance for link, chance in chances.items()}
    found = probabilities(session, [Fact("reach", row) for row in rows], given_chances)
    for row in rows[:4]:
        expected = brute_force(program, links, chances, row)
        low, high = found[Fact("reach", row)]
        assert low == high
        assert isclose(low, expected, abs_tol=1e-12)
        bounds = probability(session, "reach", row, given_chances, budget=NOTHING_EXACT)
        assert bounds.low <= expected + 1e-9
        assert bounds.high >= expected - 1e-9
        assert bounds.high - bounds.low <= 1e-9


def undirected(*pairs: str) -> list[tuple[int, int]]:
    return [(int(one), int(other)) for one, other in pairs] + [(int(other), int(one)) for one, other in pairs]


def test_known_reliability_of_the_bridge() -> None:
    """The five-link bridge, directed both ways over the middle: 2p² + 2p³ - 5p⁴ + 2p⁵ holds for links that work both ways.

    Here each direction of the middle link fails alone, and only one of them can be of use on a path, so that the probability
    is that of the directed bridge: by inclusion and exclusion over its four paths, worked out below for p = 1/2.
    """
    links = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2), (2, 1)]
    chances = dict.fromkeys(links, 0.5)
    session = Session(LINEAR, facts={"link": links})
    found = probability(session, "reach", (0, 3), lambda _: 0.5)
    assert isclose(found.low, brute_force(LINEAR, links, chances, (0, 3)))
    one_way = [link for link in links if link != (2, 1)]
    session = Session(LINEAR, facts={"link": one_way})
    p = 0.9
    # The paths 0-1-3, 0-2-3 and 0-1-2-3: 2p² + p³ - p⁴ - 2p⁴ + p⁵ by inclusion and exclusion.
    expected = 2 * p**2 + p**3 - 3 * p**4 + p**5
    assert isclose(probability(session, "reach", (0, 3), lambda _: p).low, expected)


def test_series_and_parallel() -> None:
    session = Session(LINEAR, facts={"link": [(0, 1), (1, 2), (2, 3), (0, 3)]})
    assert isclose(probability(session, "reach", (0, 3), lambda _: 0.9).low, 1 - (1 - 0.9**3) * (1 - 0.9))


def test_a_ladder_of_independent_blocks_needs_few_nodes() -> None:
    """Forty diamonds in a row: 4^40 paths, yet each block is worked out alone."""
    links = [
        link
        for at in range(0, 120, 3)
        for link in ((at, at + 1), (at, at + 2), (at + 1, at + 3), (at + 2, at + 3), (at + 3, at))
    ]
    session = Session(LINEAR, facts={"link": links})
    found = probability(session, "reach", (0, 120), lambda _: 0.9, budget=Budget(nodes=200))
    assert found.is_exact
    assert isclose(found.low, (1 - (1 - 0.81) ** 2) ** 40)


def test_facts_in_all_proofs_are_those_without_which_none_is_left() -> None:
    rng = random.Random(7)
    for _ in range(20):
        links = sorted({(rng.randrange(5), rng.randrange(5)) for _ in range(9)})
        session = Session(LINEAR, facts={"link": links})
        root = Fact("reach", next(iter(session.relation("reach"))))
        graph = derivation_graph(session, [root])
        bits = necessary_facts(graph)
        for at, fact in enumerate(bits):
            if fact in graph.base:
                rest = {name: rows for name, rows in graph.derivations.items() if name not in graph.base}
                without = type(graph)(graph.roots, rest, graph.base - {fact})
                assert bool(bits[root] >> at & 1) == (root not in smallest_choices(without))


def test_uncertain_negation_is_refused_by_name() -> None:
    text = ".decl e(x:number) .input e .decl f(x:number) .input f\nonly: p(x) :- e(x), !f(x). .output p"
    session = Session(load(text), facts={"e": [(1,)], "f": [(2,)]})
    assert probability(session, "p", (1,), {Fact("e", (1,)): 0.5}).low == 0.5
    with pytest.raises(CannotExplain, match="rule only asks"):
        probability(session, "p", (1,), lambda _: 0.5)


def test_a_chance_beyond_one_is_refused() -> None:
    session = Session(LINEAR, facts={"link": [(0, 1)]})
    with pytest.raises(ValueError, match="not a probability"):
        probability(session, "reach", (0, 1), lambda _: 1.5)
