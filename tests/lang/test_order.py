"""Safety: which bodies can be evaluated, and in what order."""

from __future__ import annotations

import pytest

from whence.lang import ProgramError, load
from whence.lang.program import Atom, Comparison, Literal, Negation

BASE = (
    ".type P = [a: number, b: number]\n.decl a(x: number)\n.input a\n.decl e(x: number, y: number)\n.input e\n"
    ".decl p(p: P)\n.input p\n.decl l(l: list<number>)\n.input l\n"
)


def shape(literal: Literal) -> str:
    match literal:
        case Atom(relation=relation):
            return relation
        case Negation(atom=atom):
            return f"!{atom.relation}"
        case Comparison(op=op):
            return op
        case _:
            return type(literal).__name__


def ordered(rule: str) -> str:
    return " ".join(shape(literal) for literal in load(BASE + rule).rules[0].body)


def unbound(rule: str) -> list[str]:
    with pytest.raises(ProgramError) as caught:
        load(BASE + rule)
    return [each.text.split()[1] for each in caught.value.diagnostics if each.code == "W0203"]


@pytest.mark.parametrize(
    ("rule", "order"),
    [
        ("r(x) :- a(x), e(x, y), y > 1.", "a e >"),
        ("r(x) :- y > 1, e(x, y), a(x).", "e > a"),
        ("r(x) :- !a(x), e(x, _).", "e !a"),
        ("r(y) :- a(x), a(z), e(x, y), z < 3.", "a e a <"),
        ("r(y) :- a(z), e(x, y), x = 1, z < 3.", "= e a <"),
        ("r(y) :- y = x + 1, a(x).", "a ="),
        ("r(z) :- z = y + 1, y = x + 1, a(x).", "a = ="),
        ("r(x) :- [x, _] = p, p(p).", "p ="),
        ("r(x) :- p([x, y]), y > x.", "p >"),
        ("r(x) :- l([x | rest]), l(rest).", "l l"),
        ("r(n) :- n = count : { e(x, _) }, a(x).", "a Aggregation"),
        ("r(x) :- x = range(0, y), a(y).", "a Generator"),
        ("r(x) :- e(x, x + 1).", "e"),
        ("r(x) :- e(x, y + 1), a(y).", "a e"),
        # Each waits for the other: of the first, the expression becomes a test.
        ("r(x) :- e(x - 1, y), e(y - 1, x).", "e e ="),
        ("r(x) :- p([x - 1, y]), e(y + 1, x).", "p e ="),
        ("r(n) :- n = count : { e(x - 1, y), e(y - 1, x) }.", "Aggregation"),
    ],
)
def test_tests_come_as_early_as_their_variables_allow(rule: str, order: str) -> None:
    assert ordered(rule) == order


@pytest.mark.parametrize(
    ("rule", "variables"),
    [
        ("r(y) :- a(x).", ["y"]),
        ("r(x) :- x > 1.", ["x"]),
        ("r(x) :- a(x), !e(x, y).", ["y"]),
        ("r(x) :- a(x), !(e(x, y), y > 1).", ["y", "y"]),
        ("r(x) :- a(x), y = z.", ["y", "z"]),
        ("r(z) :- a(x), y < x, z = y + 1.", ["y"]),
        ("r(x) :- e(x, y + 1).", ["y"]),
        ("r(x) :- a(x), x = y + 1.", ["y"]),
        ("r(x) :- a(x) ; x = 1, y > x.", ["y"]),
        ("r(x) :- x = range(0, y).", ["y"]),
        ("r(n) :- n = sum z : { a(x) }.", ["z"]),
        ("r(n) :- n = count : { a(x), x < z }.", ["z"]),
        ("r(x) :- p([x, y + z]), a(y).", ["z"]),
        ("r(x) <= r(y) :- x < z.\nr(1).", ["z"]),
    ],
)
def test_variables_without_a_value_are_named(rule: str, variables: list[str]) -> None:
    assert unbound(rule) == variables


def test_a_long_body_is_ordered_in_reasonable_time() -> None:
    chain = ", ".join(f"x{at} = x{at + 1} + 1" for at in range(2000))
    rule = load(BASE + f"r(x0) :- {chain}, a(x2000).").rules[0]
    assert len(rule.body) == 2001
    assert shape(rule.body[0]) == "a"
