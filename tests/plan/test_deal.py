"""How programs are dealt to parts that ship each other what they need: what is chosen, what is told, what is refused."""

from __future__ import annotations

import pytest

from whence import load
from whence.lang.program import output_names
from whence.plan.deal import Dealing, deal, divide
from whence.plan.describe_parts import describe_partitioning
from whence.plan.partition import NotPartitionable, Partitioning

LINK = ".decl link(src: number, dst: number) .input link "
CLOSURE = LINK + ".decl r(x: number, y: number) .output r r(x, y) :- link(x, y). two: r(x, z) :- r(x, y), r(y, z)."


def dealt(text: str) -> Dealing:
    program = load(text)
    return deal(program, output_names(program))


def test_a_recursion_that_joins_itself_is_split_and_shipped() -> None:
    how = dealt(CLOSURE)
    assert how.columns.keys() == {"link", "r"}
    assert how.whole == ()
    assert set(how.ships.values()) > {"r"}
    (column,) = {how.columns["r"]}
    assert how.part("r", (3, 4), 5) == how.target("r!out", (3, 4), 5)
    assert describe_partitioning(load(CLOSURE), ["r"]) == [
        f"state: in parts by link.{('src', 'dst')[how.columns['link']]}, r.{'xy'[column]}",
        "  parts ship each other what they need (r cannot be split by x or y, since rule two derives r from any r):",
        "    r!y to the part of its y, for rule two",
        "    r to the part of its x, for rule two",
        "  an epoch takes a round, and in the recursion of r until nothing more is shipped",
    ]


def test_places_that_are_marked_are_kept() -> None:
    how = dealt(
        ".decl link(a: symbol, @b: symbol) .input link .decl up(x: symbol) everywhere .input up .output reach "
        "reach(x, @y) :- link(x, @y), up(y). reach(x, @z) :- reach(x, @y), link(y, @z), up(x)."
    )
    assert how.columns == {"link": 1, "reach": 1}
    assert how.whole == ("up",)


def test_what_parts_need_of_nobody_is_not_dealt() -> None:
    reach = LINK + ".output r r(x, y) :- link(x, y). r(x, z) :- r(x, y), link(y, z)."
    assert type(divide(load(reach), ["r"])) is Partitioning
    assert isinstance(divide(load(CLOSURE), ["r"]), Dealing)


def test_places_that_the_program_marks_come_before_parts_that_need_nobody() -> None:
    text = (
        ".decl link(@a: symbol, b: symbol) MARK .input link .output reach "
        "reach(@x, y) :- link(@x, y). reach(@x, z) :- reach(@x, y), link(@y, z)."
    )
    program = load(text.replace("MARK", ""))
    assert divide(program, ["reach"]).columns == {"link": 0, "reach": 0}
    assert "(link would live elsewhere than the program says)" in describe_partitioning(program, ["reach"])[1]
    everywhere = load(text.replace("MARK", "everywhere").replace("link(@", "link("))
    assert type(divide(everywhere, ["reach"])) is Partitioning


def test_what_is_not_joined_or_is_counted_as_a_whole_is_copied() -> None:
    how = dealt(CLOSURE + ".decl n(n: number) .output n n(n) :- n = count : { r(_, _) }. "
                ".decl pair(x: number, y: number) .output pair pair(x, y) :- r(x, _), r(y, _), !r(x, y).")  # fmt: skip
    assert "r!all" in how.ships.values()
    assert how.made.relations["r!all"].everywhere
    assert {"n", "pair", "r", "link"} == how.columns.keys() | set(how.whole)


def test_what_is_evaluated_anew_is_whole_and_so_is_what_it_reads() -> None:
    how = dealt(
        CLOSURE + ".decl same(x: number, y: number) eqrel .output same same(x, y) :- r(x, y), r(y, x). "
        ".decl best(x: number, y: number) .output best best(x, y) :- r(x, y). "
        "best(x, y) <= best(z, y) :- z < x, link(z, y)."
    )
    assert {"same", "best"} <= set(how.whole)
    assert {"r", "link"} <= how.columns.keys()
    assert not {"same", "best"} & set(how.ships.values())


def test_a_value_that_a_recursion_improves_is_not_a_place() -> None:
    how = dealt(
        ".decl e(x: number, y: number, c: number) .input e .output d .decl w(x: number, y: number, c: number) "
        "w(x, y, c) :- e(x, y, c). w(x, z, c + d) :- d(x, y, c), d(y, z, d). "
        ".decl d(x: number, y: number, c: number) d(x, y, c) :- w(x, y, _), c = min b : { w(x, y, b) }."
    )
    assert how.columns["w"] == how.columns["d"] != 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LINK + ".decl one(x: number, y: number) choice-domain x .output one one(x, y) :- link(x, y).",
         "one has a choice-domain: parts would choose each for itself"),
        (LINK + ".decl n(x: number, i: number) .output n number: n(x, autoinc()) :- link(x, _).",
         "rule number has autoinc(): parts would count each for itself"),
        (LINK + ".output link", "nothing that is wanted is derived"),
        (LINK + ".decl any() .output any any() :- link(_, _).",
         "no relation that is derived has a column to be split by"),
        (LINK + ".decl same(x: number, y: number) eqrel .output same same(x, y) :- link(x, y).",
         "same would be evaluated anew"),
    ],
)  # fmt: skip
def test_what_cannot_be_split_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(NotPartitionable) as raised:
        dealt(text)
    assert str(raised.value).startswith(reason)


def test_windows_of_rows_stay_together() -> None:
    text = (
        ".decl e(x: number, y: number) .input e .window e(rows=3, by=y) .output r "
        "r(x, y) :- e(x, y). r(x, z) :- r(x, y), r(y, z)."
    )
    assert dealt(text).columns.get("e", 1) == 1


def test_facts_live_in_one_part() -> None:
    how = dealt(CLOSURE + " r(7, 8). link(1, 2).")
    facts = [rule.head for part in range(3) for rule in how.program_of(part, 3).rules if rule.is_fact]
    assert sorted(fact.relation for fact in facts) == ["link", "r"]
