"""`whence capture` prints what makes a database record changes, or runs it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from whence.cli import app
from whence.pipeline.sources.capture import capture_sql


def _capture(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["capture", *words])
    return result.exit_code, result.output


def _recorded(connection: psycopg.Connection) -> int:
    return connection.execute("SELECT count(*) FROM whence_capture.changes").fetchone()[0]


def test_it_prints_the_sql() -> None:
    assert _capture("link", "net.node") == (0, capture_sql(["link", "net.node"]))


def test_it_runs_the_sql_and_undoes_it(connection: psycopg.Connection, database: str) -> None:
    connection.execute("CREATE TABLE link (src text PRIMARY KEY)")
    assert _capture("link", "--url", database) == (0, "Captured: link\n")
    connection.execute("INSERT INTO link VALUES ('a')")
    assert _recorded(connection) == 1
    assert _capture("link", "--release", "--url", database) == (0, "No longer captured: link\n")
    connection.execute("INSERT INTO link VALUES ('b')")
    assert _recorded(connection) == 1


def test_the_url_may_come_from_the_environment_or_a_file(
    connection: psycopg.Connection, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute("CREATE TABLE link (src text, dst text, PRIMARY KEY (src, dst))")
    monkeypatch.setenv("NETWORK", database)
    assert _capture("link", "--url-env", "NETWORK") == (0, "Captured: link\n")
    (tmp_path / "url").write_text(f"{database}\n")
    assert _capture("link", "--release", "--url-file", str(tmp_path / "url")) == (0, "No longer captured: link\n")
    assert _capture("link", "--url-env", "NOWHERE")[0] == 2
    assert _capture("link", "--url-env", "NETWORK", "--url", database)[0] == 2
    code, output = _capture("link", "--url", "postgresql:/me:secret@localhost/x")
    assert (code, "secret" in output) == (1, False)


def test_what_the_database_says_is_passed_on(connection: psycopg.Connection, database: str) -> None:
    connection.execute("CREATE TABLE bag (x int)")
    code, output = _capture("bag", "--url", database)
    assert (code, output.splitlines()[0]) == (1, 'PostgreSQL: "public"."bag" has no primary key')
    assert "hint: Relations are sets" in output
    assert _capture("nowhere", "--url", database) == (1, 'PostgreSQL: relation "public.nowhere" does not exist\n')


def test_a_name_that_is_none_is_refused() -> None:
    code, output = _capture("a.b.c")
    assert code == 2
    assert "'a.b.c' is not a table" in output
