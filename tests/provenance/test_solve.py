"""Least solutions against naive iteration and against derivation trees, listed one by one."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.provenance.graphs import graph_of, leaves, trees, value_of
from tests.semiring.programs import Annotatable, programs
from tests.semiring.values import VALUES

from whence.lang.types import Tuple
from whence.provenance.graph import Cut, DerivationGraph, Fact
from whence.provenance.series import Shape, coefficient, polynomials, series, shapes
from whence.provenance.solve import equations_of, solve_graph
from whence.reference.annotated import evaluate_annotated
from whence.semiring import (
    INFINITY,
    NATURAL_POLYNOMIALS,
    SEMIRINGS,
    Boolean,
    Counting,
    Custom,
    NotInThisSemiring,
    Polynomial,
    Product,
    Properties,
    Tropical,
    Why,
)
from whence.semiring.equations import solve
from whence.semiring.homomorphisms import HIERARCHY, specialize
from whence.semiring.polynomials import monomial

SLOW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
# Truncated series multiply out to too much for naive iteration; they are compared with trees below.
EVALUATED = [name for name in VALUES if name != "series"]


def annotations(data: st.DataObject, name: str, graph: DerivationGraph) -> dict[Fact, object]:
    _, values = VALUES[name]
    return {fact: data.draw(values) for fact in sorted(graph.base)}


@SLOW
@given(run=programs(), data=st.data())
def test_least_solutions_are_what_naive_iteration_ends_with(run: Annotatable, data: st.DataObject) -> None:
    graph = graph_of(run.program, run.facts)
    assume(len(graph.derivations) < 25)
    for name in EVALUATED:
        check_least_solution(name, run, graph, annotations(data, name, graph))


def check_least_solution(name: str, run: Annotatable, graph: DerivationGraph, given: dict[Fact, object]) -> None:
    semiring, _ = VALUES[name]

    def annotate(relation: str, row: Tuple) -> object:
        return given[Fact(relation, row)]

    try:
        expected = evaluate_annotated(run.program, run.facts, semiring, annotate)
    except NotInThisSemiring:
        with pytest.raises(NotInThisSemiring, match="infinitely many derivations"):
            solve_graph(graph, semiring, given.get)
        return
    found = solve_graph(graph, semiring, given.get)
    for fact, value in found.items():
        assert value == expected[fact.relation].get(fact.tuple, semiring.zero), fact
    assert {fact for fact, value in found.items() if value != semiring.zero} == {
        (name, row) for name, rows in expected.items() for row in rows
    }


def tree_counts(graph: DerivationGraph, height: int) -> list[dict[Fact, int]]:
    """For each height up to the given one, how many trees are no higher."""
    counts = [{fact: int(fact in graph.base) for fact in graph.facts}]
    for _ in range(height):
        counts.append(
            {
                fact: int(fact in graph.base)
                + sum(prod(counts[-1][each] for each in found.body) for found in graph.derivations.get(fact, ()))
                for fact in graph.facts
            }
        )
    return counts


def few_trees(graph: DerivationGraph, height: int) -> dict[Fact, list[object]]:
    """All trees up to a height, for graphs that do not have too many."""
    facts = sorted(graph.facts)
    assume(len(facts) <= 12)
    assume(all(count < 300 for count in tree_counts(graph, height)[-1].values()))
    return {fact: list(trees(graph, fact, height)) for fact in facts}


@SLOW
@given(run=programs(), data=st.data())
def test_absorptive_values_are_sums_over_trees_that_repeat_nothing(run: Annotatable, data: st.DataObject) -> None:
    graph = graph_of(run.program, run.facts)
    # A tree that repeats nothing on a path is no higher than there are derived facts.
    listed = few_trees(graph, len(graph.derivations))
    for name in ("tropical", "posbool", "access", "viterbi", "boolean", "fuzzy"):
        semiring, _ = VALUES[name]
        given = annotations(data, name, graph)
        found = solve_graph(graph, semiring, given.get)
        for fact, of in listed.items():
            assert found[fact] == semiring.sum([value_of(tree, semiring, given) for tree in of]), fact


@SLOW
@given(run=programs(), data=st.data())
def test_polynomials_and_series_count_trees_by_their_leaves(run: Annotatable, data: st.DataObject) -> None:
    graph = graph_of(run.program, run.facts)
    size = len(graph.derivations)
    listed = few_trees(graph, size + 2)
    counts = tree_counts(graph, 2 * size)
    equations = equations_of(graph, NATURAL_POLYNOMIALS)
    finite, shape = polynomials(equations), shapes(equations)
    infinite = series(equations, 4)
    for fact, of in listed.items():
        tally: dict[object, int] = {}
        for tree in of:
            bag = monomial(*leaves(tree))
            tally[bag] = tally.get(bag, 0) + 1
        if shape[fact] is Shape.POLYNOMIAL:
            assert finite[fact] == NATURAL_POLYNOMIALS.of(tally)  # type: ignore[arg-type]
            assert counts[-1][fact] == counts[size][fact] == len(of)
        else:
            assert finite[fact] is None
            # A tree higher than there are derived facts has one of them twice on a path, and can grow there.
            assert counts[-1][fact] > counts[size][fact]
        for bag, count in infinite[fact].terms:
            assert count >= tally.get(bag, 0)
            assert coefficient(equations, fact, bag) == count
            if count == INFINITY:
                assert shape[fact] in (Shape.INFINITE_COEFFICIENTS, Shape.BOTH)


@SLOW
@given(run=programs(), data=st.data())
def test_homomorphisms_commute_with_evaluation(run: Annotatable, data: st.DataObject) -> None:
    graph = graph_of(run.program, run.facts)
    assume(len(graph.derivations) < 25)
    for each in HIERARCHY:
        try:
            above = solve_graph(graph, each.source)
        except NotInThisSemiring:
            continue
        below = solve_graph(graph, each.target)
        assert {fact: each(value) for fact, value in above.items()} == below


@SLOW
@given(run=programs(), data=st.data())
def test_polynomials_specialize_to_every_semiring(run: Annotatable, data: st.DataObject) -> None:
    graph = graph_of(run.program, run.facts)
    assume(len(graph.derivations) < 25)
    finite = polynomials(equations_of(graph, NATURAL_POLYNOMIALS))
    for name in EVALUATED:
        check_specialization(name, graph, finite, annotations(data, name, graph))


def check_specialization(
    name: str, graph: DerivationGraph, finite: dict[Fact, Polynomial[int] | None], given: dict[Fact, object]
) -> None:
    semiring, _ = VALUES[name]
    apply = specialize(semiring, lambda fact: given[fact])  # type: ignore[index]
    expected = {fact: apply(each) for fact, each in finite.items() if each is not None}
    try:
        found = solve_graph(graph, semiring, given.get)
    except NotInThisSemiring:
        assert len(expected) < len(finite)
        return
    assert {fact: found[fact] for fact in expected} == expected


def test_the_parts_of_a_product_are_solved_each_in_its_own_way() -> None:
    equations = {"x": [((1, 1, Why().variable("p")), ()), ((1, 1, Why().variable("q")), ("x",))]}
    both = Product(Counting(), Tropical(), Why())
    assert solve(equations, both)["x"] == (INFINITY, 1, frozenset({frozenset("p"), frozenset("pq")}))


def test_a_graph_that_was_cut_off_is_refused() -> None:
    fact = Fact("p", (1,))
    graph = DerivationGraph((fact,), {}, frozenset(), Cut("depth 3", frozenset({fact})))
    with pytest.raises(ValueError, match=r"the graph is cut off \(depth 3\)"):
        solve_graph(graph, Boolean())


def test_a_multiplication_with_an_order_is_refused() -> None:
    words = Custom(
        "words", zero=None, one="", plus=lambda a, _: a, times=lambda a, b: a, properties=Properties(commutative=False)
    )
    with pytest.raises(NotInThisSemiring, match="order matters"):
        solve_graph(DerivationGraph((), {}, frozenset()), words)


def test_wrong_annotations_are_refused() -> None:
    fact = Fact("p", (1,))
    with pytest.raises(ValueError, match="-1 is not a cost"):
        solve_graph(DerivationGraph((fact,), {}, frozenset({fact})), SEMIRINGS["tropical"], {fact: -1}.get)


def test_deep_graphs_do_not_exhaust_the_stack() -> None:
    chain = {n: [(1, (n + 1,))] for n in range(20_000)} | {20_000: [(1, ())]}
    assert solve(chain, Tropical())[0] == 20_001
