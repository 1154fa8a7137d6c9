"""Programs evaluated in semirings by the engine, against naive iteration."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.semiring.programs import Annotatable, programs
from tests.semiring.values import VALUES

from whence import load
from whence.annotated import evaluate_annotated
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference.annotated import base_facts
from whence.reference.annotated import evaluate_annotated as evaluate_naively
from whence.semiring import (
    NATURAL_POLYNOMIALS,
    SEMIRINGS,
    Access,
    Counting,
    Integer,
    Natural,
    NotInThisSemiring,
    PosBool,
    PowerSeries,
    Product,
    Semiring,
    Tropical,
    Viterbi,
    Why,
)

CLOSURE = """
.decl link(x: symbol, y: symbol)
.input link
one: reach(x, y) :- link(x, y).
more: reach(x, z) :- reach(x, y), link(y, z).
"""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(run=programs(negation=True), data=st.data())
def test_the_engine_agrees_with_naive_iteration(run: Annotatable, data: st.DataObject) -> None:
    facts = sorted(base_facts(run.program, run.facts))
    for name, (semiring, values) in VALUES.items():
        if name == "series":
            continue
        given = {fact: data.draw(values) for fact in facts}

        def annotate(relation: str, row: Tuple, given: dict[object, object] = given) -> object:  # type: ignore[assignment]
            return given[relation, row]

        factors = {rule.name: data.draw(values) for rule in run.program.rules[:1]}
        expected = _outcome(evaluate_naively, run, semiring, annotate, factors)
        assert _outcome(evaluate_annotated, run, semiring, annotate, factors) == expected, name


def _outcome(
    evaluator: Callable[..., object], run: Annotatable, semiring: Semiring[Any], annotate: object, rules: object
) -> object:
    """The views, or why there are none; which of the tuples on a cycle is named does not matter."""
    try:
        return evaluator(run.program, run.facts, semiring, annotate, rules=rules)
    except NotInThisSemiring as refusal:
        return str(refusal).partition(" has ")[2]


weighted = st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.integers(0, 9), min_size=1, max_size=20)


@settings(deadline=None)
@given(costs=weighted)
def test_cheapest_paths_are_dijkstras(costs: dict[tuple[int, int], int]) -> None:
    program = load(CLOSURE.replace("symbol", "number"))
    found = evaluate_annotated(program, {"link": costs}, Tropical(), lambda _, row: costs[row])["reach"]  # type: ignore[index]
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((x, y, cost) for (x, y), cost in costs.items())
    expected = {}
    for source in graph:
        first_steps = {target: cost for (start, target), cost in costs.items() if start == source}
        for target in graph:
            lengths = [
                cost + nx.dijkstra_path_length(graph, via, target)
                for via, cost in first_steps.items()
                if nx.has_path(graph, via, target)
            ]
            if lengths:
                expected[source, target] = min(lengths)
    assert found == expected
    assert all(type(cost) is int for cost in found.values())


def test_paths_are_counted_and_cycles_are_infinite() -> None:
    links = {"link": [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("x", "x"), ("x", "y")]}
    found = evaluate_annotated(load(CLOSURE), links, Counting())["reach"]
    assert found["a", "e"] == 2
    assert found["x", "y"] == found["x", "x"] == inf
    without = {"link": [link for link in links["link"] if "x" not in link]}
    assert evaluate_annotated(load(CLOSURE), without, Natural())["reach"]["a", "e"] == 2
    assert evaluate_annotated(load(CLOSURE), without, Integer(), lambda *_: -1)["reach"]["a", "d"] == 2
    with pytest.raises(
        NotInThisSemiring, match=r'reach\("x", ".*"\) has infinitely many derivations, .*: natural has no value'
    ):
        evaluate_annotated(load(CLOSURE), links, Natural())


def test_counts_do_not_overflow() -> None:
    rungs = [(f"{at}{side}", f"{at + 1}{other}") for at in range(100) for side in "lr" for other in "lr"]
    found = evaluate_annotated(load(CLOSURE), {"link": rungs}, Counting())["reach"]
    assert found["0l", "100r"] == 2**99


def test_tuples_stand_for_themselves() -> None:
    found = evaluate_annotated(load(CLOSURE + 'link("a", "b").'), {"link": [("b", "c"), ("c", "b")]}, PosBool())[
        "reach"
    ]
    assert PosBool().format(found["a", "c"]) == '{{link("a", "b"), link("b", "c")}}'
    assert (
        Why().format(evaluate_annotated(load(CLOSURE), {"link": [("a", "a")]}, Why())["reach"]["a", "a"])
        == '{{link("a", "a")}}'
    )


def test_series_of_a_cyclic_program() -> None:
    found = evaluate_annotated(
        load(CLOSURE), {"link": [("a", "a")]}, PowerSeries.up_to(3), lambda *_: PowerSeries.up_to(3).variable("p")
    )
    assert str(found["reach"]["a", "a"]) == "p + p^2 + p^3"


def test_products_are_evaluated_side_by_side() -> None:
    costs = {("a", "b"): 2, ("b", "a"): 3}
    both = Product(Tropical(), Counting(), PosBool())
    found = evaluate_annotated(
        load(CLOSURE), {"link": costs}, both, lambda _, row: (costs[row], 1, PosBool().variable("".join(row)))
    )  # type: ignore[index, arg-type]
    assert found["reach"]["a", "a"] == (5, inf, frozenset({frozenset({"ab", "ba"})}))


def test_rules_may_cost_something() -> None:
    found = evaluate_annotated(load(CLOSURE), {"link": [("a", "b"), ("b", "c")]}, Tropical(), rules={"more": 10})
    assert found["reach"] == {("a", "b"): 0, ("b", "c"): 0, ("a", "c"): 10}


def test_every_value_of_a_range_is_a_derivation() -> None:
    program = load(".decl n(x: number) n(2). m(x) :- n(y), x = range(0, y). k(1) :- n(y), x = range(0, y), x < 5.")
    assert evaluate_annotated(program, {}, Natural()) == evaluate_naively(program, {}, Natural())
    assert evaluate_annotated(program, {}, Natural())["k"] == {(1,): 2}


def test_what_is_zero_is_not_there() -> None:
    program = load(CLOSURE + "alone(x) :- link(x, _), !reach(x, x).")
    links = {"link": [("a", "b"), ("b", "a")]}
    found = evaluate_annotated(program, links, Access(), lambda _, row: "nobody" if row == ("b", "a") else "secret")
    assert found == {"link": {("a", "b"): "secret"}, "reach": {("a", "b"): "secret"}, "alone": {("a",): "secret"}}


def test_costs_beyond_exact_floats_stay_exact() -> None:
    large = 2**60 + 1
    found = evaluate_annotated(
        load(CLOSURE), {"link": [("a", "b"), ("b", "c"), ("c", "a")]}, Tropical(), lambda *_: large
    )
    assert found["reach"]["a", "c"] == 2 * large


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("n(c) :- c = count : { link(_, _) }.", "tropical", r"^t.dl:6: rule n#1 has an aggregate"),
        ("n(x) :- link(x, _), !reach(x, x).", "integer", r"^t.dl:6: rule n#1 has a negation, but in integer tuples"),
        ("n(autoinc()) :- link(_, _).", "tropical", r"^t.dl:6: rule n#1 has autoinc"),
        (".decl same(x: symbol, y: symbol) eqrel same(x, y) :- link(x, y).", "tropical", "^same is an eqrel"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_with_its_place(text: str, name: str, message: str) -> None:
    with pytest.raises(NotInThisSemiring, match=message):
        evaluate_annotated(load(f"{CLOSURE}{text}", name="t.dl"), {}, SEMIRINGS[name])


def test_wrong_annotations_are_named() -> None:
    with pytest.raises(ValueError, match="2 is not a degree between 0 and 1"):
        evaluate_annotated(load(CLOSURE), {"link": [("a", "b")]}, Viterbi(), lambda *_: 2)


def test_a_recursion_without_end_is_stopped() -> None:
    program = load(".decl n(x: number) n(0). n(x + 1) :- n(x).")
    with pytest.raises(RunawayError, match="keeps deriving"):
        evaluate_annotated(program, {}, NATURAL_POLYNOMIALS, limits=Limits(max_rounds=20))
