"""Pages of a relation are what sorting and filtering all of it would give, whatever has changed since the image was taken."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence import Session, Update, load
from whence.io.changes import Epoch
from whence.lang.types import Tuple
from whence.serve.filters import Filter, Sieve, parse_filter
from whence.serve.history import History, NotRetained
from whence.serve.image import Wanted
from whence.serve.live import LiveViews
from whence.serve.reports import applied_to

PROGRAM = load(".decl r(a:symbol, n:number, f:float) .input r .output r")
FIELDS = PROGRAM.relations["r"].fields
rows = st.tuples(
    st.text(alphabet="abÄ\U0001f600\x00", max_size=2),
    st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    st.sampled_from([0.0, -1.5, 2.25, float("inf")]),
)
epochs = st.lists(st.lists(st.tuples(st.sampled_from("+-"), rows), max_size=6), max_size=5)
filters = st.sampled_from([[], ["n>=0"], ["a~A"], ["f<1.0", "n!=2"], ["a=a"]])


@settings(max_examples=int(os.environ.get("WHENCE_EXAMPLES", "60")), deadline=None)
@given(
    start=st.lists(rows, max_size=12),
    given_epochs=epochs,
    where=filters,
    search=st.sampled_from(["", "a", "1"]),
    wanted=st.builds(
        Wanted, sort=st.integers(0, 2), descending=st.booleans(), offset=st.integers(0, 8), limit=st.integers(0, 8)
    ),
)
def test_pages_of_every_epoch_are_those_of_the_rows_then(
    start: list[Tuple],
    given_epochs: list[list[tuple[str, Tuple]]],
    where: Sequence[str],
    search: str,
    wanted: Wanted,
) -> None:
    live = LiveViews(Session(PROGRAM, facts={"r": start}))
    wanted = Wanted(wanted.sort, wanted.descending, parse_filter(where, search, FIELDS), wanted.offset, wanted.limit)
    live.page("r", wanted)  # the image is taken before the epochs
    views = [set(live.session.relation("r"))]
    for updates in given_epochs:
        applied_to(live, Epoch([Update(op, "r", row) for op, row in updates]), checked=False)
        views.append(set(live.session.relation("r")))
    tests = Sieve(wanted.filter, FIELDS, PROGRAM.types)
    for epoch, view in enumerate(views):
        passing = [row for row in view if tests(row)]
        order = sorted(passing, key=lambda row: (row[wanted.sort], row), reverse=wanted.descending)
        shown, page = live.page("r", wanted, epoch)
        assert (shown, page.total) == (epoch, len(passing))
        assert page.rows == order[wanted.offset : wanted.offset + wanted.limit]
        for other, before in enumerate(views):
            difference = live.history.difference("r", other, epoch)
            assert (difference.added, difference.gone) == (view - before, before - view)


def test_conditions_mean_what_they_say() -> None:
    found = parse_filter(["n <= 3", "a~b"], " x ", FIELDS)
    assert found == Filter(found.conditions, "x")
    tests = Sieve(parse_filter(["n<=3", "a~B"], "", FIELDS), FIELDS, PROGRAM.types)
    assert tests(("abc", 3, 0.0))
    assert not tests(("abc", 4, 0.0))
    assert not tests(("c", 3, 0.0))


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("n", "n is not a condition: write column, one of = != < <= > >= ~, and a value"),
        ("m=1", "there is no column m; there are a, n, f"),
        ("n=x", "x does not fit column n, a number"),
    ],
)
def test_conditions_that_do_not_fit_are_refused(condition: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("+", r"\+")):
        Sieve(parse_filter([condition], "", FIELDS), FIELDS, PROGRAM.types)


def test_values_that_have_no_order_are_ordered_by_how_they_are_written() -> None:
    program = load(".type P = [x:number, y:symbol] .decl r(p:P) .input r .output r")
    live = LiveViews(Session(program, facts={"r": [((2, "a"),), (None,), ((1, "b"),)]}))
    assert live.rows("r", 9) == [((1, "b"),), ((2, "a"),), (None,)]


def test_a_relation_without_columns_has_a_page() -> None:
    live = LiveViews(Session(load(".decl r() .input r .output r"), facts={"r": [()]}))
    assert live.rows("r", 9) == [()]
    applied_to(live, Epoch([Update("-", "r", ())]))
    assert live.rows("r", 9) == []
    assert live.rows("r", 9, 0) == [()]


def test_history_forgets_the_oldest_epochs_when_there_are_too_many_rows() -> None:
    live = LiveViews(Session(PROGRAM))
    live.history = History(0, max_rows=5)
    for number in range(4):
        applied_to(live, Epoch([Update("+", "r", (letter, number, 0.0)) for letter in "ab"]))
    assert (live.history.oldest, live.history.last) == (2, 4)
    with pytest.raises(NotRetained, match="epochs 2 to 4 are known, not 1"):
        live.history.difference("r", 1, 4)
    assert len(live.page("r", Wanted(), 2)[1].rows) == 4


def test_a_new_image_is_taken_when_the_epochs_since_are_forgotten() -> None:
    live = LiveViews(Session(PROGRAM))
    live.history = History(0, max_rows=2)
    live.page("r", Wanted())
    for number in range(5):
        applied_to(live, Epoch([Update("+", "r", ("a", number, 0.0))]))
    assert [row[1] for row in live.page("r", Wanted())[1].rows] == [0, 1, 2, 3, 4]


def test_an_image_that_is_asked_for_all_along_serves_the_past_too() -> None:
    live = LiveViews(Session(PROGRAM))
    live.history = History(0, max_rows=3)
    for number in range(1, 9):
        applied_to(live, Epoch([Update("+", "r", ("a", number, 0.0))]))
        assert live.page("r", Wanted())[1].total == number
    assert [live.page("r", Wanted(), epoch)[1].total for epoch in range(5, 9)] == [5, 6, 7, 8]
    with pytest.raises(NotRetained, match="epochs 5 to 8 are known, not 4"):
        live.page("r", Wanted(), 4)
