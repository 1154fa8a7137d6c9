"""Groups gathered in one pass: what they hold is what the reference says, and what is known of their rows is as ever."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.kept import state

from whence import Session, Update, load
from whence.backends.local import blocks, gathered, groups, parallel
from whence.backends.local.gathered import GREATEST, LEAST, SUM, Gathered
from whence.backends.local.table import Table
from whence.reference import evaluate

RULES = load("""
.decl r(i:number, k:number, v:number) .input r
.decl u(k:number, v:unsigned) .input u
.decl asked(k:number) .input asked
.decl count_of(k:number, n:number) .decl sum_of(n:number, k:number) .decl least_of(k:number, n:number)
.decl greatest_of(k:number, n:number) .decl whole(n:number) .decl most(n:number) .decl pairs(k:number, v:number, n:number)
.decl count_asked(k:number, n:number) .decl sum_asked(k:number, n:number) .decl least_asked(k:number, n:number)
.decl sum_unsigned(k:number, n:unsigned) .decl greatest_unsigned(k:number, n:unsigned) .decl odd(k:number, n:number)
count_of(k, n) :- r(_, k, _), n = count : { r(_, k, _) }.
sum_of(n, k) :- r(_, k, _), n = sum v : { r(_, k, v) }.
least_of(k, n) :- r(_, k, _), n = min v : { r(_, k, v) }.
greatest_of(k, n) :- r(_, k, _), n = max v : { r(_, k, v) }.
whole(n) :- n = sum v : { r(_, _, v) }.
most(n) :- n = max v : { r(_, _, v) }.
pairs(k, v, n) :- r(_, k, v), n = count : { r(_, k, v) }.
count_asked(k, n) :- asked(k), n = count : { r(_, k, _) }.
sum_asked(k, n) :- asked(k), n = sum v : { r(_, k, v) }.
least_asked(k, n) :- asked(k), n = min v : { r(_, k, v) }.
sum_unsigned(k, n) :- u(k, _), n = sum v : { u(k, v) }.
greatest_unsigned(k, n) :- u(k, _), n = max v : { u(k, v) }.
odd(k, n) :- sum_of(n, k), n % 2 != 0.
.output count_of, sum_of, least_of, greatest_of, whole, most, pairs
.output count_asked, sum_asked, least_asked, sum_unsigned, greatest_unsigned, odd
""")
FIRST, LAST = -(1 << 63), (1 << 63) - 1
KEYS = st.one_of(st.integers(0, 3), st.integers(-70, 70), st.sampled_from([FIRST, LAST, 1 << 40]))
VALUES = st.one_of(st.integers(-9, 9), st.sampled_from([FIRST, LAST, 1 << 31, -(1 << 31) - 1, 1 << 62]))
UNSIGNED = st.one_of(st.integers(0, 9), st.sampled_from([1 << 63, (1 << 64) - 1]))
FACTS = st.fixed_dictionaries(
    {
        "r": st.sets(st.tuples(st.integers(0, 200), KEYS, VALUES), max_size=80),
        "u": st.sets(st.tuples(KEYS, UNSIGNED), max_size=30),
        "asked": st.sets(st.tuples(KEYS), max_size=8),
    }
)


@pytest.fixture(params=["", "rows", "blocks", "changing"])
def tables(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "FORCED", request.param)
        patch.setattr(gathered, "MANY", 1)
        patch.setattr(parallel, "LARGE", 8)
        yield request.param


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("cores", [1, 2, 3])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=FACTS, more=FACTS, as_facts=st.booleans())
def test_groups_are_those_of_the_reference(cores: int, facts: dict, more: dict, as_facts: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "CORES", cores)
        sessions = [_begun(facts, as_facts=as_facts)]
        patch.setattr(groups, "way_to_gather", lambda _: None)
        sessions.append(_begun(facts, as_facts=as_facts))
    rows = {name: set(each) for name, each in facts.items()}
    gone = [Update("-", name, row) for name, each in facts.items() for row in sorted(each)[::3]]
    come = [Update("+", name, row) for name, each in more.items() for row in sorted(each - rows[name])]
    back = [Update("+", update.relation, update.tuple) for update in gone if update.tuple not in more[update.relation]]
    for epoch in ([], gone, come, back):
        for op, name, row, _ in epoch:
            (rows[name].add if op == "+" else rows[name].discard)(row)
        if epoch:
            for session in sessions:
                session.apply(epoch)
        expected = evaluate(RULES, rows)
        assert [session.views() for session in sessions] == [expected, expected]
        assert state(sessions[0]) == state(sessions[1])


def _begun(facts: dict, *, as_facts: bool) -> Session:
    if as_facts:
        return Session(RULES, facts=facts)
    session = Session(RULES)
    session.apply(Update("+", name, row) for name, rows in facts.items() for row in rows)
    return session


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 900, 30_000])
def test_many_groups_find_room(count: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CORES", cores)
    rng = np.random.default_rng(count)
    rows = np.stack([rng.integers(0, count, 40_000), np.arange(40_000), rng.integers(FIRST, LAST, 40_000)], axis=1)
    table = Table(3)
    table.activate(table.add_supports(np.ascontiguousarray(rows), np.zeros(len(rows), dtype=np.int32)), 0)
    gone = table.find(np.ascontiguousarray(rows[::7]))
    table.erase(gone)
    left = rows[np.arange(len(rows)) % 7 > 0]
    keys = np.unique(left[:, 0])
    for how, ufunc in ((SUM, np.add), (LEAST, np.minimum), (GREATEST, np.maximum)):
        expected = np.zeros(count, dtype=np.int64)
        if how != SUM:
            expected[:] = LAST if how == LEAST else FIRST
        ufunc.at(expected, left[:, 0], left[:, 2])
        found = Gathered(table, (0,), 2, how)
        assert np.array_equal(np.sort(found.keys[:, 0]), keys)
        sizes, values = found.of(keys.reshape(-1, 1))
        assert np.array_equal(sizes, np.bincount(left[:, 0], minlength=count)[keys])
        assert np.array_equal(values, expected[keys])
        assert [each.tolist() for each in found.of(np.array([[count], [-1]]))] == [[0, 0], [0, 0]]


def test_no_index_is_made_until_an_update_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "MANY", 1)
    program = load(""".decl r(k:number, v:number) .input r
        .decl s(k:number, n:number) .output s
        s(k, n) :- r(k, _), n = sum v : { r(k, v) }.""")
    session = Session(program, facts={"r": [(at % 5, at) for at in range(50)]})
    assert not session.backend.tables["r"].indexes
    session.apply([Update("-", "r", (2, 47))])
    assert list(session.backend.tables["r"].indexes) == [(0,)]
    assert set(session.relation("s")) == {(k, sum(range(k, 50, 5)) - 47 * (k == 2)) for k in range(5)}
