"""Values nested deeper than Python recurses."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence import Session, Update, load
from whence.lang.deep import Compound, compound
from whence.lang.types import Value, Variant

DEEP = 50_000


def linked(count: int, last: Value = None) -> Value:
    value = last
    for each in range(count):
        value = compound((each, value))
    return value


def branched(count: int) -> Value:
    value: Value = Variant("Nil")
    for each in range(count):
        value = Variant("Cons", compound((each, value)))
    return value


def test_deep_values_are_hashed_and_compared() -> None:
    for make in (linked, branched):
        one, other = make(DEEP), make(DEEP)
        assert one is not other
        assert hash(one) == hash(other)
        assert one == other
        assert len({one, other}) == 1
    assert linked(DEEP, 1) != linked(DEEP, 2)
    assert not linked(DEEP, 1) == linked(DEEP, 2)  # noqa: SIM201 - both operators are ours
    assert (linked(DEEP),) == (linked(DEEP),)


def test_deep_values_are_shown_pickled_and_let_go() -> None:
    value = linked(DEEP)
    assert repr(value).startswith(f"({DEEP - 1}, ({DEEP - 2}, ")
    assert pickle.loads(pickle.dumps(value)) == value
    assert pickle.loads(pickle.dumps(branched(DEEP))) == branched(DEEP)


leaves = st.none() | st.integers() | st.text(max_size=2) | st.floats(allow_nan=False)
plain = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=40).map(tuple) | st.builds(Variant, st.text(max_size=1), st.tuples(inner)),
    max_leaves=60,
)


def rebuilt(value: Value) -> Value:
    if isinstance(value, Variant):
        return Variant(value.branch, compound(map(rebuilt, value.args)))
    return compound(map(rebuilt, value)) if isinstance(value, tuple) else value


@given(plain, plain)
def test_compounds_are_what_tuples_are(one: Value, other: Value) -> None:
    assert rebuilt(one) == one
    assert one == rebuilt(one)
    assert hash(rebuilt(one)) == hash(one)
    assert (rebuilt(one) == rebuilt(other)) is (one == other)
    assert (rebuilt(one) != other) is (one != other)
    assert repr(rebuilt(one)) == repr(one)
    assert pickle.loads(pickle.dumps(rebuilt(one))) == one


def test_only_what_holds_many_values_is_more_than_a_tuple() -> None:
    assert type(compound((1, (2, (3, None))))) is tuple
    assert isinstance(compound(range(100)), Compound)
    assert compound(range(100)) != 1
    assert compound(range(100)) != tuple(range(99))


def plainly_linked(count: int) -> Value:
    value: Value = None
    for each in range(count):
        value = (each, value)
    return value


def test_sessions_take_deep_tuples_from_python() -> None:
    program = load(".type L = [x: number, next: L] .decl f(l: L) .input f .decl g(l: L) g([0, l]) :- f(l). .output g")
    session = Session(program, facts={"f": [(plainly_linked(5000),)]})
    assert session.apply([Update("+", "f", (plainly_linked(5000),))]).ignored == 1
    assert list(session.relation("g")) == [(compound((0, linked(5000))),)]
    session.apply([Update("-", "f", (plainly_linked(5000),))])
    assert list(session.relation("g")) == []
    with pytest.raises(ValueError, match="f: column l cannot hold"):
        session.apply([Update("+", "f", (("x", plainly_linked(5000)),))])
