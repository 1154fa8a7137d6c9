import warnings

import pytest

from whence import load
from whence.reference import small
from whence.reference.small import MOST_FACTS, evaluate_if_small

CLOSURE = """
.decl link(x: number, y: number) .input link
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""


def test_little_work_is_done() -> None:
    views = evaluate_if_small(load(CLOSURE), {"link": {(1, 2), (2, 1)}})
    assert views is not None
    assert views["reach"] == {(1, 2), (2, 1), (1, 1), (2, 2)}


def test_many_facts_are_left_to_the_engine() -> None:
    program = load(CLOSURE)
    assert evaluate_if_small(program, {"link": {(2 * at, 2 * at + 1) for at in range(MOST_FACTS + 1)}}) is None
    assert evaluate_if_small(program, {"link": {(2 * at, 2 * at + 1) for at in range(MOST_FACTS)}}) is not None


@pytest.mark.parametrize(
    "text",
    [
        "n(0). n(x + 1) :- n(x). .output n",  # has no end
        "n(x) :- x = range(0, 1000000000), x < 0. .output n",
        's("a"). s(cat(x, x)) :- s(x). .output s',  # ends at the largest text there can be
    ],
)
def test_work_that_turns_out_large_is_left_to_the_engine(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "PATIENCE", 0.02)
    assert evaluate_if_small(load(text), {}) is None


def test_what_depends_on_how_it_is_evaluated_is_left_to_the_engine() -> None:
    assert evaluate_if_small(load("p(1). q(x, autoinc()) :- p(x). .output q"), {}) is None
    called = load(".functor f(x: number): number  p(1). q(@f(x)) :- p(x). .output q", functions={"f": lambda x: x})
    assert evaluate_if_small(called, {}) is None


def test_warnings_are_given_once_and_only_with_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'p("x"). q(to_number(t)) :- p(t). n(0). n(x + 1) :- n(x), x < {}. .output q, n'
    with pytest.warns(UserWarning, match="nothing is derived there") as met:
        assert evaluate_if_small(load(text.format(3)), {}) is not None
    assert len(met) == 1
    monkeypatch.setattr(small, "PATIENCE", 0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate_if_small(load(text.format(10**9)), {}) is None
