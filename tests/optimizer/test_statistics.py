"""Estimates against what the data holds."""

from __future__ import annotations

import json
from datetime import date, timedelta
from random import Random

import duckdb
import pytest

from whence.optimizer import (
    Optimizer,
    QuerySpace,
    Statistics,
    StatisticsError,
    Table,
    parse_query,
    statistics_from_json,
    statistics_to_json,
    summarize,
)
from whence.optimizer.show import title


def _skewed(random: Random) -> int:
    return min(99, int(100 * random.random() ** 2))


@pytest.fixture(scope="module")
def data() -> duckdb.DuckDBPyConnection:
    random = Random(7)
    db = duckdb.connect()
    db.execute("CREATE TABLE a(k INT, v INT, d DATE, t VARCHAR)")
    db.execute("CREATE TABLE b(k INT, w DOUBLE)")
    days = [date(1992, 1, 1) + timedelta(days=random.randrange(2500)) for _ in range(5000)]
    rows = [(_skewed(random), random.randrange(1000), day, random.choice("xxxxyz")) for day in days]
    db.executemany("INSERT INTO a VALUES (?, ?, ?, ?)", rows)
    db.executemany("INSERT INTO b VALUES (?, ?)", [(_skewed(random), random.gauss(0, 1)) for _ in range(2000)])
    return db


@pytest.fixture(scope="module")
def statistics(data: duckdb.DuckDBPyConnection) -> Statistics:
    tables = {}
    for name in ("a", "b"):
        shown = data.execute(f"SELECT * FROM {name}")
        columns = [each[0] for each in shown.description]
        rows = shown.fetchall()
        values = {column: [row[at] for row in rows] for at, column in enumerate(columns)}
        texts = {"d": [str(each) for each in values.get("d", ())]}
        tables[name] = Table(len(rows), {column: summarize(texts.get(column) or values[column]) for column in columns})
    return Statistics(tables)


@pytest.mark.parametrize(
    "where",
    [
        "a.v < 250",
        "a.v >= 250 AND a.v < 500",
        "a.v BETWEEN 100 AND 400",
        "a.t = 'x'",
        "a.t <> 'x'",
        "a.t IN ('y', 'z')",
        "a.k = 0",
        "a.k = 97",
        "NOT a.v < 250",
        "a.v < 100 OR a.v > 900",
        "a.d < '1995-01-01'",
        "a.d >= date '1993-01-01' AND a.d < date '1994-01-01'",
        "500 <= a.v",
    ],
)
def test_filters_let_through_what_is_estimated(
    where: str, data: duckdb.DuckDBPyConnection, statistics: Statistics
) -> None:
    ((rows,),) = data.execute(f"SELECT count(*) FROM a WHERE {where}").fetchall()
    space = QuerySpace(parse_query(f"SELECT a.k FROM a WHERE {where}", statistics), statistics)
    assert space.rows(1) == pytest.approx(rows, rel=0.1, abs=30)


def test_joins_of_skewed_columns_are_estimated_by_their_common_values(
    data: duckdb.DuckDBPyConnection, statistics: Statistics
) -> None:
    text = "SELECT a.v FROM a, b WHERE a.k = b.k"
    ((rows,),) = data.execute("SELECT count(*) FROM a, b WHERE a.k = b.k").fetchall()
    space = QuerySpace(parse_query(text, statistics), statistics)
    assert space.rows(3) == pytest.approx(rows, rel=0.1)


def test_statistics_survive_as_json(statistics: Statistics) -> None:
    again = statistics_from_json(json.loads(json.dumps(statistics_to_json(statistics))))
    text = "SELECT a.v FROM a, b WHERE a.k = b.k AND a.v < 77 AND a.t = 'y'"
    spaces = [QuerySpace(parse_query(text, each), each) for each in (statistics, again)]
    assert spaces[0].rows(3) == pytest.approx(spaces[1].rows(3), rel=1e-3)


def test_columns_that_are_equal_by_way_of_others_are_joined() -> None:
    query = parse_query("SELECT a.x FROM a, b, c WHERE a.k = b.k AND b.k = c.k", Statistics())
    space = QuerySpace(query, Statistics())
    assert (0b101, 0b010) in space.splits(0b111)
    # Each of the three has 100 values of k in 1000 rows, in whichever order they are joined.
    assert space.rows(0b111) == pytest.approx(1000**3 / 100**2, rel=0.01)


def test_parts_that_nothing_connects_are_multiplied() -> None:
    query = parse_query("SELECT a.x FROM a, b, c WHERE a.k = b.k", Statistics())
    space = QuerySpace(query, Statistics())
    assert {left for left, _ in space.splits(0b111)} >= {0b100, 0b011}
    assert space.rows(0b101) == pytest.approx(1e6, rel=0.01)


def test_tables_elsewhere_are_shipped_the_smaller_way() -> None:
    tables = {
        "a": {"rows": 10, "place": "here", "columns": {"k": {"distinct": 10}}},
        "b": {"rows": 100000, "place": "there", "columns": {"k": {"distinct": 100000}}},
    }
    statistics = statistics_from_json({"tables": tables, "place": "here"})
    space = QuerySpace(parse_query("SELECT a.k FROM a, b WHERE a.k = b.k", statistics), statistics)
    shipped = [each.node[0] for each in Optimizer(space).plan().walk() if each.alternative.physical == "ship"]
    assert shipped == [0b11, 0b01]  # the small table there, the result back


def _operators(partitioned: dict[str, str], rows: dict[str, int], parts: int) -> list[str]:
    columns = {"a": ["k", "x"], "b": ["k", "m"], "c": ["m"]}
    tables = {
        name: {
            "rows": rows[name],
            "partitioned": partitioned.get(name, ""),
            "columns": {each: {} for each in columns[name]},
        }
        for name in columns
    }
    statistics = statistics_from_json({"tables": tables, "parts": parts})
    assert statistics_from_json(statistics_to_json(statistics)) == statistics
    query = parse_query("SELECT a.x FROM a, b, c WHERE a.k = b.k AND b.m = c.m", statistics)
    space = QuerySpace(query, statistics)
    plan = Optimizer(space).plan()
    return [title(space, each.node, each.alternative) for each in plan.walk()]


def test_rows_in_parts_are_brought_together_where_they_are_not() -> None:
    large = {"a": 100_000, "b": 100_000, "c": 100_000}
    assert not any(each.startswith(("repartition", "broadcast")) for each in _operators({"a": "k", "b": "k"}, large, 0))
    few, many = (_operators({"a": "k", "b": "k", "c": "m"}, large, parts) for parts in (2, 1000))
    assert [each for each in few if each.startswith(("repartition", "broadcast"))] == ["broadcast: c"]
    moved = [each for each in many if each.startswith(("repartition", "broadcast"))]
    assert sorted(moved) == ["repartition by k: b, c", "repartition by m: b"]
    everywhere = _operators({"a": "k", "b": "k", "c": "*"}, large, 8)
    assert not any(each.startswith(("repartition", "broadcast")) for each in everywhere)
    small = _operators({"a": "k", "b": "k"}, {**large, "c": 10}, 8)
    assert [each for each in small if each.startswith(("repartition", "broadcast"))] == ["broadcast: c"]


def test_tables_are_in_parts_or_at_places() -> None:
    with pytest.raises(StatisticsError, match="in parts or at places"):
        statistics_from_json({"tables": {"a": {"place": "here"}}, "parts": 4})
