"""Bodies that span places become local ones, in the order that ships least."""

from __future__ import annotations

import pytest

from whence import ProgramError, load
from whence.plan.describe_places import describe_places
from whence.plan.localize import is_placed, localize

BASE = (
    ".decl link(@x:symbol, y:symbol) .input link .decl node(@x:symbol) .input node "
    ".decl cost(@x:symbol, c:number) .input cost "
)


def described(text: str) -> list[str]:
    return [line.strip() for line in describe_places(load(BASE + text))[1:]]


def shipped(text: str) -> list[str]:
    return [line.removeprefix("-> ") for line in described(text) if "shipped" in line]


def errors(text: str) -> str:
    with pytest.raises(ProgramError) as caught:
        localize(load(BASE + text))
    return str(caught.value)


def test_the_link_goes_to_its_other_end_and_the_head_home() -> None:
    assert shipped(".output r r(@x, y) :- link(@x, y). r(@x, y) :- link(@x, z), r(@z, y).") == [
        "link!y, shipped to z",
        "r, shipped to x",
    ]


def test_local_rules_ship_nothing() -> None:
    assert shipped(".output p p(@x, y) :- link(@x, y), node(@x), !cost(@x, 3).") == []


def test_one_copy_of_a_relation_serves_all_rules() -> None:
    text = ".output p, q p(@x, y) :- link(@x, z), link(@z, y). q(@z, x) :- link(@x, z), cost(@z, 1)."
    assert shipped(text).count("link!y, shipped to z") == 1


def test_what_is_inside_the_recursion_is_not_shipped_if_something_else_can_be() -> None:
    # Either place names the other: the link travels, and its partner, which the recursion derives, stays.
    text = ".output p p(@x, y) :- link(@x, y). p(@x, x) :- p(@x, y), link(@y, x)."
    assert "link!y, shipped to x" in shipped(text)


def test_a_body_that_ends_at_the_place_of_its_head_is_cheaper() -> None:
    assert shipped(".output p p(@y) :- link(@x, y), cost(@x, 1), node(@y).") == ["p#1!1, shipped to y"]


def test_negations_and_aggregates_are_asked_at_their_place() -> None:
    lines = described(
        ".output p, q p(@x, y) :- link(@x, y), !node(@y). q(@x, n) :- link(@x, y), n = sum c : { cost(@y, c) }."
    )
    assert "reads link!y, !node" in lines
    assert "reads link!y, sum of cost" in lines


def test_atoms_that_name_a_third_place_meet_there() -> None:
    text = ".output r r(x, @y) :- link(@x, y). r(x, @y) :- link(@x, z), r(z, @y)."
    assert shipped(text) == ["r, shipped to y", "link!y, shipped to z", "r!x, shipped to z", "r, shipped to y"]


def test_what_is_everywhere_is_read_anywhere_and_shipped_to_all() -> None:
    text = (
        ".decl big(x:symbol) everywhere .output big, p big(x) :- cost(@x, c), c > 9. p(@x, y) :- link(@x, y), big(y)."
    )
    assert shipped(text) == ["big, shipped to every node"]
    assert described(text)[-1] == "held by every node: big"


def test_places_that_nothing_connects_are_refused() -> None:
    assert "W0702" in errors(".output p p(@x, y) :- node(@x), node(@y).")
    assert "join y with an argument of node" in errors(".output p p(@x, y) :- node(@x), node(@y).")


def test_relations_without_a_place_are_refused() -> None:
    message = errors(".decl far(x:symbol) .input far .output p p(@x) :- node(@x), far(x).")
    assert "W0701" in message
    assert "`everywhere`" in message


@pytest.mark.parametrize(
    "body", ["n = count : { link(@_, x) }", "n = count : { link(@y, x) }", "n = sum c : { cost(@x, c), link(@y, _) }"]
)
def test_aggregates_over_several_nodes_are_refused(body: str) -> None:
    assert "W0703" in errors(f".output p p(@x, n) :- node(@x), {body}.")


def test_negation_over_all_nodes_is_refused() -> None:
    assert "W0703" in errors(".output p p(@x) :- node(@x), !link(@_, x).")


@pytest.mark.parametrize("rule", ['p(cat(x, "0")) :- f(x).', 'p(@y) :- f(x), y = cat(x, "0").'])
def test_places_that_are_computed_where_everybody_could_are_refused(rule: str) -> None:
    assert "W0705" in errors(f".decl f(x:symbol) everywhere .input f .decl p(@x:symbol) .output p {rule}")


def test_nodes_have_one_kind_of_name() -> None:
    assert "W0704" in errors(".decl n(@i:number) .input n .output p p(@x) :- node(@x), n(@1).")
    assert "W0704" in errors(".decl n(@i:float) .input n .output n")


def test_marks_in_atoms_place_relations_and_have_to_agree() -> None:
    program = load(".decl link(x:symbol, y:symbol) .input link p(@x) :- link(x, @y). .output p")
    assert program.relations["link"].location == 1
    with pytest.raises(ProgramError, match="W0109"):
        load(".decl link(@x:symbol, y:symbol) .input link p(@x) :- link(x, @y). .output p")
    with pytest.raises(ProgramError, match="W0109"):
        load(".decl link(x:symbol, y:symbol) everywhere .input link p(@x) :- link(@x, y). .output p")


def test_programs_without_places_are_left_alone() -> None:
    program = load("p(x) :- q(x). .decl q(x:number) .input q .output p")
    assert not is_placed(program)
    assert describe_places(program) == []
