"""Tables and indexes against plain dictionaries."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from whence.backends.local import blocks, parallel
from whence.backends.local.arrays import listed
from whence.backends.local.hashing import BITS, CAPACITY, DELETED, EMPTY, FILLED, MASK, STEP, USED
from whence.backends.local.links import SHORT
from whence.backends.local.memory import Growing
from whence.backends.local.table import Table
from whence.engine.protocol import ADDED, GONE, HIDDEN, QUEUED, SUSPENDED

Row = tuple[int, ...]
BIG = 1 << 40


@pytest.fixture(autouse=True, params=["rows", "blocks"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All of it with a line for each row, and with rows that share lines."""
    monkeypatch.setattr(blocks, "FORCED", request.param)
    return str(request.param)


def lines(rows: list[Row], arity: int = 2) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(len(rows), arity)


def add(table: Table, rows: list[Row]) -> list[Row]:
    keys = lines(rows, table.arity)
    queued = table.add_supports(keys, np.full(len(rows), -1, dtype=np.int32))
    return values(table, queued)


def values(table: Table, ids: np.ndarray) -> list[Row]:
    return [tuple(row) for row in table.keys(ids).tolist()]


def erase(table: Table, rows: list[Row]) -> None:
    ids = table.find(lines(rows, table.arity))
    assert (ids >= 0).all()
    table.erase(ids)


def counts(table: Table) -> dict[Row, int]:
    ids = table.ids()
    return dict(zip(values(table, ids), table._halves(ids, 4).tolist(), strict=True))


def under(table: Table, columns: tuple[int, ...], key: Row) -> list[Row]:
    picks, matches = table.index(columns).probe(lines([key], len(columns)), 0)
    assert not picks.any()
    return sorted(values(table, matches))


def test_rows_are_queued_when_made_and_counted_when_met_again() -> None:
    table = Table(2)
    assert add(table, [(1, 2), (3, 4), (1, 2)]) == [(1, 2), (3, 4)]
    assert add(table, [(3, 4), (5, 6)]) == [(5, 6)]
    assert counts(table) == {(1, 2): 2, (3, 4): 2, (5, 6): 1}
    flags = table.flags(table.find(lines([(5, 6)])))
    assert flags.tolist() == [SUSPENDED | QUEUED | HIDDEN | ADDED]


def test_slots_of_rows_that_went_are_empty_where_nothing_stands_behind_them() -> None:
    """So that look-ups end there, and the slots are not filled anew."""
    rng = random.Random(3)
    table, there = Table(2), set[Row]()
    for _ in range(200):
        come = {(rng.randrange(60), rng.randrange(60)) for _ in range(rng.randrange(40))} - there
        add(table, sorted(come))
        there |= come
        gone = rng.sample(sorted(there), rng.randrange(len(there) + 1))
        erase(table, gone)
        there -= set(gone)
        slots = table.rows.slots[:, 0]
        assert table.fields[FILLED] == (slots != EMPTY).sum()
        assert not ((slots == DELETED) & (np.roll(slots, -1) == EMPTY)).any()
        assert counts(table) == dict.fromkeys(there, 1)
        absent = [(x, y) for x in range(60) for y in range(60) if (x, y) not in there]
        assert (table.find(lines(absent)) < 0).all()
        assert (table.find(lines(sorted(there))) >= 0).all()


def test_tables_grow() -> None:
    table = Table(2)
    rows = [(at, -at) for at in range(100_000)]
    assert add(table, rows) == rows
    assert len(table) == 100_000
    assert table.handle[CAPACITY] >= 100_000
    assert values(table, table.find(lines(rows))) == rows
    assert table.find(lines([(1, 1), (100_000, -100_000)])).tolist() == [-1, -1]


def test_new_rows_are_found_once_they_are_asked_for() -> None:
    table, rows = Table(2), [(at, -at) for at in range(50_000)]
    rows[30_000] = (BIG, 7)
    for start in range(0, len(rows), 20_000):
        part = rows[start : start + 20_000]
        ids = table.add_new(lines(part), np.full(len(part), -1, dtype=np.int32))
        assert values(table, ids) == part
        assert table.with_flags(ids, on=SUSPENDED | QUEUED | HIDDEN | ADDED).tolist() == ids.tolist()
    assert len(table) == len(rows)
    assert under(table, (0,), (BIG,)) == [(BIG, 7)]
    assert values(table, table.find(lines(rows))) == rows
    assert table.find(lines([(1, 1)])).tolist() == [-1]


@pytest.mark.parametrize("looked_up", ["find", "add_supports", "erase", "drop_supports"])
def test_new_rows_and_others_are_counted_alike(looked_up: str) -> None:
    table, unranked = Table(2), np.full(2, -1, dtype=np.int32)
    ids = table.add_new(lines([(1, 2), (3, 4)]), unranked)
    table.activate(ids, 5)
    match looked_up:
        case "find":
            assert table.find(lines([(3, 4)])).tolist() == ids[1:].tolist()
        case "add_supports":
            assert add(table, [(1, 2), (5, 6)]) == [(5, 6)]
            assert counts(table) == {(1, 2): 2, (3, 4): 1, (5, 6): 1}
        case "erase":
            table.erase(ids[:1])
            assert table.find(lines([(1, 2), (3, 4)])).tolist() == [-1, ids[1]]
        case "drop_supports":
            assert table.drop_supports(lines([(3, 4)]), unranked[:1]).tolist() == ids[1:].tolist()
    more = [(at, at) for at in range(10, 1000)]
    new = table.add_new(lines(more), np.full(len(more), -1, dtype=np.int32))
    assert values(table, new) == more
    assert table.find(lines(more)).tolist() == new.tolist()
    assert under(table, (1,), (10,)) == [(10, 10)]


def test_large_arrays_keep_their_content_when_the_system_moves_them() -> None:
    room = Growing(10, 3)
    room.array[:] = np.arange(30).reshape(10, 3)
    for size in (100, 1_000_000, 1_000_001, 3_000_000):
        room.grow(size)
        assert len(room.array) >= size
        assert (room.array[:10] == np.arange(30).reshape(10, 3)).all()
        room.array[-1] = 7


@pytest.mark.parametrize("wide", [1 << 31, -(1 << 31) - 1, BIG, -(1 << 63), (1 << 63) - 1])
def test_columns_widen_when_a_word_does_not_fit(wide: int) -> None:
    table = Table(2)
    small = [(at, -at) for at in range(-500, 500)] + [((1 << 31) - 1, -(1 << 31))]
    add(table, small)
    under(table, (0,), (3,))
    assert table.handle[STEP] == 1
    assert table.find(lines([(wide, 0)])).tolist() == [-1]
    assert table.handle[STEP] == 1, "asking does not widen"
    add(table, [(1, 1), (wide, 0), (2, 2)])
    assert table.handle[STEP] == 2
    assert set(counts(table)) == {*small, (1, 1), (wide, 0), (2, 2)}
    assert (table.find(lines(small)) >= 0).all()
    assert under(table, (0,), (wide,)) == [(wide, 0)]
    assert under(table, (0,), (2,)) == [(2, -2), (2, 2)]
    assert under(table, (1,), (-(1 << 31),)) == [((1 << 31) - 1, -(1 << 31))]


def test_words_that_differ_in_their_high_half_only_are_told_apart() -> None:
    table = Table(1)
    add(table, [(5,)])
    assert table.find(lines([(5 + (1 << 32),)], 1)).tolist() == [-1]
    add(table, [(5 + (1 << 32),)])
    assert counts(table) == {(5,): 1, (5 + (1 << 32),): 1}


def test_erased_lines_and_slots_are_used_again() -> None:
    table = Table(2)
    rows = [(at, at) for at in range(1000)]
    add(table, rows)
    capacity, mask = table.handle[CAPACITY], table.handle[MASK]
    for shift in range(1, 200):
        erase(table, rows)
        rows = [(at, at + shift) for at in range(1000)]
        assert add(table, rows) == rows
    assert len(table) == 1000
    assert table.handle[USED] == 1000
    assert table.handle[CAPACITY] == capacity
    assert table.handle[MASK] <= 2 * mask + 1, "deleted slots are cleared away"
    assert set(counts(table)) == set(rows)


def test_erased_rows_are_gone_from_all_indexes() -> None:
    table = Table(2)
    add(table, [(1, 2), (1, 3), (2, 3)])
    assert under(table, (0,), (1,)) == [(1, 2), (1, 3)]
    assert under(table, (1,), (3,)) == [(1, 3), (2, 3)]
    erase(table, [(1, 3)])
    assert under(table, (0,), (1,)) == [(1, 2)]
    assert under(table, (1,), (3,)) == [(2, 3)]
    assert table.find(lines([(1, 3)])).tolist() == [-1]


def test_rows_that_no_index_has_met_yet_can_be_erased() -> None:
    table = Table(2)
    add(table, [(1, 2)])
    assert under(table, (0,), (1,)) == [(1, 2)]
    add(table, [(1, 3), (1, 4)])
    erase(table, [(1, 3), (1, 2)])
    add(table, [(1, 5)])
    erase(table, [(1, 5)])
    assert under(table, (0,), (1,)) == [(1, 4)]


def test_probes_leave_out_rows_with_forbidden_flags() -> None:
    table = Table(2)
    add(table, [(1, 2), (1, 3)])
    table.change_flags(table.find(lines([(1, 2)])), on=GONE)
    picks, matches = table.index((0,)).probe(lines([(9,), (1,)], 1), GONE)
    assert (picks.tolist(), values(table, matches)) == ([1], [(1, 3)])
    assert table.find(lines([(1, 2), (1, 3)]), GONE).tolist() == [-1, *matches.tolist()]


def test_an_index_on_no_columns_has_all_rows() -> None:
    table = Table(2)
    add(table, [(1, 2), (3, 4)])
    assert under(table, (), ()) == [(1, 2), (3, 4)]
    add(table, [(5, 6)])
    assert under(table, (), ()) == [(1, 2), (3, 4), (5, 6)]


def test_a_relation_without_columns_has_one_row_at_most() -> None:
    table = Table(0)
    assert len(table.add_supports(np.empty((3, 0), dtype=np.int64), np.full(3, -1, dtype=np.int32))) == 1
    assert len(table) == 1


def test_rows_with_equal_hashes_are_told_apart() -> None:
    words = np.arange(400_000, dtype=np.uint64)
    hashed = (np.uint64(0x2545F4914F6CDD1D) ^ words) * np.uint64(0x9E3779B97F4A7C15)
    hashed = (hashed ^ (hashed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93) >> np.uint64(32)
    order = np.argsort(hashed, kind="stable")
    twins = np.flatnonzero(np.diff(hashed[order]) == 0)
    assert len(twins) > 5
    for twin in twins:
        one, other = int(order[twin]), int(order[twin + 1])
        table = Table(1)
        assert add(table, [(one,)]) == [(one,)]
        assert table.find(lines([(other,)], 1)).tolist() == [-1]
        assert add(table, [(other,), (one,)]) == [(other,)]
        assert under(table, (0,), (other,)) == [(other,)]
        erase(table, [(one,)])
        assert counts(table) == {(other,): 1}
        assert table.find(lines([(one,), (other,)], 1)).tolist() == [-1, *table.ids().tolist()]


def test_support_is_well_founded_only_from_lower_ranks() -> None:
    table = Table(1)
    row = lines([(7,)], 1)
    ids = table.add_supports(row, np.array([-1], dtype=np.int32))
    table.activate(ids, 5)
    assert table.add_supports(row, np.array([5], dtype=np.int32)).tolist() == []
    assert table.add_supports(row, np.array([4], dtype=np.int32)).tolist() == []
    assert table.drop_supports(row, np.array([4], dtype=np.int32)).tolist() == []
    assert table.drop_supports(row, np.array([-1], dtype=np.int32)).tolist() == ids.tolist()
    assert counts(table) == {(7,): 1}, "the derivation from rank 5 is left, and does not hold the row"
    assert table.with_flags(ids, on=SUSPENDED).tolist() == ids.tolist()
    assert table.with_flags(ids, off=SUSPENDED).tolist() == []


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param > 1:
        monkeypatch.setattr(parallel, "LARGE", 1)
        monkeypatch.setattr(parallel, "CORES", request.param)


def test_rows_that_are_listed_late_are_those_of_before() -> None:
    table = Table(2)
    before = table.add_supports(np.array([[1, 2], [3, 4]]), np.zeros(2, dtype=np.int32))
    table.activate(before, 5)
    rows = table.unlisted(5)
    assert len(rows) == 2
    assert listed(rows).tolist() == table.ids().tolist()
    later = table.add_supports(np.array([[1, 3], [70, 4], [5, 6]]), np.zeros(3, dtype=np.int32))
    table.activate(later[:2], 6)
    assert sorted(listed(rows).tolist()) == sorted(before.tolist()), "neither what is present by now nor what is queued"


@pytest.mark.parametrize("size", [1, 7, 4 * parallel.LARGE + 1])
def test_rows_become_present_by_all_threads_alike(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CORES", 3)
    table = Table(1)
    ids = table.add_supports(np.arange(size).reshape(-1, 1), np.zeros(size, dtype=np.int32))
    old = ids[::3].copy()
    table.change_flags(old, off=ADDED)
    assert table.activate(ids, 9).tolist() == [each for at, each in enumerate(ids.tolist()) if at % 3]
    assert (table.ranks(ids) == 9).all()
    assert not (table.flags(ids) & (SUSPENDED | QUEUED | HIDDEN)).any()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("seed", range(6))
def test_random_insertions_and_deletions_match_a_dictionary(seed: int) -> None:
    rng = random.Random(seed)
    values_of = [0, 1, 2, 3, 50, -1, *([BIG, -BIG] if seed % 2 else []), *range(100, 100 + 10 * seed)]
    table, model = Table(3), Counter[Row]()
    for step in range(120):
        rows = [tuple(rng.choice(values_of) for _ in range(3)) for _ in range(rng.randrange(1, 200))]
        if rng.random() < 0.55:
            expected = [row for row in dict.fromkeys(rows) if row not in model]
            # Two threads queue rows in another order.
            assert sorted(add(table, rows)) == sorted(expected)
            model.update(rows)
        else:
            gone = sorted(set(rows) & set(model))
            erase(table, gone)
            for row in gone:
                del model[row]
        assert len(table) == len(model)
        if step % 10 == 0:
            assert counts(table) == dict(model)
        columns = rng.choice([(0,), (2,), (0, 1), (1, 2), (2, 0), ()])
        key = tuple(rng.choice(values_of) for _ in columns)
        expected = sorted(row for row in model if tuple(row[column] for column in columns) == key)
        assert under(table, columns, key) == expected


@pytest.mark.usefixtures("threads")
def test_many_keys_in_few_slots() -> None:
    """Small tables filled to their limit: runs of slots cross from one thread's half into the other's, and wrap around."""
    rng = random.Random(1)
    for size in range(40, 160):
        table, model = Table(1), Counter[Row]()
        rows = [(rng.randrange(size),) for _ in range(30)]
        add(table, rows)
        model.update(rows)
        while len(model) < size:
            rows = [(rng.randrange(size),) for _ in range(min(20, len(model) - 1))]
            add(table, rows)
            model.update(rows)
        assert counts(table) == dict(model)
        assert (table.find(lines([(at,) for at in range(size)], 1)) >= 0).all()


@pytest.mark.usefixtures("threads")
def test_wide_rows_among_narrow_ones_in_one_batch() -> None:
    table = Table(2)
    add(table, [(at, at) for at in range(200)])
    rows = [(at, BIG * (at % 7 == 0)) for at in range(100, 250)] * 2
    assert sorted(add(table, rows[:150])) == sorted(set(rows))
    assert add(table, rows[150:]) == []
    assert counts(table) == {(at, at): 1 for at in range(200)} | dict.fromkeys(rows, 2)


def test_an_index_with_gaps_is_made_anew() -> None:
    """Blocks that move leave gaps; they must not add up over many epochs."""
    table = Table(2)
    add(table, [(key, at) for key in range(50) for at in range(40)])
    index = table.index((0,))
    for epoch in range(100):
        rows = [(epoch % 50, 1000 + epoch * 100 + at) for at in range(100)]
        add(table, rows)
        assert len(under(table, (0,), (epoch % 50,))) == 140
        erase(table, rows)
    assert index.arena.array.nbytes < 10 * 4 * 2000
    assert under(table, (0,), (3,)) == [(3, at) for at in range(40)]


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_rows_are_taken_out_of_short_blocks_and_of_long_ones(*, is_rebuilt: bool) -> None:
    """Blocks get long by rows that come one after the other, and by an index that is made when all are there."""
    table, there, rng = Table(2), {0: set[Row](), 1: set[Row]()}, random.Random(3)
    add(table, [(0, 0), (1, 0)])
    index = table.index((0,))
    for key, count in ((0, SHORT // 2), (1, 2 * SHORT)):
        there[key] = {(key, value) for value in range(count)}
    step = 3 * SHORT if is_rebuilt else 700
    coming = sorted(row for rows in there.values() for row in rows if row[1])
    for start in range(0, len(coming), step):
        add(table, coming[start : start + step])
        table.link_new()
    assert len(index.place.array) >= 2 * SHORT
    while any(there.values()):
        for key, rows in there.items():
            assert under(table, (0,), (key,)) == sorted(rows)
            gone = rng.sample(sorted(rows), min(len(rows), 900))
            erase(table, gone)
            rows.difference_update(gone)


def test_short_blocks_keep_no_places() -> None:
    table, rng = Table(2), random.Random(4)
    rows = [(at % 7, at) for at in range(7 * 300)]
    add(table, rows)
    index = table.index((0,))
    there = set(rows)
    for _ in range(40):
        gone = rng.sample(sorted(there), 40)
        erase(table, gone)
        there.difference_update(gone)
        back = rng.sample([row for row in rows if row not in there], 20)
        add(table, back)
        there.update(back)
        for key in range(7):
            assert under(table, (0,), (key,)) == sorted(row for row in there if row[0] == key)
    assert not index.place.array.nbytes


def test_what_tables_take_is_told() -> None:
    table = Table(2)
    add(table, [(at % 1000, at) for at in range(50_000)])
    without = table.nbytes
    table.index((0,))
    assert without >= 50_000 * (2 * 4 + 4 * 4 + 4)
    assert table.nbytes >= without + 50_000 * 4


def told(table: Table) -> dict[Row, tuple[int, ...]]:
    ids = table.ids()
    return {
        row: known
        for row, *known in zip(
            values(table, ids),
            table.counts(ids).tolist(),
            table.ranks(ids).tolist(),
            table.flags(ids).tolist(),
            strict=True,
        )
    }


@pytest.mark.parametrize("wide", [0, BIG, -BIG])
def test_rows_keep_all_that_is_known_of_them_when_they_come_to_share_lines(
    wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "FORCED", "changing")
    rng, table = random.Random(7), Table(3)
    rows = sorted({(rng.randrange(3), rng.randrange(-40, 40), wide + rng.randrange(-300, 300)) for _ in range(5000)})
    rng.shuffle(rows)
    add(table, rows)
    add(table, rng.sample(rows, 500))
    table.activate(table.find(lines(rows[:100], 3)), 7)
    erase(table, rows[200:400])
    before, groups = told(table), {key: under(table, (0, 1), key) for key in {row[:2] for row in rows}}
    for _ in range(3):
        old = table.ids()
        keys = values(table, old)
        moved = table.reconsider()
        assert moved is not None
        assert values(table, moved[old]) == keys
        assert told(table) == before
        assert {key: under(table, (0, 1), key) for key in groups} == groups
    add(table, rows[200:400])
    assert under(table, (0, 1), rows[200][:2]) == sorted(row for row in rows if row[:2] == rows[200][:2])


def test_rows_share_lines_where_they_lie_close_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "FORCED", "")
    table, close = Table(2), [(one, other) for one in range(50) for other in range(100)]
    add(table, close)
    assert table.reconsider() is not None
    assert table.handle[BITS] == blocks.BLOCK_BITS
    assert table.reconsider() is None
    add(table, [(one, 1000 * other) for one in range(100) for other in range(1, 400)])
    assert table.reconsider() is not None, "now they do not"
    assert table.handle[BITS] == 0
    assert set(close) <= set(values(table, table.ids()))


def test_no_other_layouts_are_known() -> None:
    with pytest.raises(blocks.UnknownLayout, match="rows, blocks or changing"):
        blocks.asked_for("columns")
