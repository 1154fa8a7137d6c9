"""Losses that go on from row to row, in one call and batch by batch."""

from __future__ import annotations

import random

import pytest

from whence import Session, Update, load, reference
from whence.backends.local import cascade, parallel

MUTUAL = load("""
.decl link(x:number, y:number) .input link
.decl odd, even(x:number, y:number) .output odd, even
odd(x, y) :- link(x, y).
odd(x, z) :- even(x, y), link(y, z).
even(x, z) :- odd(x, y), odd(y, z).
even(x, y) :- even(y, x), odd(x, x).
""")
FAN = load("""
.decl root(x:number) .input root
.decl child(x:number, y:number) .input child
.decl there(x:number) .output there
there(x) :- root(x).
there(y) :- there(x), child(x, y).
""")


@pytest.mark.parametrize("strategy", ["support", "dred"])
@pytest.mark.parametrize("large", [1, 20, parallel.LARGE])
def test_relations_that_lose_rows_by_each_other(strategy: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LARGE", large)
    chance = random.Random(large)
    links = {(chance.randrange(14), chance.randrange(14)) for _ in range(24)}
    session = Session(MUTUAL, facts={"link": links}, strategy=strategy)
    for _ in range(25):
        gone = set(chance.sample(sorted(links), 3))
        come = {(chance.randrange(14), chance.randrange(14)) for _ in range(3)}
        links = (links - gone) | come
        session.apply([Update("-", "link", row) for row in gone] + [Update("+", "link", row) for row in come])
        expected = reference.evaluate(MUTUAL, {"link": links})
        assert session.views() == {name: expected[name] for name in session.views()}


@pytest.mark.parametrize("strategy", ["support", "dred"])
def test_a_row_on_which_more_depend_than_there_is_room_for_at_first(strategy: str) -> None:
    children = [(0, 1)] + [(1, at) for at in range(2, 5_000)] + [(4_999, at) for at in range(5_000, 40_000)]
    session = Session(FAN, facts={"root": [(0,)], "child": children}, strategy=strategy)
    assert len(session.relation("there")) == 40_000
    assert len(session.apply([Update("-", "child", (1, 4_999))])) == 1 + 35_001
    assert len(session.apply([Update("-", "root", (0,))])) == 1 + 4_999
    assert not session.relation("there")
    assert len(session.apply([Update("+", "root", (0,))])) == 1 + 4_999


def test_most_losses_are_taken_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    spread_loss = cascade.spread_loss

    def counted(*args: object) -> object:
        nonlocal calls
        calls += 1
        return spread_loss(*args)

    monkeypatch.setattr(cascade, "spread_loss", counted)
    session = Session(FAN, facts={"root": [(0,)], "child": [(at, at + 1) for at in range(100)]})
    session.apply([Update("-", "child", (0, 1))])
    assert (calls, len(session.relation("there"))) == (1, 1)
