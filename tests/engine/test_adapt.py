"""Views whose rules change, from what is there: rows, how often they are derived, and what is said of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whence import Session, Update, load
from whence.engine.adapt import Way
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "20"))
BASE = ".decl r(x:number, y:number)\n.input r\n.decl s(x:number)\n.input s\n"
VIEWS = ".decl v(x:number, y:number)\n.decl w(x:number, y:number)\n.output v, w\n"
ATOMS = [f"r({a}, {b})" for a in "xyz" for b in "xyz"] + ["s(x)", "s(z)"]


@pytest.fixture(autouse=True, scope="module")
def _whatever_the_size() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whence.engine.adapt.WORTHWHILE", 0)
        yield


@st.composite
def bodies(draw: st.DrawFn) -> str:
    body = ["r(x, z)", "r(z, y)"] if draw(st.booleans()) else ["r(x, y)"]
    body += draw(st.lists(st.sampled_from(ATOMS), max_size=2))
    compared = draw(st.lists(st.sampled_from(["x < y", "x < 2", "y >= 2", "x != y", "y <= x", "x >= 2"]), max_size=1))
    return ", ".join([*body, *compared])


definitions = st.lists(bodies(), min_size=1, max_size=3)
rows = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=14)


def program(v: list[str], w: list[str]) -> Program:
    rules = [f"{name}(x, y) :- {body}." for name, each in (("v", v), ("w", w)) for body in each]
    return load(BASE + VIEWS + "\n".join(rules))


def check(session: Session, r: set[Tuple], s: set[Tuple]) -> None:
    expected = evaluate(session.program, {"r": r, "s": s})
    assert {name: set(session.relation(name)) for name in ("v", "w")} == {name: expected[name] for name in ("v", "w")}


def supports(session: Session, name: str) -> dict[Tuple, int]:
    table = session.backend.table(name)
    ids = table.ids()
    return dict(zip(session.backend.decode(name, ids), table.counts(ids).tolist(), strict=True))


@given(data=st.data(), r=rows, s=st.sets(st.tuples(st.integers(0, 4)), max_size=4))
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_revised_views_are_what_they_would_be_from_the_start(data: st.DataObject, r: set[Tuple], s: set[Tuple]) -> None:
    v, w = data.draw(definitions), data.draw(definitions)
    session = Session(program(v, w), facts={"r": r, "s": s})
    for _ in range(3):
        v = data.draw(st.one_of(definitions, st.just([*v, *data.draw(definitions)]), st.just(v[1:] or v)))
        revised = program(v, w)
        changes = session.revise(revised)
        fresh = Session(revised, facts={"r": r, "s": s})
        for name in ("v", "w"):
            assert supports(session, name) == supports(fresh, name)
        check(session, r, s)
        assert not set(changes.inserted.get("v", ())) & set(changes.deleted.get("v", ()))
        row = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
        session.apply([Update("-" if row in r else "+", "r", row)])
        r = r ^ {row}
        check(session, r, s)


JOIN = "v(x, y) :- r(x, z), r(z, y)."
TEXT = BASE + VIEWS + JOIN + "w(x, y) :- r(x, y)."
R = {(x % 40, x * x % 37) for x in range(400)}


def session_of(*rules: str) -> Session:
    return Session(load(BASE + VIEWS + "\n".join(rules)), facts={"r": R, "s": {(x,) for x in range(20)}})


def test_a_narrower_view_loses_some_of_its_own_rows() -> None:
    dense = {(x, z) for x in range(10) for z in range(10, 60)} | {(z, y) for z in range(10, 60) for y in range(60, 70)}
    dense |= {(70, 71), (71, 70)}
    session = Session(load(BASE + VIEWS + JOIN), facts={"r": dense})
    session.revise(load(BASE + VIEWS + JOIN.replace("y).", "y), x != y.", 1)))
    (adaptation,) = session.adaptations
    assert adaptation.way is Way.REFORMULATED
    assert adaptation.rules == ("-v(x, x) :- v(x, x).",)
    assert adaptation.cost < adaptation.costs[Way.RULES]
    assert len(session.relation("v")) == 100
    assert session.last_epoch["derivations"] == 2


def test_a_selection_goes_where_it_is_cheapest() -> None:
    session = session_of(JOIN)
    session.revise(load(BASE + VIEWS + JOIN.replace("y).", "y), x < 39.", 1)))
    (adaptation,) = session.adaptations
    assert adaptation.rules == ("-v(x, y) :- r(x, z), r(z, y), 39 <= x.",)


def test_a_new_view_is_made_from_one_that_is_there() -> None:
    session = Session(load(TEXT), facts={"r": R, "s": {(x,) for x in range(20)}})
    session.revise(load(TEXT + ".decl u(x:number, y:number) u(x, y) :- r(x, z), r(z, y), s(x)."))
    (adaptation,) = session.adaptations
    assert adaptation.rules == ("u(x, y) :- s(x), v(x, y).",)
    session.apply([Update("-", "s", (3,))])
    assert supports(session, "u") == supports(Session(session.program, facts=session.base()), "u")


def test_rules_that_cannot_be_reformulated_are_followed_as_they_are() -> None:
    session = session_of(JOIN)
    session.revise(load(BASE + VIEWS + JOIN + "v(x, y) :- r(x, y), !s(x)."))
    assert [(each.relation, each.way, each.costs) for each in session.adaptations] == [("v", Way.RULES, {})]
    assert set(session.relation("v")) == Session(session.program, facts=session.base()).views()["v"]


def test_what_is_smaller_is_derived_anew() -> None:
    session = session_of(JOIN)
    session.revise(load(BASE + VIEWS + "v(x, y) :- r(x, y), s(y), y < 2."))
    (adaptation,) = session.adaptations
    assert adaptation.way is Way.ANEW
    assert supports(session, "v") == supports(Session(session.program, facts=session.base()), "v")
    session.apply([Update("-", "s", (1,))])
    assert set(session.relation("v")) == Session(session.program, facts=session.base()).views()["v"]


def test_small_views_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whence.engine.adapt.WORTHWHILE", 20_000)
    session = session_of(JOIN)
    session.revise(load(BASE + VIEWS + JOIN + ".decl u(x:number, y:number) u(x, y) :- r(x, z), r(z, y), s(x)."))
    assert Way.REFORMULATED not in [each.way for each in session.adaptations]
    session.revise(load(BASE + VIEWS + JOIN.replace("y).", "y), x < 39.", 1)))
    assert [each.way for each in session.adaptations] == [Way.REFORMULATED]


def test_what_is_not_cheaper_is_not_done() -> None:
    session = session_of(JOIN)
    session.add_rule("v(x, y) :- r(x, y).")
    (adaptation,) = session.adaptations
    assert adaptation.way is Way.RULES
    assert adaptation.rules == ("v(x, y) :- r(x, y).",)
    assert "cost less" in adaptation.reason


def test_a_program_read_again_changes_nothing() -> None:
    session = session_of(JOIN, "w(x, y) :- r(x, y), s(y).")
    text = BASE + "\n\n" + VIEWS + "w(x, y) :- r(x, y), s(y)." + JOIN
    assert not session.revise(load(text)).inserted
    assert session.adaptations == ()
    assert session.last_epoch["derivations"] == 0


def test_counts_are_not_used_where_none_are_kept() -> None:
    for strategy in ("dred", "recompute"):
        session = Session(
            load(BASE + VIEWS + JOIN), facts={"r": {(1, 2), (2, 3), (3, 4)}, "s": set()}, strategy=strategy
        )
        session.revise(load(BASE + VIEWS + JOIN.replace(").", "), x < 2.")))
        way = Way.RULES if strategy == "dred" else Way.BESIDE
        assert [(each.relation, each.way, each.costs) for each in session.adaptations] == [("v", way, {})]
        assert set(session.relation("v")) == {(1, 3)}
