"""Rows that come by column end up in a table as the set of them, however they are split, repeated and coded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence import Session, Update, load
from whence.backends.local import by_column, parallel
from whence.backends.local.by_column import Columns, Listed, Words
from whence.backends.local.table import Table
from whence.io.plain_columns import Coded, Pieces, PlainColumns

WORDS = st.one_of(
    st.integers(-3, 3), st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([1 << 31, -(1 << 31) - 1])
)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(parallel, "CORES", request.param)
    monkeypatch.setattr(parallel, "LARGE", 1)
    return request.param


def in_pieces(words: Words, cuts: list[int]) -> Pieces:
    return Pieces(tuple(each.copy() for each in np.split(words, sorted(cut % (len(words) + 1) for cut in cuts))))


def columns_of(rows: list[tuple[int, ...]], listed: int, cuts: list[list[int]] | None = None) -> Columns:
    """The columns are cut into pieces, each of them otherwise; there may be pieces without rows."""
    lines = np.array(rows, dtype=np.int64)
    columns: list[object] = [
        in_pieces(lines[:, at], cuts[at]) if cuts and cuts[at] else lines[:, at].copy() for at in range(lines.shape[1])
    ]
    words, places = np.unique(lines[:, listed], return_inverse=True)
    columns[listed] = Listed(places.astype(np.int32), words)
    return Columns(columns)  # type: ignore[arg-type]


@settings(deadline=None)
@given(
    rows=st.integers(1, 4).flatmap(lambda arity: st.lists(st.tuples(*[WORDS] * arity), min_size=1, max_size=60)),
    data=st.data(),
)
def test_a_table_has_each_row_once(rows: list[tuple[int, ...]], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.lists(st.integers(0, 60), max_size=4), min_size=len(rows[0]), max_size=len(rows[0])))
    given_rows = columns_of(rows, data.draw(st.integers(0, len(rows[0]) - 1)), cuts)
    assert given_rows.lines().tolist() == list(map(list, rows))
    table = Table(len(rows[0]))
    keys = given_rows.distinct()
    ids = table.add_new(keys, np.zeros(len(keys), dtype=np.int32))
    assert table.keys(ids).tolist() == [list(row) for row in dict.fromkeys(rows)]
    assert len(table) == len(set(rows))
    found = table.find(np.array(rows, dtype=np.int64))
    assert table.keys(found).tolist() == list(map(list, rows))


@pytest.mark.parametrize("repeats", [0, 1, 500])
@pytest.mark.parametrize("width", [1 << 20, 1 << 40])
def test_many_rows_are_told_apart(repeats: int, width: int, threads: int) -> None:
    rng = np.random.default_rng(repeats + threads)
    numbers = rng.permutation(50_000) * (width // 50_000)
    places = rng.integers(0, 100, 50_000).astype(np.int32)
    again = rng.integers(0, 50_000, repeats)
    columns = Columns(
        [
            in_pieces(cast("Words", np.concatenate([numbers, numbers[again]])), [1, 20_000, 20_003, 49_000]),
            Listed(np.concatenate([places, places[again]]), np.arange(100) + 7),
        ]
    )
    kept = columns.distinct()
    assert isinstance(kept, Columns) == (repeats == 0)
    table = Table(2)
    ids = table.add_new(kept, np.zeros(len(kept), dtype=np.int32))
    assert np.array_equal(table.column(ids, 0), numbers)
    assert np.array_equal(table.column(ids, 1), places + 7)


def test_rows_that_no_filter_tells_apart_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_column, "BITS_PER_ROW", 0)  # 64 bits for all of them
    rows = [(at % 3000, 0) for at in range(5000)]
    kept = columns_of(rows, 1).distinct()
    assert not isinstance(kept, Columns)
    assert kept.tolist() == [[at, 0] for at in range(3000)]


@pytest.mark.parametrize("strategy", ["support", "dred", "recompute", "absorption"])
def test_sessions_take_columns_for_rows(strategy: str) -> None:
    program = load(
        ".decl r(x:number, y:symbol) .input r .decl p(x:number) .input p p(x) :- r(x, _)."
        ".decl q(y:symbol) q(y) :- r(x, y), p(x). .output q"
    )
    rows = [(at % 7 << 33, "abc"[at % 3]) for at in range(100)]
    texts = ["a", "b", "c"]
    columns = PlainColumns(
        (np.array([x for x, _ in rows]), Coded(np.array([texts.index(y) for _, y in rows], dtype=np.int32), texts))
    )
    numbers = PlainColumns((np.array([5, 5, 6]),))  # of a relation that rules derive, too
    session = Session(program, facts={"r": columns, "p": numbers}, strategy=strategy)
    plain = Session(program, facts={"r": rows, "p": [(5,), (6,)]}, strategy=strategy)
    assert session.views() == plain.views()
    assert session.base() == plain.base()
    gone = [Update("-", "r", row) for row in set(rows) if row[1] == "a"]
    assert session.apply(gone).deleted == plain.apply(gone).deleted
