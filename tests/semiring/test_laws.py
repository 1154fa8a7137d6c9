from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.semiring.values import VALUES

from whence.semiring import SEMIRINGS, Custom, Natural, Properties, Tropical
from whence.semiring.laws import PROMISES, LawBroken, check_laws, laws_of


def test_every_named_semiring_is_tested() -> None:
    assert SEMIRINGS.keys() <= VALUES.keys()


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_laws_and_declared_properties_hold(name: str, data: st.DataObject) -> None:
    semiring, values = VALUES[name]
    triple = data.draw(st.tuples(values, values, values))
    assert all(semiring.contains(value) for value in triple)
    for law, holds in laws_of(semiring):
        assert holds(semiring, *triple), law


# Values that show what a semiring does not declare; where there are none, the property follows from others or is declared.
COUNTEREXAMPLES = {
    "natural": {"idempotent": (1,), "absorptive": (1,), "selective": (1, 1), "lattice": (2, 1), "stable": (2,)},
    "counting": {"idempotent": (1,), "absorptive": (1,), "selective": (1, 1), "lattice": (2, 1), "stable": (1,)},
    "integer": {"positive": (1, -1), "idempotent": (1,), "stable": (2,)},
    "tropical": {"lattice": (1, 1)},
    "viterbi": {"lattice": (0.5, 0.5)},
    "lineage": {"absorptive": (frozenset("p"),), "selective": (frozenset("p"), frozenset("q"))},
    "why": {"absorptive": (frozenset({frozenset("p")}),)},
    "posbool": {"selective": (frozenset({frozenset("p")}), frozenset({frozenset("q")}))},
    "events": {"positive": (frozenset("p"), frozenset("q"))},
    "tropical x why": {"positive": ((0, frozenset()), (float("inf"), frozenset({frozenset()})))},
}


@pytest.mark.parametrize(("name", "missing"), [(name, each) for name, of in COUNTEREXAMPLES.items() for each in of])
def test_what_is_not_declared_does_not_hold(name: str, missing: str) -> None:
    semiring, _ = VALUES[name]
    values = (*COUNTEREXAMPLES[name][missing], semiring.one, semiring.one)[:3]
    assert not getattr(semiring.properties, missing)
    assert not PROMISES[missing](semiring, *values)


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_sums_and_powers_by_doubling(name: str, data: st.DataObject) -> None:
    semiring, values = VALUES[name]
    value, count = data.draw(values), data.draw(st.integers(0, 6))
    assert semiring.multiple(count, value) == semiring.sum([value] * count)
    assert semiring.power(value, count) == semiring.product([value] * count)


@pytest.mark.parametrize(
    "name", ["boolean", "natural", "counting", "tropical", "viterbi", "fuzzy", "access", "integer"]
)
@given(data=st.data())
def test_values_read_back_from_their_text(name: str, data: st.DataObject) -> None:
    semiring, values = VALUES[name]
    value = data.draw(values)
    assert semiring.parse(semiring.format(value)) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("boolean", "maybe", "'maybe' is neither true nor false"),
        ("natural", "-1", "-1 is not a value of natural"),
        ("natural", "1.5", "'1.5' is not a whole number"),
        ("tropical", "-2", "-2 is not a cost: tropical takes numbers from 0, and inf for what is not there"),
        ("tropical", "nan", "nan is not a cost"),
        ("tropical", "far", "'far' is not a number"),
        ("viterbi", "1.5", "1.5 is not a degree between 0 and 1"),
        ("access", "vip", "'vip' is not a level of access: there are public, confidential, secret, top-secret, nobody"),
    ],
)
def test_wrong_values_are_named(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SEMIRINGS[name].parse(text)


def test_properties_that_follow_have_to_be_declared() -> None:
    with pytest.raises(ValueError, match="absorptive is also idempotent"):
        Properties(absorptive=True)


def test_a_semiring_that_breaks_its_promise_is_found_out() -> None:
    promise = Properties(idempotent=True)
    with pytest.raises(LawBroken, match="sum: it is idempotent does not hold for 1, 0, 0"):
        check_laws(Custom("sum", zero=0, one=1, plus=int.__add__, times=int.__mul__, properties=promise), [2])


def test_subtracting_costs_is_not_a_difference_of_costs() -> None:
    assert Tropical().minus(3, 5) == 3
    assert Tropical().minus(5, 3) == float("inf")
    assert Natural().minus(3, 5) == 0
