"""Random queries as views over random updates, against DuckDB's answers, row by row and as often as they are there."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from random import Random

import duckdb
import pytest
from tests.lang.sql.statements import SCHEMA, TABLES, Row, Statements, random_row

from whence import Session, Update, load

STATEMENTS = max(100, int(os.environ.get("WHENCE_EXAMPLES", "0")))
EPOCHS = 3
# In so many tests, so that a failure names few statements.
CHUNKS = 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_views_of_random_queries_are_duckdbs(chunk: int) -> None:
    ran = 0
    for seed in range(chunk, STATEMENTS, CHUNKS):
        ran += is_duckdbs(seed)
    assert ran > 0.5 * STATEMENTS / CHUNKS  # DuckDB refuses few


def is_duckdbs(seed: int) -> bool:
    """Whether DuckDB takes the query; asserts that the view is DuckDB's answer after each epoch."""
    random = Random(seed)
    query, _ = Statements(random).query()
    database = duckdb.connect()
    database.execute(SCHEMA)
    try:
        database.execute(f"EXPLAIN {query}")
    except duckdb.Error:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(load(f"{SCHEMA} CREATE VIEW v AS {query};", dialect="sql"))
        base: dict[str, Counter[Row]] = {table: Counter() for table in TABLES}
        for _ in range(EPOCHS):
            session.apply(updates(random, base))
            for table, rows in base.items():
                database.execute(f"DELETE FROM {table}")
                for row in rows.elements():
                    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            try:
                expected = database.execute(query).fetchall()
            except duckdb.Error:  # of rows that it cannot compute with
                return False
            assert rounded(session.bag("v")) == rounded(expected), f"seed {seed}: {query}"
    return True


def updates(random: Random, base: dict[str, Counter[Row]]) -> list[Update]:
    """Some insertions and deletions, which `base` follows."""
    made: list[Update] = []
    for table, rows in base.items():
        for _ in range(random.randint(0, 5)):
            present = list(rows.elements())
            if present and random.random() < 0.4:
                row = random.choice(present)
                rows[row] -= 1
                if not rows[row]:
                    del rows[row]
                made.append(Update("-", table, row))
                continue
            row = random_row(random, table)
            if row not in rows and not (table == "u" and any(other[0] == row[0] for other in rows)):
                rows[row] += 1
                made.append(Update("+", table, row))
    return made


def rounded(rows: list[Row]) -> Counter[Row]:
    """Floats as far as two ways of adding them up agree; a number is the same with and without a point."""
    return Counter(
        tuple(round(float(value), 6) if isinstance(value, int | float) else value for value in row) for row in rows
    )
