"""TPC-H as views: the 22 queries give DuckDB's answers, at first and under refreshes of orders and their items."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from random import Random

import duckdb
import pytest
from tests.lang.sql.tpch import QUERIES, SCHEMA, Row, orders, small_data

from whence import Session, Update, load


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(SCHEMA)
        yield connection


@pytest.mark.parametrize("number", QUERIES)
def test_a_query_of_tpch_is_duckdbs(number: int, database: duckdb.DuckDBPyConnection) -> None:
    random = Random(7)
    data = small_data(random)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = load(f"{SCHEMA} CREATE VIEW v AS {QUERIES[number]};", dialect="sql")
    session = Session(program, facts=dict(data))
    seen = [check(session, database, number, data)]
    for epoch in range(2):  # the refresh functions: new orders come, old ones go, each with its items
        new_orders, new_items = orders(random, range(100 + 10 * epoch, 106 + 10 * epoch))
        gone = set(random.sample([row[0] for row in data["orders"]], 4))
        changes = [Update("+", "orders", row) for row in new_orders]
        changes += [Update("+", "lineitem", row) for row in new_items]
        for table in ("orders", "lineitem"):
            changes += [Update("-", table, row) for row in data[table] if row[0] in gone]
            data[table] = [row for row in data[table] if row[0] not in gone]
        data["orders"] += new_orders
        data["lineitem"] += new_items
        session.apply(changes)
        seen.append(check(session, database, number, data))
    assert any(seen), "the data gives the query nothing to answer"


def check(session: Session, database: duckdb.DuckDBPyConnection, number: int, data: dict[str, list[Row]]) -> bool:
    for table, rows in data.items():
        database.execute(f"DELETE FROM {table}")
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    expected = sorted(map(rounded, database.execute(QUERIES[number]).fetchall()), key=repr)
    assert sorted(map(rounded, session.bag("v")), key=repr) == expected
    return any(value is not None for row in expected for value in row)


def rounded(row: Row) -> Row:
    """Averages and quotients are floats, as far as two ways of computing them agree; everything else is exact."""
    return tuple(round(value, 4) if isinstance(value, float) else value for value in row)
