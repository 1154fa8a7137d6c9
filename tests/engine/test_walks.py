"""First evaluations that are followed as walks leave what rounds one by one leave: rows, derivations, ranks, flags."""

from __future__ import annotations

import pytest
from tests.engine.kept import batch_by_batch, followed

from whence import Session, Update, load
from whence.backends.local import arrays, blocks, parallel, walking
from whence.backends.local.arrays import Ids
from whence.backends.local.table import Table
from whence.backends.local.walking import find_walk
from whence.plan import compile_plan

LINK = ".decl link(x: number, y: number) .input link\n"
LEFT = LINK + "reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
RIGHT = LINK + "reach(x, y) :- link(x, y). reach(x, z) :- link(x, y), reach(y, z)."
TURNING = LINK + "odd(x, y) :- link(x, y). even(z, x) :- odd(x, y), link(y, z). odd(x, z) :- even(y, x), link(y, z)."
SHIFTED = LINK + "far(x, y, 7) :- link(x, y). far(x, z, k) :- far(x, y, k), link(y, w), link(w, z), w != z, y < 90."
FED = LINK + ".decl reach(x: number, y: number) .input reach\nreach(x, z) :- reach(x, y), link(y, z), !link(z, y)."
PASSED = (
    LINK + "a(x, y) :- link(x, y). b(x, y) :- a(x, y). a(x, z) :- b(x, y), link(y, z). b(x, z) :- b(x, y), link(z, y)."
)
MIDDLE = LINK + "way(x, y, x) :- link(x, y). way(x, z, k) :- way(x, y, k), link(y, z)."
PROGRAMS = {
    "left": LEFT,
    "right": RIGHT,
    "turning": TURNING,
    "shifted": SHIFTED,
    "fed": FED,
    "passed": PASSED,
    "middle": MIDDLE,
}


@pytest.fixture(autouse=True, params=["", "rows", "blocks", "changing"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "FORCED", request.param)
    monkeypatch.setattr(walking, "LARGE", 2)
    monkeypatch.setattr(walking, "FIRST_ROWS", 64)
    monkeypatch.setattr(walking, "FIRST_GROUPS", 5)
    monkeypatch.setattr(blocks, "SMALL", 64)


@pytest.mark.parametrize("scale", [1, -37, 1 << 33])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_walks_are_like_rounds(text: str, scale: int, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[bool] = []
    begin = walking.Walking.follow

    def follow(self: walking.Walking, *args: object) -> None:
        walked.append(True)
        begin(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(walking.Walking, "follow", follow)
    program = load(text)

    for seed in range(4):
        monkeypatch.setattr(parallel, "CORES", 1 + seed)
        with_walks = followed(program, seed, scale)
        assert walked.pop()
        with batch_by_batch():
            assert followed(program, seed, scale) == with_walks
        assert not walked


def test_rows_that_come_back_keep_their_numbers() -> None:
    """All rows lose what they follow from and get it back in the same epoch: they are queued, and somebody knows them."""
    other = ".decl road(x: number, y: number) .input road\nreach(x, y) :- road(x, y).\n"
    session = Session(load(LEFT + other + ".output reach"))
    rows = [(x, y) for x in range(40) for y in range(x + 1, 40)]
    session.apply([Update("+", "link", row) for row in rows])
    moved = [Update("-", "link", row) for row in rows] + [Update("+", "road", row) for row in rows]
    moved += [Update("+", "link", (39, y)) for y in range(40, 50)]
    changes = session.apply(moved)
    further = [(x, y) for x in range(40) for y in range(40, 50)]
    assert sorted(changes.inserted["reach"]) == further
    assert not changes.deleted.get("reach")
    assert sorted(session.relation("reach")) == sorted(rows + further)


def test_what_is_a_walk() -> None:
    def found(text: str) -> object:
        program = load(text)
        stratum = next(each for each in compile_plan(program).strata if each.recursive)
        plans = [plan for plan in stratum.deltas if plan.scan is not None and plan.scan.relation in stratum.relations]
        walk = find_walk(plans, {name: program.relations[name].arity for name in stratum.relations})
        return None if walk is None else dict(walk.walker)

    assert found(LEFT) == {"reach": 1}
    assert found(RIGHT) == {"reach": 0}
    assert found(TURNING) == {"odd": 1, "even": 0}
    assert found(SHIFTED) == {"far": 1}
    assert found(LEFT.replace("reach(x, z) :- reach(x, y), link", "reach(x, z) :- reach(x, y), reach")) is None, (
        "joined"
    )
    assert found(LEFT.replace("link(y, z).", "link(y, z), x != z.")) is None, "the group is looked at"
    assert found(LEFT.replace("reach(x, z) :-", "reach(x, z + 1) :-")) is None, "a value that is made"
    assert found(LEFT.replace("reach(x, z) :-", "reach(z, x) :-")) is None, "which column it is changes"


def test_rows_are_listed_for_those_who_look_at_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strata above do, in each way that they read what came; whoever only counts does not."""
    asked: list[int] = []
    made = Table.unlisted

    def unlisted(self: Table, rank: int) -> Ids:
        rows = made(self, rank)
        return arrays.unlisted(len(rows), lambda: asked.append(len(rows)) or arrays.listed(rows))  # type: ignore[func-returns-value]

    monkeypatch.setattr(Table, "unlisted", unlisted)
    edges = [(x, x + 1) for x in range(20)]
    Session(load(LEFT + " .output reach"), facts={"link": edges})
    assert not asked
    above = (
        " .output ends, many, apart, twice\n"
        "ends(y) :- reach(_, y), !link(_, y). many(x, n) :- link(x, _), n = count : reach(x, _)."
        " apart(x, y) :- link(x, _), link(y, _), !reach(x, y). twice(x, y) :- reach(x, y), reach(y, 20)."
    )
    session = Session(load(LEFT + above), facts={"link": edges})
    assert asked == [20 * 21 // 2] * len(asked) != []
    assert set(session.relation("ends")) == set()
    assert set(session.relation("many")) == {(x, 20 - x) for x in range(20)}
    assert set(session.relation("apart")) == {(x, y) for x in range(20) for y in range(20) if x >= y}
    assert set(session.relation("twice")) == {(x, y) for x in range(20) for y in range(x + 1, 20)}
