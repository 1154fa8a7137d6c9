"""Databases, brokers and sockets feed `whence run --no-spark`: every update once, over restarts and from several tables."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import Result
from tests.pipeline.sources.broker import Broker
from typer.testing import CliRunner

from whence import reference
from whence.cli import app
from whence.lang import load_file
from whence.pipeline.sources.capture import capture_sql, release_sql

PROGRAM = """\
.decl link(src: symbol, dst: symbol, ms: number)
.input link
.decl down(src: symbol)
.input down
.decl reach(src: symbol, dst: symbol)
reach(x, y) :- link(x, y, _), !down(x).
reach(x, z) :- reach(x, y), link(y, z, _), !down(y).
.output reach
"""
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("program.dl").write_text(PROGRAM)

    def run(updates: str, *options: str) -> Result:
        words = ["run", "program.dl", "--updates", updates, "--no-spark", "--quiet", "--state", "state"]
        return CliRunner().invoke(app, [*words, "--changes", "changes.jsonl", *options], catch_exceptions=False)

    return run


def reached() -> set[tuple[str, str]]:
    """What the changes add up to: nothing is inserted twice, or deleted without being there."""
    held: set[tuple[str, str]] = set()
    for line in Path("changes.jsonl").read_text().splitlines():
        change = json.loads(line)
        row = tuple(change["tuple"])
        assert (row in held) == (change["op"] == "-")
        held.symmetric_difference_update([row])
    return held


def expected(links: set[tuple[Any, ...]], down: set[tuple[str]]) -> set[tuple[Any, ...]]:
    return reference.evaluate(load_file(Path("program.dl")), {"link": links, "down": down})["reach"]


@pytest.fixture
def tables(connection: psycopg.Connection) -> psycopg.Connection:
    connection.execute("CREATE TABLE link (src text, dst text, ms int, note text, PRIMARY KEY (src, dst))")
    connection.execute("CREATE TABLE down (src text PRIMARY KEY)")
    connection.execute("INSERT INTO link VALUES ('a', 'b', 1, NULL)")
    connection.execute(capture_sql(["link", "down"]))
    return connection


def test_captured_tables_are_followed(tables: psycopg.Connection, database: str, run: Run) -> None:
    choose = random.Random(5)
    for at in range(6):
        for _ in range(8):
            src, dst = choose.sample("abcdef", 2)
            match choose.randrange(4):
                case 0:
                    tables.execute("DELETE FROM link WHERE src = %s", (src,))
                case 1:
                    tables.execute("INSERT INTO down VALUES (%s) ON CONFLICT DO NOTHING", (src,))
                case 2:
                    tables.execute("DELETE FROM down WHERE src = %s", (src,))
                case _:
                    values = (src, dst, choose.randrange(9))
                    tables.execute(
                        "INSERT INTO link VALUES (%s, %s, %s) ON CONFLICT (src, dst) DO UPDATE SET ms = 7", values
                    )
        result = run(database, *(("--epoch-size", "3") if at % 2 else ()))
        assert (result.exit_code, result.stderr) == (0, "")
        links = set(tables.execute("SELECT src, dst, ms FROM link"))
        assert reached() == expected(links, set(tables.execute("TABLE down")))
    assert run(database).exit_code == 0
    assert not Path("program.dead.jsonl").exists()


def test_rows_that_do_not_fit_are_dead_letters(tables: psycopg.Connection, database: str, run: Run) -> None:
    tables.execute("INSERT INTO link VALUES ('b', 'c', NULL), ('c', 'd', 4)")
    for _ in range(2):
        assert run(database).exit_code == 0
    (letter,) = [json.loads(line) for line in Path("program.dead.jsonl").read_text().splitlines()]
    assert (letter["file"], letter["reason"]) == ("public.link", "link: ms: null is not a number")
    assert reached() == {("a", "b"), ("c", "d")}
    strict = run(database, "--state", "other", "--strict")
    assert strict.stderr.startswith("public.link:")


def test_tables_that_cannot_be_followed_are_refused(tables: psycopg.Connection, database: str, run: Run) -> None:
    assert run(database).exit_code == 0
    tables.execute(release_sql(["link"]))
    tables.execute(capture_sql(["link"]))
    tables.execute("INSERT INTO link VALUES ('x', 'y', 1)")
    assert "public.link was captured anew since it was last read" in run(database).stderr
    missing = run(f"{database}&schema=elsewhere", "--state", "other")
    assert missing.stderr.startswith("none of the tables elsewhere.link, elsewhere.down is captured\n")
    Path("narrow.dl").write_text(".decl link(src: symbol)\n.input link\n.output link\n")
    words = ["run", "narrow.dl", "--updates", database, "--no-spark"]
    refused = CliRunner().invoke(app, words, catch_exceptions=False)
    assert refused.stderr.startswith("link lacks the column dst, which is in the key of public.link\n")
    tables.execute("SELECT whence_capture.forget('public.link', now() + interval '1 day')")
    assert "were forgotten" in run(database, "--state", "third").stderr


def test_a_bad_url_is_an_error_without_the_password(run: Run) -> None:
    for url in ("postgresql://me:secret@localhost:x/db", "postgres://me:sec/ret@localhost/db"):
        result = run(url)
        assert result.exit_code == 1
        assert "sec" not in result.stderr


def record(op: str, *row: object, relation: str = "link") -> str:
    return json.dumps({"op": op, "relation": relation, "tuple": row})


def test_topics_are_followed(run: Run) -> None:
    broker = Broker()
    url = f"kafka://{broker.address}/links,downs"
    broker.send("links", record("+", "a", "b", 1), '{"commit": true}', record("+", "b", "c", 1), "bad")
    broker.send("downs", record("+", "b", relation="down"), partition=2)
    assert run(url).exit_code == 0
    assert reached() == {("a", "b")}
    broker.send("downs", record("-", "b", relation="down"), partition=2)
    broker.send("links", record("+", "c", "d", 1), "bad", partition=1)
    for _ in range(2):
        result = run(url)
        assert (result.exit_code, result.stderr) == (0, "")
    assert reached() == {("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")}
    letters = [json.loads(line) for line in Path("program.dead.jsonl").read_text().splitlines()]
    assert [(each["file"], each["line"]) for each in letters] == [("links/0", 3), ("links/1", 1)]


def test_sockets_are_read_until_they_end(run: Run, tmp_path: Path) -> None:
    lines = f"{record('+', 'a', 'b', 1)}\n{record('+', 'b', 'c', 1)}\n".encode()

    def serve(listening: socket.socket) -> None:
        with listening.accept()[0] as connection:
            connection.sendall(lines)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=serve, args=(listening,))
        server.start()
        assert run(f"socket://127.0.0.1:{listening.getsockname()[1]}").exit_code == 0
        server.join()
    assert reached() == {("a", "b"), ("a", "c"), ("b", "c")}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("local")
        listening.listen()
        server = threading.Thread(target=serve, args=(listening,))
        server.start()
        assert run("local").exit_code == 0
        server.join()
    assert run(f"socket://127.0.0.1:{1}").stderr.startswith("cannot read 127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ("socket://nowhere", "a socket is named socket://HOST:PORT"),
        ("socket://host:port", "a socket is named socket://HOST:PORT"),
        ("kafka://localhost:9092", "a topic is named kafka://HOST:PORT/TOPIC"),
        ("nowhere.jsonl", "there is no file nowhere.jsonl"),
    ],
)
def test_what_is_not_a_source_is_a_usage_error(updates: str, said: str, run: Run) -> None:
    result = run(updates)
    assert (result.exit_code, said in result.stderr.replace("\n│ ", " ")) == (2, True)


def test_databases_and_brokers_need_no_spark(run: Run) -> None:
    """Neither the import of it: that takes seconds, and needs Java."""
    code = (
        "import sys\n"
        "import whence.pipeline.sources.tables, whence.pipeline.sources.topics, whence.pipeline.sinks.postgres\n"
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ}).returncode == 0
    words = ["run", "program.dl", "--updates", "postgresql:///db"]
    assert CliRunner().invoke(app, words).exit_code == 2
