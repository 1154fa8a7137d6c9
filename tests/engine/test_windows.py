"""Lifetimes and windows: what expires, when, and what follows from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence import Session, Update, load
from whence.engine.windows import Timed, Windows
from whence.lang.types import Tuple


def session_of(window: str) -> Session:
    return Session(load(f".decl s(x:symbol, v:number)\n.input s\n.output r\n{window}\nr(x) :- s(x, _).\n"))


def insert(session: Session, row: Tuple, time: float | None = None) -> list[tuple[str, Tuple]]:
    return sorted(
        (change.op, change.tuple) for change in session.apply([Update("+", "s", row, time)]) if change.relation == "r"
    )


def test_a_tuple_outside_the_time_window_is_deleted_in_the_epoch_that_crosses_it() -> None:
    session = session_of(".window s(time=4)")
    assert insert(session, ("a", 1), 1) == [("+", ("a",))]
    assert insert(session, ("b", 1), 4.9) == [("+", ("b",))]
    assert insert(session, ("c", 1), 5) == [("+", ("c",)), ("-", ("a",))]


def test_inserting_again_refreshes_a_lifetime() -> None:
    session = session_of(".lifetime s 10")
    insert(session, ("a", 1), 0)
    assert insert(session, ("a", 1), 8) == []
    assert insert(session, ("b", 1), 12) == [("+", ("b",))]
    assert sorted(session.relation("r")) == [("a",), ("b",)]
    assert session.apply((), now=18.0).deleted["r"] == [("a",)]


@pytest.mark.parametrize("directive", [".lifetime s 10", ".window s(time=10)"])
def test_inserting_again_with_an_earlier_time_does_not_shorten_a_life(directive: str) -> None:
    session = session_of(directive)
    insert(session, ("a", 1), 100)
    assert insert(session, ("a", 1), 95) == []
    assert insert(session, ("a", 1), 50) == []
    assert not session.apply((), now=109.0)
    assert session.apply((), now=110.0).deleted["r"] == [("a",)]


steps = st.lists(
    st.tuples(st.sampled_from("++-."), st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 30))), max_size=12
)


@given(steps)
def test_a_tuple_is_there_while_its_latest_insertion_is_young_enough(steps: list[tuple[str, str, int | None]]) -> None:
    session = session_of(".lifetime s 10")
    clock, latest = 0.0, dict[str, float]()
    for op, name, time in steps:
        clock = max(clock, time or 0.0)
        if op == "+":
            latest[name] = max(latest.get(name, float("-inf")), clock if time is None else time)
        elif op == "-":
            latest.pop(name, None)
        latest = {each: when for each, when in latest.items() if when > clock - 10}
        when = None if time is None else float(time)
        session.apply([] if op == "." else [Update(op, "s", (name, 1), when)], now=when)
        assert set(session.relation("r")) == {(each,) for each in latest}


def test_a_tick_expires_without_updates() -> None:
    session = session_of(".lifetime s 10")
    insert(session, ("a", 1), 0)
    assert not session.apply((), now=9.0)
    assert session.apply((), now=10.0).deleted == {"s": [("a", 1)], "r": [("a",)]}


def test_the_clock_does_not_go_back() -> None:
    session = session_of(".lifetime s 10")
    insert(session, ("a", 1), 100)
    assert insert(session, ("late", 1), 50) == []
    assert insert(session, ("b", 1), 95) == [("+", ("b",))]


def test_a_window_of_rows_keeps_the_newest() -> None:
    session = session_of(".window s(rows=2)")
    insert(session, ("a", 1))
    insert(session, ("b", 1))
    assert insert(session, ("c", 1)) == [("+", ("c",)), ("-", ("a",))]
    insert(session, ("b", 1))
    assert insert(session, ("d", 1)) == [("+", ("d",)), ("-", ("c",))]


def test_a_partitioned_window_keeps_the_newest_rows_of_each_value() -> None:
    session = session_of(".window s(rows=1, by=x)")
    insert(session, ("a", 1))
    insert(session, ("b", 1))
    assert insert(session, ("a", 2)) == []
    assert sorted(session.relation("s")) == [("a", 2), ("b", 1)]


def test_deleting_a_tuple_makes_room_in_a_window_of_rows() -> None:
    session = session_of(".window s(rows=2)")
    insert(session, ("a", 1))
    insert(session, ("b", 1))
    session.apply([Update("-", "s", ("b", 1))])
    assert insert(session, ("c", 1)) == [("+", ("c",))]
    assert sorted(session.relation("r")) == [("a",), ("c",)]


def test_a_window_slides_over_a_recursive_view() -> None:
    text = ".decl link(x:number, y:number)\n.input link\n.output reach\n.window link(time=3)\n"
    session = Session(load(text + "reach(x, y) :- link(x, y).\nreach(x, z) :- reach(x, y), link(y, z).\n"))
    for at in range(10):
        session.apply([Update("+", "link", (at, at + 1), float(at))])
        newest = range(max(0, at - 2), at + 1)
        assert set(session.relation("reach")) == {(x, y + 1) for x in newest for y in newest if x <= y}


def test_refreshing_a_tuple_again_and_again_leaves_nothing_behind() -> None:
    windows = Windows(load(".decl s(x:number)\n.input s\n.lifetime s 1000000\n.output s").relations)
    for at in range(20_000):
        windows.collect([("+", "s", (at % 3,), float(at))], None)
    (kept,) = windows.kept["s"]
    assert isinstance(kept, Timed)
    assert len(kept.times) == 3
    assert len(kept.heap) < 2000
    assert windows.collect([], 1_019_998.0)["s"] == {(19_997 % 3,): False, (19_998 % 3,): False}
