"""What-if answers are what a re-evaluation gives, and the session does not notice that it was asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.excuses import LIMITS, excused, follow
from tests.properties.programs import Run, runs, updates
from tests.provenance.sessions import SOME, base_of, session_after

from whence import Changes, Session, Update, load
from whence.provenance.derive import CannotExplain
from whence.provenance.graph import Fact
from whence.provenance.whatif import rank_dependence, whatif
from whence.reference import evaluate


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@SOME
@given(runs(), st.lists(updates(), min_size=1, max_size=4))
def test_a_trial_tells_what_a_reevaluation_would(run: Run, trial: list[tuple]) -> None:
    session, twin = session_after(run), session_after(run)
    before = session.views()
    after = base_of(session)
    follow(after, trial)  # type: ignore[arg-type]
    with excused(run.program, after):
        changes = session.trial(trial)
        expected = evaluate(run.program, after, limits=LIMITS)
    for name, rows in before.items():
        deleted, inserted = set(changes.deleted.get(name, ())), set(changes.inserted.get(name, ()))
        assert (rows - deleted) | inserted == expected[name]
        assert deleted <= rows
        assert not inserted & rows
    # Undisturbed: the same state, and the same changes from here on as a session that was never asked.
    assert session.views() == before
    for epoch in run.epochs:
        assert as_sets(session.apply(epoch)) == as_sets(twin.apply(epoch))


def as_sets(changes: Changes) -> tuple[dict[str, set], ...]:
    return tuple({name: set(rows) for name, rows in side.items()} for side in (changes.inserted, changes.deleted))


WINDOWED = """
.decl seen(x:number)
.decl heard(x:number)
.input seen
.input heard
.window seen(rows=2)
.lifetime heard 10
both(x) :- seen(x), heard(x).
.output both
"""


def test_windows_and_clock_are_undisturbed() -> None:
    session, twin = Session(load(WINDOWED)), Session(load(WINDOWED))
    for each in (session, twin):
        each.apply([Update("+", "seen", (n,), n) for n in (1, 2)] + [Update("+", "heard", (n,), n) for n in (1, 2, 3)])
    changes = session.trial([Update("+", "seen", (3,), 100.0)])
    assert set(changes.deleted["heard"]) == {(1,), (2,), (3,)}
    assert set(changes.deleted["seen"]) == {(1,)}
    assert session.windows.clock == twin.windows.clock
    assert session.epoch == twin.epoch
    assert session.apply([Update("+", "seen", (3,), 4)]) == twin.apply([Update("+", "seen", (3,), 4)])
    assert set(session.relation("both")) == {(2,), (3,)}


REACH = """
.decl link(x:symbol, y:symbol)
.input link
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""


def test_single_points_of_failure() -> None:
    """a and b are twice connected; everything beyond c hangs on one link."""
    links = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    session = Session(load(REACH), facts={"link": links})
    found = {each.fact.tuple: each.lost for each in rank_dependence(session)}
    assert found == {("c", "d"): 3, ("b", "c"): 2, ("a", "b"): 1, ("a", "c"): 0}
    assert next(iter(found)) == ("c", "d")


def test_what_is_not_there_cannot_go_and_what_is_cannot_come() -> None:
    session = Session(load(REACH), facts={"link": [("a", "b")]})
    with pytest.raises(CannotExplain, match="cannot go"):
        whatif(session, without=[Fact("link", ("b", "a"))])
    with pytest.raises(CannotExplain, match="is there already"):
        whatif(session, given=[Fact("link", ("a", "b"))])
