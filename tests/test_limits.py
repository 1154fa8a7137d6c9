"""Limits hold inside one join, one functor and one value, in both evaluators."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from whence import load
from whence.lang.program import Program
from whence.lang.sizes import LARGEST_TEXT
from whence.limits import Limits, RunawayError
from whence.memory import Memory, MemoryWatch
from whence.reference import evaluate as evaluate_naively
from whence.reference.annotated import evaluate_annotated
from whence.semiring import SEMIRINGS
from whence.session import Session, evaluate

EVALUATORS = pytest.mark.parametrize("run", [evaluate, evaluate_naively], ids=["engine", "reference"])
Run = Callable[..., object]

ENDLESS = {
    "a join": "n(x) :- x = range(0, 20000). p(a) :- n(a), n(b), n(d), a + b * d = -5.",
    "a join with a text in it": 'n(x) :- x = range(0, 20000). p(a) :- n(a), n(b), cat(to_string(a), to_string(b)) = "x".',
    "a range": "p(x) :- x = range(0, 1000000000000), x < 0.",
    "a match": f't("{"a" * 60}b"). p(1) :- t(x), match("(a|aa)+", x).',
    "a match that is not to be": f't("{"a" * 60}b"). p(1) :- t(x), !match("(a|aa)+", x).',
}


@EVALUATORS
@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_time_is_looked_at_inside(text: str, run: Run) -> None:
    program = load(f"{text} .decl p(x:number) .output p")
    with pytest.raises(RunawayError, match=r"^stopped after 0.3 s"):
        run(program, {}, limits=Limits(timeout=0.3))


GROWING = {
    "a record": ".type T = [a:T, b:T] .decl s(x:T) s(nil). s([x, x]) :- s(x).",
    "a branch": ".type T = L {} | N {a:T, b:T} .decl s(x:T) s($L()). s($N(x, x)) :- s(x).",
    "a list": ".decl s(x:list<number>) s([1]). s(concat(x, x)) :- s(x).",
    "a list of lists": ".type R = [a:list<R>] .decl s(x:R) s([[]]). s([[x, x]]) :- s(x).",
}


@EVALUATORS
@pytest.mark.parametrize("text", GROWING.values(), ids=GROWING)
def test_a_value_that_doubles_is_stopped(text: str, run: Run) -> None:
    with pytest.raises(RunawayError, match=r"^stopped: rule s#2 .* makes a value of more than 1,048,576 parts"):
        run(load(f"{text} .output s"), {})


@EVALUATORS
def test_a_text_that_doubles_is_stopped(run: Run) -> None:
    with pytest.raises(RunawayError, match=r"^stopped: rule s#2 .* makes a text of 33,554,432 characters"):
        run(load('.decl s(x:symbol) s("a"). s(cat(x, x)) :- s(x). .output s'), {})


@EVALUATORS
def test_a_function_may_not_return_a_larger_value_than_a_rule_may_make(run: Run) -> None:
    program = load(
        ".functor f(n:number):symbol p(@f(n)) :- q(n). q(1). .output p",
        functions={"f": lambda n: "x" * (LARGEST_TEXT + n)},
    )
    with pytest.raises(RunawayError, match=r"^stopped: rule p#1 .* makes a text of 16,777,217 characters"):
        run(program, {})


def test_a_value_from_outside_may_be_larger() -> None:
    session = Session(load(".decl s(x:symbol) .input s .output s"), facts={"s": [("x" * (LARGEST_TEXT + 1),)]})
    assert len(session.relation("s")) == 1


CLOSURE = ".decl e(x:number, y:number) .input e r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z). .output r"


@EVALUATORS
def test_what_would_take_all_memory_is_stopped_with_what_is_largest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryWatch, "look", lambda _: Memory(7_000_000_000, 1_000_000_000))
    facts = {"e": [(at, (at * 7 + 3) % 3000) for at in range(3000)] + [(at, at + 1) for at in range(3000)]}
    with pytest.raises(RunawayError) as caught:
        run(load(CLOSURE), facts)
    first, largest, *_, hint = str(caught.value).splitlines()
    assert "before memory runs out: 7.0 GB are in use, and 6.0 of the 8.0 GB there are may be" in first
    assert largest.startswith("  largest: ")
    assert "x < 100" in hint
    assert "more memory" in hint


def test_without_the_limit_memory_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryWatch, "look", lambda _: Memory(7_000_000_000, 0))
    program: Program = load(CLOSURE)
    assert evaluate_naively(program, {"e": [(1, 2)]}, limits=Limits(within_memory=False))["r"] == {(1, 2)}


@pytest.mark.parametrize("limits", [Limits(timeout=0.0), Limits(max_rounds=2), Limits(max_tuples=10)])
def test_annotating_naively_keeps_to_the_limits(limits: Limits) -> None:
    facts = {"e": [(at, at + 1) for at in range(8)]}
    with pytest.raises(RunawayError, match=r"^stopped"):
        evaluate_annotated(load(CLOSURE), facts, SEMIRINGS["counting"], limits=limits)
