"""Inline relations: which are written out, and what becomes of the rules that use them."""

from __future__ import annotations

import pytest

from whence import ProgramError, Session, load
from whence.lang.program import Program, Var
from whence.lang.revise import drop_rule
from whence.lang.tree import walk
from whence.reference import evaluate

BASE = ".decl e(x:number, y:number)\n.input e\n.decl pair(x:number, y:number) inline\n"
PAIR = "pair(x, y) :- e(x, _), e(_, y).\n"


def loaded(text: str) -> Program:
    return load(BASE + text)


@pytest.mark.parametrize(
    "use",
    [
        "r(x) :- pair(x, 3).",
        "r(x) :- pair(x, _), pair(_, x).",
        "r(n) :- n = count : { pair(x, y), x < y }.",
        "r(x) :- e(x, _), x = max y : { pair(x, y) }.",
        ".decl far(x:number) inline\nfar(x) :- pair(x, y), x > y + 1.\nr(x) :- far(x).",
    ],
)
def test_no_cross_product_is_left(use: str) -> None:
    program = loaded(f"{PAIR}{use}\n.output r")
    assert set(program.relations) == {"e", "r"}


@pytest.mark.parametrize(
    "text",
    [
        "pair(x, y) :- e(x, z), e(z, y).\nr(x) :- e(x, _), !pair(x, x).\n",  # a variable of the body alone would be left over
        f"{PAIR}.output pair\nr(x) :- pair(x, x).\n",
        "pair(x, y) :- e(x, y).\npair(x, z) :- pair(x, y), e(y, z).\nr(x) :- pair(x, x).\n",
        "pair(x, autoinc()) :- e(x, _).\nr(x) :- pair(x, _).\n",
        "pair(1, 2). pair(3, 4).\nr(x) :- pair(x, _).\n",
    ],
)
def test_what_cannot_be_written_out_stays(text: str) -> None:
    assert "pair" in loaded(text).relations


def test_a_negated_relation_is_written_out_where_no_variable_is_left_over() -> None:
    program = loaded("pair(x, y) :- e(x, y), x < y.\npair(x, y) :- e(y, x).\nr(x) :- e(x, y), !pair(x, y).\n.output r")
    assert set(program.relations) == {"e", "r"}
    assert [rule.name for rule in program.rules] == ["r#1/1", "r#1/2"]
    assert evaluate(program, {"e": {(1, 2), (2, 1), (5, 5), (7, 4)}})["r"] == {(7,)}


def test_a_row_whose_expression_has_no_value_stays_away() -> None:
    program = loaded("pair(x, 6 / y) :- e(x, y).\nr(x) :- pair(x, _).\n.output r")
    with pytest.warns(UserWarning, match="division by zero"):
        assert evaluate(program, {"e": {(1, 0), (2, 3)}})["r"] == {(2,)}


def test_types_of_inline_relations_are_checked_and_used() -> None:
    program = load(".decl half(x:float) inline\nhalf(x) :- x = 1, e(x).\ne(1).\nr(x / 2) :- half(x).\n.output r")
    assert evaluate(program, {})["r"] == {(0.5,)}
    with pytest.raises(ProgramError, match="W0205"):
        loaded(f"{PAIR}r(x) :- pair(x).\n")


def test_a_rule_of_several_alternatives_is_dropped_as_a_whole() -> None:
    program = loaded("pair(x, y) :- e(x, y).\npair(x, y) :- e(y, x).\nr(x) :- pair(x, 1).\nr(9).\n.output r")
    assert [rule.name for rule in program.rules] == ["r#1/1", "r#1/2", "r#2"]
    assert evaluate(drop_rule(program, "r#1"), {"e": {(1, 1)}})["r"] == {(9,)}


def test_relations_of_very_many_alternatives_are_left_alone() -> None:
    rules = "".join(f"pair(x, y) :- e(x, y), x > {at}.\n" for at in range(10))
    program = loaded(f"{rules}r(x) :- pair(x, y), pair(y, z), pair(z, x).\n.output r")
    assert "pair" in program.relations


def test_what_may_be_nil_in_an_inlined_rule_may_be_in_the_rule_around_it() -> None:
    program = load(
        ".decl emp(name:symbol, boss:symbol?)\n.input emp\n.decl chief(b:symbol) inline\nchief(b) :- emp(_, b), b != nil.\n"
        '.decl shout(t:symbol)\nshout(cat(x, "!")) :- chief(x), strlen(x) < 9.\n.output shout\n'
    )
    facts = {"emp": {("a", None), ("b", "a")}}
    (rule,) = program.rules_for("shout")
    assert {str(part.kind) for part in walk(rule) if isinstance(part, Var)} == {"symbol?"}
    assert set(Session(program, facts=facts).relation("shout")) == evaluate(program, facts)["shout"] == {("a!",)}
