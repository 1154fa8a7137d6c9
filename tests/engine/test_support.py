"""What support counting with ranks must get right: cycles, alternatives, and work that follows the change."""

from __future__ import annotations

import gc
import re

import pytest

from whence import Session, Update, load
from whence.engine.epoch import StratumEpoch
from whence.lang.types import Tuple

REACH = """
.decl link(x:number, y:number)
.input link
.output reach
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
"""


def linked(*links: Tuple, text: str = REACH) -> Session:
    session = Session(load(text))
    session.apply(Update("+", "link", link) for link in links)
    return session


def closure(links: set[tuple[int, int]]) -> set[tuple[int, int]]:
    reach = set(links)
    while True:
        more = {(x, z) for x, y in reach for w, z in links if w == y} - reach
        if not more:
            return reach
        reach |= more


def test_a_cycle_that_supports_only_itself_vanishes() -> None:
    text = ".decl start(x:number)\n.decl link(x:number, y:number)\n.input start\n.input link\n.output on\n"
    session = Session(load(text + "on(x) :- start(x).\non(y) :- on(x), link(x, y).\n"))
    session.apply(
        [
            Update("+", "start", (1,)),
            Update("+", "link", (1, 2)),
            Update("+", "link", (2, 3)),
            Update("+", "link", (3, 2)),
        ]
    )
    assert set(session.relation("on")) == {(1,), (2,), (3,)}
    assert sorted(session.apply([Update("-", "start", (1,))]).deleted["on"]) == [(1,), (2,), (3,)]


def test_deleting_one_edge_of_a_cycle_leaves_what_the_rest_reaches() -> None:
    session = linked((1, 2), (2, 3), (3, 1), (3, 2))
    session.apply([Update("-", "link", (3, 2))])
    assert set(session.relation("reach")) == closure({(1, 2), (2, 3), (3, 1)})
    session.apply([Update("-", "link", (3, 1))])
    assert set(session.relation("reach")) == {(1, 2), (1, 3), (2, 3)}


def test_a_chain_with_two_supports_at_each_step_loses_nothing_when_one_goes() -> None:
    # Delete-and-rederive takes the whole chain away here and puts it back.
    length = 50
    text = ".decl a(x:number, y:number)\n.decl b(x:number, y:number)\n.input a\n.input b\n.output p\n"
    session = Session(load(text + "p(0). p(y) :- p(x), a(x, y). p(y) :- p(x), b(x, y).\n"))
    session.apply(Update("+", name, (at, at + 1)) for at in range(length) for name in ("a", "b"))
    before = session.stats()
    assert not [change for change in session.apply([Update("-", "a", (0, 1))]) if change.relation == "p"]
    after = session.stats()
    assert after["suspended"] == before["suspended"] + 1
    assert after["derivations"] == before["derivations"] + 1


def test_the_last_derivation_decides() -> None:
    session = linked((1, 2), (2, 4), (1, 3), (3, 4))
    assert (1, 4) not in session.apply([Update("-", "link", (1, 2))]).deleted.get("reach", [])
    assert (1, 4) in session.apply([Update("-", "link", (3, 4))]).deleted["reach"]


def test_an_epoch_that_cancels_itself_changes_nothing() -> None:
    session = linked((1, 2), (2, 3))
    changes = session.apply(
        [
            Update("-", "link", (1, 2)),
            Update("+", "link", (1, 2)),
            Update("+", "link", (9, 9)),
            Update("-", "link", (9, 9)),
        ]
    )
    assert not list(changes)


def epochs() -> list[object]:
    return [each for each in gc.get_objects() if isinstance(each, StratumEpoch)]


def test_no_list_of_rows_outlives_its_epoch() -> None:
    before = epochs()  # those of sessions that failed in other tests
    session = linked((1, 2), (2, 3), (3, 1))
    session.apply([Update("+", "link", (3, 4)), Update("-", "link", (2, 3))])
    assert len(epochs()) == len(before)


def test_repeated_insertions_and_deletions_of_absent_tuples_are_counted_as_ignored() -> None:
    session = linked((1, 2))
    assert session.apply([Update("+", "link", (1, 2)), Update("-", "link", (5, 6))]).ignored == 2


def test_a_relation_may_be_fed_and_derived_at_once() -> None:
    text = ".decl p(x:number)\n.decl q(x:number)\n.input p\n.input q\n.output p\np(x + 1) :- q(x).\n"
    session = Session(load(text))
    session.apply([Update("+", "q", (1,)), Update("+", "p", (2,))])
    assert not session.apply([Update("-", "p", (2,))]).deleted.get("p")
    assert session.apply([Update("-", "q", (1,))]).deleted["p"] == [(2,)]


def test_an_aggregate_asked_for_by_the_recursion_itself_is_right() -> None:
    text = ".decl point(x:number)\n.input point\n.output out\nout(0, 0).\n"
    session = Session(load(text + "out(r + 1, n) :- out(r, _), r < 5, n = count : { point(x), x <= r }.\n"))
    session.apply([Update("+", "point", (0,)), Update("+", "point", (2,))])
    assert set(session.relation("out")) == {(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2)}
    session.apply([Update("-", "point", (0,))])
    assert set(session.relation("out")) == {(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 1)}


def test_an_atom_of_wildcards_counts_once_however_many_rows_there_are() -> None:
    text = (
        ".decl a(x:number)\n.decl b(x:number)\n.input a\n.input b\n.output both\n.decl both()\nboth() :- a(_), b(_).\n"
    )
    session = Session(load(text))
    session.apply(Update("+", name, (at,)) for name in "ab" for at in range(100))
    assert session.stats()["derivations"] == 201  # a hundred for each projection, and one
    assert not session.apply([Update("-", "a", (0,))]).deleted.get("both")
    assert session.apply(Update("-", "b", (at,)) for at in range(100)).deleted["both"] == [()]


@pytest.mark.parametrize(
    ("update", "problem"),
    [
        (Update("+", "nothing", (1,)), "there is no relation nothing"),
        (Update("+", "reach", (1, 2)), "reach is derived by rules: only base relations take updates"),
        (Update("*", "link", (1, 2)), "* is not an operation: + inserts, - deletes"),
        (Update("+", "link", (1,)), "link has 2 columns, not 1"),
    ],
)
def test_an_update_that_does_not_fit_is_refused_and_nothing_is_applied(update: Update, problem: str) -> None:
    session = linked((1, 2))
    with pytest.raises(ValueError, match=re.escape(problem)):
        session.apply([Update("+", "link", (7, 8)), update])
    assert set(session.relation("link")) == {(1, 2)}


def test_stats_tell_the_work_of_the_last_epoch_and_of_all() -> None:
    session = linked((1, 2), (2, 3), (3, 1), (1, 3))
    before = session.stats()
    session.apply([Update("-", "link", (1, 2))])
    after, last = session.stats(), session.last_epoch
    for what in ("rounds", "derivations", "suspended", "rederived"):
        assert after[what] - before[what] == last[what]  # type: ignore[literal-required]
    # (1, 2), (2, 2) and (3, 2) go. What else is suspended comes back: the other six pairs follow from (1, 3), (2, 3), (3, 1).
    assert last["suspended"] - last["rederived"] == 1 + 3
    assert after["epochs"] == 3
    assert after["bytes"].keys() == {"link", "reach"}
    assert set(last["seconds"]) == {"collect", "take away", "put back", "decode", "settle"}
    assert all(after["seconds"][phase] >= spent > 0 for phase, spent in last["seconds"].items())


def test_stats_tell_the_time_of_aggregates_and_recomputed_strata() -> None:
    text = (
        ".decl a(x:number)\n.input a\n.output n, e\nn(c) :- c = count : { a(x) }.\n.decl e(x:number, y:number) eqrel\n"
    )
    session = Session(load(text + "e(x, x) :- a(x).\n"))
    session.apply([Update("+", "a", (1,))])
    assert {"aggregate", "recompute"} <= session.last_epoch["seconds"].keys()


def test_an_aggregate_that_needs_values_from_outside_is_asked_for_them() -> None:
    # `e(x, _)` holds whenever the aggregate has a value, but z comes from w alone.
    text = ".decl e(x:number, y:number)\n.decl w(x:number, z:number)\n.input e, w\n.output p\n"
    rule = "p(x, z, n) :- w(x, z), e(x, _), n = max v : { e(x, v), v < z }.\n"
    session = Session(load(text + rule), facts={"e": [(1, 2), (1, 5), (2, 9)], "w": [(1, 4), (1, 9), (2, 3), (3, 3)]})
    assert set(session.relation("p")) == {(1, 4, 2), (1, 9, 5)}
    session.apply([Update("-", "e", (1, 2)), Update("+", "w", (2, 10))])
    assert set(session.relation("p")) == {(1, 9, 5), (2, 10, 9)}
