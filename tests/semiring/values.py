"""Hypothesis strategies for the values of each semiring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from whence.semiring import (
    BOOLEAN_POLYNOMIALS,
    INFINITY,
    INTEGER_POLYNOMIALS,
    NATURAL_POLYNOMIALS,
    SEMIRINGS,
    TRIO,
    Counting,
    Custom,
    Natural,
    Polynomials,
    PosBool,
    Product,
    Properties,
    Semiring,
    Tropical,
    Why,
    events,
)
from whence.semiring.polynomials import monomial
from whence.semiring.witnesses import NOTHING, minimal

TOKENS = st.sampled_from("pqrs")
# Eighths multiply exactly as floats, so that laws hold to the last bit.
degrees = st.integers(0, 8).map(lambda eighths: eighths / 8)
naturals = st.integers(0, 9)
extended = st.one_of(naturals, st.just(INFINITY))
sets = st.frozensets(TOKENS, max_size=3)
families = st.frozensets(sets, max_size=4)
bags = st.lists(TOKENS, max_size=3).map(lambda names: monomial(*names))


def polynomials_in(semiring: Polynomials[Any], coefficients: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    terms = st.dictionaries(bags, coefficients, max_size=3)
    # Multiplying by one brings monomials into the semiring's own form.
    return terms.map(lambda each: semiring.times(semiring.of(each), semiring.one))


PAIR = Product(Tropical(), Why())
EVENTS = events("pqrs")
BANDWIDTH = Custom(
    "bandwidth",
    zero=0,
    one=10**9,
    plus=max,
    times=min,
    properties=Properties(idempotent=True, absorptive=True, selective=True, lattice=True, positive=True, stable=True),
)
TROPICAL_POLYNOMIALS = Polynomials("tropical-polynomial", Tropical())
VALUES: Mapping[str, tuple[Semiring[Any], st.SearchStrategy[Any]]] = {
    each.name: (each, values)
    for each, values in (
        (SEMIRINGS["boolean"], st.booleans()),
        (Natural(), naturals),
        (Counting(), extended),
        (Tropical(), extended),
        (SEMIRINGS["viterbi"], degrees),
        (SEMIRINGS["fuzzy"], degrees),
        (SEMIRINGS["access"], st.sampled_from(("public", "confidential", "secret", "top-secret", "nobody"))),
        (SEMIRINGS["lineage"], st.one_of(st.just(NOTHING), sets)),
        (Why(), families),
        (PosBool(), families.map(minimal)),
        (TRIO, polynomials_in(TRIO, naturals)),
        (BOOLEAN_POLYNOMIALS, polynomials_in(BOOLEAN_POLYNOMIALS, st.booleans())),
        (NATURAL_POLYNOMIALS, polynomials_in(NATURAL_POLYNOMIALS, naturals)),
        (SEMIRINGS["series"], polynomials_in(SEMIRINGS["series"], extended)),  # type: ignore[arg-type]
        (SEMIRINGS["integer"], st.integers(-9, 9)),
        (INTEGER_POLYNOMIALS, polynomials_in(INTEGER_POLYNOMIALS, st.integers(-9, 9))),
        (TROPICAL_POLYNOMIALS, polynomials_in(TROPICAL_POLYNOMIALS, extended)),
        (PAIR, st.tuples(extended, families)),
        (EVENTS, st.frozensets(TOKENS)),
        (BANDWIDTH, st.integers(0, 10**9)),
    )
}
