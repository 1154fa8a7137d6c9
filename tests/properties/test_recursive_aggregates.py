"""Recursive aggregates under random updates: after every epoch the views are the reference evaluator's."""

import os
from collections.abc import Mapping
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence import Session, Update, load
from whence.backends.local import groups
from whence.lang import Program
from whence.reference import evaluate

EXAMPLES = max(25, int(os.environ.get("WHENCE_EXAMPLES", "0")) // 10)
LINK = ".decl link(x:number, y:number, w:number) .input link .output sp "
PROGRAMS = {
    "all pairs": LINK + ".decl path(x:number, y:number, d:number) .decl sp(x:number, y:number, d:number)"
    "path(x, y, w) :- link(x, y, w). path(x, z, c + w) :- sp(x, y, c), link(y, z, w)."
    "sp(x, y, m) :- path(x, y, _), m = min d : { path(x, y, d) }.",
    "doubling": LINK + ".decl path(x:number, y:number, d:number) .decl sp(x:number, y:number, d:number)"
    "path(x, y, w) :- link(x, y, w). path(x, z, c + d) :- sp(x, y, c), sp(y, z, d)."
    "sp(x, y, m) :- path(x, y, _), m = min d : { path(x, y, d) }.",
    "widest": LINK + ".decl path(x:number, y:number, d:number) .decl sp(x:number, y:number, d:number)"
    "path(x, y, w) :- link(x, y, w). path(x, z, min(c, w)) :- sp(x, y, c), link(y, z, w)."
    "sp(x, y, m) :- path(x, y, _), m = max d : { path(x, y, d) }.",
    "next hop": LINK + ".decl path(x:number, y:number, n:number, d:number) .decl sp(x:number, y:number, d:number)"
    ".decl hop(x:number, y:number, n:number) .output hop hop(x, y, n) :- sp(x, y, d), path(x, y, n, d)."
    "path(x, y, y, w) :- link(x, y, w). path(x, z, y, c + w) :- link(x, y, w), sp(y, z, c)."
    "sp(x, y, m) :- path(x, y, _, _), m = min d : { path(x, y, _, d) }.",
    "two kinds": LINK + ".decl path(x:number, y:number, d:number) .decl sp(x:number, y:number, d:number)"
    ".decl far(x:number, d:number) .output far "
    "path(x, y, w) :- link(x, y, w). path(x, z, c + w) :- sp(x, y, c), link(y, z, w)."
    "sp(x, y, m) :- path(x, y, _), m = min d : { path(x, y, d) }."
    "far(x, m) :- m = max d : { sp(x, _, d) }, link(x, _, _).",
    "components": LINK + ".decl cand(x:number, l:number) .decl sp(x:number, l:number)"
    "cand(x, x) :- link(x, _, _). cand(x, x) :- link(_, x, _)."
    "cand(y, l) :- sp(x, l), link(x, y, _). cand(x, l) :- sp(y, l), link(x, y, _)."
    "sp(x, m) :- link(x, _, _), m = min l : { cand(x, l) }. sp(x, m) :- link(_, x, _), m = min l : { cand(x, l) }.",
    "control": LINK + ".decl share(x:number, via:number, y:number, s:number) .decl sp(x:number, y:number)"
    "share(x, x, y, w) :- link(x, y, w). share(x, z, y, w) :- sp(x, z), link(z, y, w)."
    "sp(x, y) :- share(x, _, y, _), t = sum s : { share(x, z, y, s) }, t > 4.",
    "capped": LINK + ".decl cand(x:number, v:number) .decl sp(x:number, v:number) cand(x, w) :- link(x, _, w)."
    "cand(y, min(v + w, 6)) :- sp(x, v), link(x, y, w). sp(x, m) :- cand(x, _), m = max v : { cand(x, v) }.",
    "threshold": LINK + ".decl cand(x:number, v:number) .decl sp(x:number, v:number) .decl near(x:number)"
    "cand(x, w + 2) :- link(x, _, w). near(x) :- sp(x, v), v < 5. cand(y, 1) :- near(x), link(x, y, _)."
    "sp(x, m) :- cand(x, _), m = min v : { cand(x, v) }.",
    "projected": LINK + ".decl cand(x:number, v:number) .decl sp(x:number, v:number) .decl seen(x:number)"
    "cand(x, w + 2) :- link(x, _, w). seen(x) :- sp(x, _). cand(y, 1) :- seen(x), link(x, y, _)."
    "sp(x, m) :- cand(x, _), m = min v : { cand(x, v) }.",
    "party": LINK + ".decl sp(x:number) sp(x) :- link(x, x, _)."
    "sp(x) :- link(x, _, _), n = count : { link(x, y, _), sp(y) }, n >= 2.",
}
UPDATES = st.lists(
    st.lists(
        st.tuples(st.sampled_from("++-"), st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3))),
        max_size=5,
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("strategy", ["support", "dred"])
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    start=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3)), max_size=12),
    epochs=UPDATES,
    few=st.sampled_from((1, 3, groups.FEW)),
)
def test_views_are_the_references(name: str, strategy: str, start: set, epochs: list, few: int) -> None:
    with mock.patch.object(groups, "FEW", few):  # so that rows are held back, though there are not many
        _follow(load(PROGRAMS[name]), strategy, start, epochs)


def _follow(program: Program, strategy: str, start: set, epochs: list) -> None:
    session = Session(program, facts={"link": start}, strategy=strategy)
    links = set(start)
    shown: dict[str, set] = {each: set(rows) for each, rows in session.initial.inserted.items()}
    _check(session, evaluate(program, {"link": links}), shown)
    for updates in epochs:
        changes = session.apply(Update(op, "link", row) for op, row in updates)
        for op, row in updates:
            (links.add if op == "+" else links.discard)(row)
        for each, rows in changes.deleted.items():
            assert shown[each] >= set(rows)
            shown[each] -= set(rows)
        for each, rows in changes.inserted.items():
            assert not shown.setdefault(each, set()) & set(rows)
            shown[each] |= set(rows)
        _check(session, evaluate(program, {"link": links}), shown)


def _check(session: Session, expected: Mapping[str, set], shown: Mapping[str, set]) -> None:
    assert session.views() == expected
    assert {name: shown.get(name, set()) for name in expected} == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_values_that_may_rest_on_themselves_are_evaluated_anew(name: str) -> None:
    is_native = all(stratum.native for stratum in Session(load(PROGRAMS[name])).plan.strata)
    assert is_native == (name not in ("control", "party", "capped", "threshold", "projected"))
