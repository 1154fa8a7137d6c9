"""Join orders follow the data in each part of a state by itself: views and changes stay those of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.pipeline.parts import test_keeper, test_rounds

from whence import Session, load
from whence.io.changes import Epoch
from whence.optimizer import adaptive
from whence.optimizer.adaptive import AdaptiveOrders
from whence.pipeline.parts import host, worker
from whence.pipeline.parts.keeper import PartedKeeper

EDGES = """
.decl link(x:symbol, y:symbol, n:number)  .decl node(x:symbol)
.input link, node
.decl square(x:symbol, y:symbol, z:symbol)
square(x, y, z) :- link(x, y, n), link(x, z, m), node(x), n < m.
.output square
"""
SHIPPED = """
.decl link(x:symbol, y:symbol, n:number)  .decl node(x:symbol)
.input link, node
.decl reach(x:symbol, y:symbol)
reach(x, y) :- link(x, y, _).
reach(x, z) :- reach(x, y), reach(y, z), link(z, w, n), node(w), n < 2.
.output reach
"""


@pytest.fixture(autouse=True)
def every_look_is_a_switch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("os.fsync", lambda _: None)  # nothing is lost with a process
    monkeypatch.setattr(adaptive, "WORTH", 0.0)
    monkeypatch.setattr(adaptive, "SHARE", 1e9)
    yield
    worker._remembered.clear()
    for house in host._houses.values():
        house.close()
    host._houses.clear()


Keep = Callable[..., PartedKeeper]


@pytest.mark.parametrize(
    ("text", "keep"), [(EDGES, test_keeper.keep), (SHIPPED, test_rounds.keep)], ids=["alone", "shipping"]
)
def test_views_and_changes_are_those_of_a_session(text: str, keep: Keep, tmp_path: Path) -> None:
    program = load(text)
    session, told = Session(program), test_keeper.Told()
    keeper = keep(tmp_path, program, told=told, follow=AdaptiveOrders)
    names, switches = keeper.outputs, list[str]()
    for number, epoch in enumerate(test_keeper.random_epochs(12, 3), 1):
        expected = session.apply(epoch.updates, epoch.now)
        (report,) = keeper.apply([Epoch(epoch.updates, epoch.now, epoch.source)])
        switches += report.switches
        assert test_keeper.as_sets(told.epochs[number], names) == test_keeper.as_sets(expected, names)
    assert {name: keeper.view(name) for name in names} == {name: set(session.relation(name)) for name in names}
    assert any(each.startswith("part ") for each in switches)
    keeper.close()
