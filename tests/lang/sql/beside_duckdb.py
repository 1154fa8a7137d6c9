"""Random queries as views over random updates, beside DuckDB: after each epoch the same rows, as often.

`python -m tests.lang.sql.beside_duckdb --count 10000 --seed 0` compares so many statements, one after the other, and ends with
1 if there was a difference; each is told with its seed, by which it can be had again. `make compare-sql` is the same.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from decimal import Decimal
from functools import cache
from random import Random

import duckdb
from tests.lang.sql.statements import SCHEMA, TABLES, Row, Statements, random_row

from whence import Session, Update, load

EPOCHS = 3
_SAY = 500  # statements between two lines that say how far it is


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One for all statements: opening it, and several threads for a few rows, take longer than they do."""
    opened = duckdb.connect(config={"threads": 1})
    opened.execute(SCHEMA)
    return opened


def fill(table: str, rows: Counter[Row]) -> None:
    database().execute(f"DELETE FROM {table}")
    listed = list(rows.elements())
    if listed:
        places = ", ".join(f"({', '.join('?' * len(row))})" for row in listed)
        database().execute(f"INSERT INTO {table} VALUES {places}", [value for row in listed for value in row])


def is_duckdbs(seed: int) -> bool:
    random = Random(seed)
    query, _ = Statements(random).query()
    return agrees(query, random, f"seed {seed}")


def agrees(query: str, random: Random, name: str) -> bool:
    """Whether DuckDB takes the query; asserts that the view is DuckDB's answer after each epoch."""
    try:
        database().execute(f"EXPLAIN {query}")
    except duckdb.Error:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(load(f"{SCHEMA} CREATE VIEW v AS {query};", dialect="sql"))
        base: dict[str, Counter[Row]] = {table: Counter() for table in TABLES}
        for _ in range(EPOCHS):
            session.apply(updates(random, base))
            for table, rows in base.items():
                fill(table, rows)
            try:
                found, wanted = rounded(session.bag("v")), rounded(database().execute(query).fetchall())
                if found != wanted:
                    wanted = rounded(_unoptimized(query))
            except duckdb.Error:  # of rows that it cannot compute with
                return False
            assert found == wanted, f"{name}: {query}\n  is {dict(found)}\n  and not {dict(wanted)}"
    return True


def _unoptimized(query: str) -> list[Row]:
    """The answer without DuckDB's optimizer, which loses rows of a `LIMIT` that is joined with everything, now and then."""
    database().execute("PRAGMA disable_optimizer")
    try:
        return database().execute(query).fetchall()
    finally:
        database().execute("PRAGMA enable_optimizer")


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
            row = random_row(random, table) if not present or random.random() < 0.7 else random.choice(present)
            if not (table == "u" and any(other[0] == row[0] for other in rows)):
                rows[row] += 1
                made.append(Update("+", table, row))
    return made


def rounded(rows: list[Row]) -> Counter[Row]:
    """Floats as far as two ways of adding them up agree; a number is the same with and without a point.

    Decimals are exact, and no floats.
    """
    return Counter(tuple(map(comparable, row)) for row in rows)


def comparable(value: object) -> object:
    if isinstance(value, Decimal):
        return "decimal", value
    return round(float(value), 6) if isinstance(value, int | float) else value


def main() -> int:
    given = argparse.ArgumentParser(description="Random SQL as views, compared with DuckDB after each of a few epochs.")
    given.add_argument("--count", type=int, default=10_000, help="how many statements (10000)")
    given.add_argument("--seed", type=int, default=0, help="the number of the first (0)")
    asked = given.parse_args()
    ran = differences = 0
    began = time.process_time()
    for number, seed in enumerate(range(asked.seed, asked.seed + asked.count), 1):
        try:
            ran += is_duckdbs(seed)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one, the others are looked at
            differences += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
        if number % _SAY == 0 or number == asked.count:
            rate = 60 * number / (time.process_time() - began)
            told = f"{number:,} statements, {ran:,} of them in DuckDB too, {differences} differences"
            print(f"{told}; {rate:,.0f} a minute of processor time", flush=True)
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
