"""Worlds and probabilities, against brute force over the worlds of the documents."""

from __future__ import annotations

import os
from itertools import product
from math import isclose, prod
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.semiring.values import TOKENS
from tests.trees.random_trees import forests, queries
from tests.trees.samples import figure_64

from whence.semiring import NATURAL_POLYNOMIALS, Boolean, Natural, NotInThisSemiring, PosBool
from whence.trees import KSets, convert, evaluate_query, evaluate_shredded, load_query, parse_document
from whence.trees.render import text_lines
from whence.trees.worlds import Likelihood, coin_flips, valuation, worlds

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "10"))
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # queries come from seeds, which cannot be made smaller
POSBOOL, BOOLEAN, NATURAL = PosBool(), Boolean(), Natural()
ODDS = {"p": 0.5, "q": 0.25, "r": 0.75, "s": 1.0}
FORMULAS = st.one_of(
    TOKENS.map(POSBOOL.variable), st.tuples(TOKENS, TOKENS).map(lambda two: POSBOOL.plus(*map(POSBOOL.variable, two)))
)


@settings(max_examples=EXAMPLES, phases=PHASES)
@given(data=st.data())
def test_the_worlds_of_an_answer_are_the_answers_of_the_worlds(data: Any) -> None:
    documents = {each: data.draw(forests(POSBOOL, FORMULAS)) for each in "ST"}
    text = data.draw(queries(BOOLEAN)).replace('annot "true"', "").replace('annot "false"', "")
    answer = evaluate_shredded(load_query(text, POSBOOL), documents, POSBOOL)
    expected: dict[Any, float] = {}
    for flips in product((True, False), repeat=len(ODDS)):
        values = dict(zip(ODDS, flips, strict=True))
        apply = valuation(POSBOOL, values, BOOLEAN)
        there = {name: convert(each, apply, BOOLEAN) for name, each in documents.items()}
        world = evaluate_query(load_query(text, BOOLEAN), there, BOOLEAN)
        chance = prod(ODDS[name] if values[name] else 1 - ODDS[name] for name in ODDS)
        expected[world] = expected.get(world, 0.0) + chance
    found = worlds(answer, POSBOOL, coin_flips(ODDS), BOOLEAN)
    assert {world for world, chance in found.items() if chance} == {
        world for world, chance in expected.items() if chance
    }
    assert all(isclose(chance, expected[world], abs_tol=1e-9) for world, chance in found.items() if chance)
    likelihood = Likelihood(answer, ODDS)
    for tree in {tree for world in expected for tree in world}:
        chance = sum(chance for world, chance in expected.items() if tree in world)
        assert isclose(likelihood.of_tree(tree), chance, abs_tol=1e-9)


def test_probabilities_of_nodes_count_all_around_them() -> None:
    document = parse_document('<a><b annot="p"><c annot="q">1</c><d annot="p"/></b></a>', POSBOOL).forest
    lines = list(text_lines(document, Likelihood(document, {"p": 0.5, "q": 0.5}).of_node))
    assert lines == ["a", "└─ b  ^ 0.5", "   ├─ c = 1  ^ 0.25", "   └─ d  ^ 0.5"]


def test_worlds_with_repetitions() -> None:
    """Multiplicities with 2^-n for n > 0: y2 = 2 repeats the child c."""
    source = figure_64(NATURAL_POLYNOMIALS, x1=NATURAL_POLYNOMIALS.one, x2=NATURAL_POLYNOMIALS.one)
    choices = {"y1": {0: 0.5, 1: 0.5}, "y2": {1: 0.5, 2: 0.25, 3: 0.25}, "y3": {0: 1.0}}
    answer = evaluate_query(load_query("$T//c", NATURAL_POLYNOMIALS), {"T": source}, NATURAL_POLYNOMIALS)
    found = worlds(answer, NATURAL_POLYNOMIALS, choices, NATURAL)
    leaf = KSets(NATURAL).leaf("c")
    assert {world.get(leaf, 0): chance for world, chance in found.items()} == {0: 0.5, 1: 0.25, 2: 0.125, 3: 0.125}


def test_too_many_worlds_are_refused() -> None:
    children = "".join(f'<b annot="x{number}">{number}</b>' for number in range(20))
    document = parse_document(f"<a>{children}</a>", POSBOOL).forest
    odds = {f"x{number}": 0.5 for number in range(20)}
    with pytest.raises(NotInThisSemiring, match="20 variables have 1,048,576 valuations"):
        worlds(document, POSBOOL, coin_flips(odds), BOOLEAN)
    with pytest.raises(NotInThisSemiring, match="tells more than posbool knows"):
        worlds(document, POSBOOL, {name: {1: 1.0} for name in odds}, NATURAL)
