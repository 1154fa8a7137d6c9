"""Turns of parts: where they wait for each other, what they say, and what they leave out."""

from __future__ import annotations

import pytest
from tests.teams import Team

from whence import Update, load
from whence.lang.program import Program, output_names
from whence.node import Supports
from whence.parts import Report, Turn, next_turn
from whence.plan.deal import deal
from whence.session import evaluate

CLOSURE = load("""
.decl link(x: number, y: number)
.input link
.decl mark(x: number)
.input mark
.decl reach(x: number, y: number)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), reach(y, z).
.decl other(x: number, y: number)
other(x, y) :- mark(x), mark(y), !reach(x, y).
.decl back(x: number, y: number)
back(x, y) :- link(y, x).
back(x, z) :- back(x, y), back(y, z).
.decl size(n: number)
size(n) :- n = count : { reach(_, _) }.
.output reach, other, back, size
""")


def team(program: Program = CLOSURE, parts: int = 2) -> Team:
    made = Team(deal(program, output_names(program)), parts, output_names(program))
    made.apply([])
    return made


def report(
    *, at: int | None = 3, waits: bool = False, told: int = 0, withdrew: bool = False, pending: bool = False
) -> Report:
    return Report(at, waits, told, withdrew, pending)


@pytest.mark.parametrize(
    ("reports", "turn"),
    [
        ([report(at=None), report(at=None)], None),
        ([report(waits=True), report(waits=True, told=3, withdrew=True)], Turn.GO),
        ([report(), report()], Turn.GO),
        ([report(pending=True), report()], Turn.PUT),
        ([report(), report(told=1)], Turn.PUT),
        ([report(pending=True), report(told=1, withdrew=True)], Turn.TAKE),
    ],
)
def test_what_comes_next_follows_from_all_reports(reports: list[Report], turn: Turn | None) -> None:
    assert next_turn(reports) is turn


def test_parts_wait_where_something_is_shipped_and_nowhere_else() -> None:
    course = team().members[0].course
    strata = [set(stratum.relations) for stratum in course.plan.strata]
    joint = [strata[at] for at in course.joint]
    assert len(joint) == 2
    assert {name for each in joint for name in each if "!" not in name} == {"reach", "back"}
    fed = {name for at in course.feeders for name in strata[at]}
    assert fed
    assert all("!" in name for name in fed)
    growing = {name for at in course.growing for name in strata[at]}
    assert {"link", "reach", "back"} <= growing
    assert "other" not in growing


def test_strata_that_nothing_reaches_take_no_round() -> None:
    course = team().members[0].course
    idle = {name for at in course.idle(["mark"]) for name in course.plan.strata[at].relations}
    assert {"link", "reach", "back"} <= idle
    assert "other" not in idle
    assert not course.idle(["link"]) & course.joint


def test_insertions_do_not_wait_until_everybody_has_taken_away() -> None:
    """Chains in which each link leads to another part; then the same links go."""
    parts = team(parts=4)
    rows = [(number, number + 1) for number in range(8)]
    parts.apply([Update("+", "link", row) for row in rows[:-1]])
    parts.apply([Update("+", "link", rows[-1])])
    growing = parts.rounds
    parts.apply([Update("-", "link", rows[-1])])
    assert growing < parts.rounds
    assert parts.view("reach") == {(x, y) for x in range(8) for y in range(x + 1, 8)}


def test_what_comes_and_goes_within_a_turn_is_not_told() -> None:
    parts = team()
    member = parts.members[0]
    out = next(iter(member.how.ships))
    row = next((x, y) for x in range(9) for y in range(9) if member.how.target(out, (x, y), 2) == 1)
    member._note([Supports(out, [row], 4), Supports(out, [row], None)])
    assert member._report().told == 0
    assert member.letters() == {}
    member._note([Supports(out, [row], None), Supports(out, [row], 5)])
    assert member._report().withdrew
    assert member.letters() == {1: {member.how.ships[out]: ([row], [5])}}


def test_a_row_that_loses_the_support_of_another_part_last_may_still_have_its_own() -> None:
    """Its support is withdrawn when the part has nothing else to do any more: a shorter way was found elsewhere."""
    program = load("""
    .decl from(x:number) .decl road(x:number, y:number, km:number) .input from, road
    near(x, 0) :- from(x).
    hop(y, c + d) :- near(x, c), road(x, y, d).
    near(y, c) :- hop(y, _), c = min d : { hop(y, d) }.
    .decl near(x:number, c:number) .decl hop(x:number, c:number) .output near, hop
    """)
    roads = [(0, 3, 0), (1, 0, 2), (1, 1, 2), (1, 3, 1), (3, 1, 0), (3, 3, 2)]
    made = team(program, parts=3)
    made.apply([Update("+", "road", row) for row in roads])
    made.apply([Update("+", "from", (1,))])
    assert made.views() == evaluate(program, {"road": roads, "from": [(1,)]}, wanted=["near", "hop"])
    assert (3, 3) in made.view("hop")
    made.apply([Update("-", "from", (1,))])
    assert made.views() == {"near": set(), "hop": set()}
