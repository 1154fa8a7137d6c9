"""Rounds and batches taken in one call do what they do one by one: same rows, counts, ranks, rounds and derivations."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from whence import Session, Update, load
from whence.backends.local.backend import LocalBackend
from whence.backends.local.portions import handed_on
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.plan import compile_plan

NON_LINEAR = """
.decl link(x: number, y: number) .input link
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), reach(y, z).
"""
LINEAR = """
.decl link(x: number, y: number) .input link
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
"""
ALTERNATING = """
.decl link(x: number, y: number) .input link
odd(x, y) :- link(x, y).
even(z, x) :- odd(x, y), link(y, z).
odd(x, z) :- even(y, x), link(y, z), x != z.
"""
MUTUAL = """
.decl link(x: number, y: number) .input link
odd(x, y) :- link(x, y).
odd(x, z) :- even(x, y), link(y, z).
even(x, z) :- odd(x, y), link(y, z), !none(x, z).
back(z, x) :- odd(x, y), even(y, z), x < z.
odd(x, y) :- back(y, x).
.decl none(x: number, y: number) .input none
"""
LISTS = """
.type Path = [head: number, tail: Path]
.decl link(x: number, y: number) .input link
.decl path(x: number, y: number, way: Path)
path(x, y, [x, nil]) :- link(x, y).
path(x, z, [y, way]) :- path(x, y, way), link(y, z).
"""
COUNTING = """
.decl first(x: number) .input first
a(x) :- first(x).
a(x) :- b(x).
b(x + 1) :- a(x), x < 3000.
"""


def epochs(seed: int, nodes: int, links: int) -> Iterator[list[Update]]:
    rng = random.Random(seed)
    there: list[Tuple] = sorted({(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(links)})
    yield [Update("+", "link", link) for link in there]
    for _ in range(6):
        gone = rng.sample(there, 4)
        yield [Update("-", "link", link) for link in gone]
        yield [Update("+", "link", link) for link in gone]


def state(session: Session) -> dict[str, object]:
    """All rows with their counts and ranks."""
    found: dict[str, object] = {}
    for name, table in session.backend.tables.items():
        ids = table.ids()
        rows = session.backend.decode(name, ids)
        found[name] = sorted(zip(map(str, rows), table.counts(ids).tolist(), table.ranks(ids).tolist(), strict=True))
    work = session.last_epoch
    return found | {key: work[key] for key in ("rounds", "derivations", "suspended", "rederived")}


@pytest.mark.parametrize(
    ("text", "nodes", "links"),
    [
        (NON_LINEAR, 60, 90),
        (NON_LINEAR, 500, 500),
        (MUTUAL, 40, 70),
        (LINEAR, 300, 700),
        (LINEAR, 3000, 3000),
        (ALTERNATING, 300, 700),
    ],
    ids=str,
)
def test_many_rounds_in_one_call_are_like_one_by_one(
    text: str, nodes: int, links: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def followed() -> list[dict[str, object]]:
        session = Session(load(text), facts={"none": [(1, 2), (3, 4)]} if "none" in text else None)
        found = []
        for epoch in epochs(nodes, nodes, links):
            session.apply(epoch)
            found.append(state(session))
        return found

    together = followed()
    for name in ("spread_loss", "spread_gain"):
        monkeypatch.setattr(LocalBackend, name, lambda *_, **__: None)
    assert followed() == together


def test_columns_that_are_handed_on_are_found() -> None:
    def found(text: str) -> object:
        plans = [each for stratum in compile_plan(load(text)).strata for each in stratum.deltas if stratum.recursive]
        heads = {plan.rule.head.relation for plan in plans}
        inside = [plan for plan in plans if plan.scan is not None and plan.scan.relation in heads]
        return handed_on(inside, sorted(heads))

    assert found(LINEAR) == {"reach": 0}
    assert found(LINEAR.replace("reach(x, y), link(y, z)", "link(x, y), reach(y, z)")) == {"reach": 1}
    assert found(ALTERNATING) == {"even": 1, "odd": 0}
    assert found(NON_LINEAR) is None, "joined with each other"
    assert found(LINEAR.replace("reach(x, z) :-", "reach(z, x) :-")) is None, "at another place"
    assert found(LINEAR.replace("reach(x, z) :-", "reach(x + 1, z) :-")) is None, "another value"


def test_rules_that_make_values_go_on_where_there_was_no_room_for_them() -> None:
    links = [(at, at + 1) for at in range(400)]
    session = Session(load(LISTS), facts={"link": links})
    assert len(session.relation("path")) == 400 * 401 // 2


def test_counting_up_takes_a_round_for_each_number() -> None:
    session = Session(load(COUNTING), facts={"first": [(0,)]})
    assert len(session.relation("a")) == 3001
    assert session.last_epoch["rounds"] == 6002  # the first is that of the facts


@pytest.mark.parametrize(
    ("limits", "when"), [(Limits(max_rounds=100), "after 100 rounds"), (Limits(max_tuples=500), "at 501 tuples")]
)
def test_limits_are_kept_in_the_middle_of_a_call(limits: Limits, when: str) -> None:
    with pytest.raises(RunawayError, match=when):
        Session(load(COUNTING), facts={"first": [(0,)]}, limits=limits)
