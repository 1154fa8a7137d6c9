"""The files of tests/conformance/sql in the manner of sqllogictest: Whence and DuckDB both give the rows that they expect."""

from __future__ import annotations

import warnings
from pathlib import Path

import duckdb
import pytest
from tests.lang.sql.logic import Query, Script, read_script

from whence import Session, load

FOLDER = Path(__file__).parents[2] / "conformance" / "sql"
SCRIPTS = {path.name: read_script(path) for path in sorted(FOLDER.glob("*.test"))}
QUERIES = [
    pytest.param(script, query, id=f"{name}:{query.line}")
    for name, script in SCRIPTS.items()
    for query in script.queries
]


def shown(rows: list[tuple[object, ...]]) -> list[tuple[str, ...]]:
    words = {None: "NULL", True: "true", False: "false"}
    return sorted(
        tuple(words[value] if value is None or value is True or value is False else str(value) for value in row)
        for row in rows
    )


@pytest.mark.parametrize(("script", "query"), QUERIES)
def test_a_query_gives_the_rows_that_are_written(script: Script, query: Query) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = load(f"{''.join(script.statements)} CREATE VIEW v AS {query.text};", dialect="sql")
    assert shown(Session(program).bag("v")) == sorted(query.rows)
    with duckdb.connect() as database:
        for statement in script.statements:
            database.execute(statement)
        assert shown(database.execute(query.text).fetchall()) == sorted(query.rows)
