"""Derivations as outputs: in the log, the snapshots, the published tables and the sinks."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from whence import Update, load, session
from whence.cli import app
from whence.io.changes import Epoch
from whence.pipeline.files import StateError
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.options import RunOptions
from whence.pipeline.sinks.json_lines import JsonLinesSink
from whence.pipeline.store import WholeStore
from whence.pipeline.verify import verify
from whence.plan.record import with_derivations
from whence.provenance.recorded import recorded_derivations
from whence.spark import maintain

TEXT = """
.decl link(x: symbol, y: symbol)
.input link
one: reach(x, y) :- link(x, y).
more: reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""
LINKS = [("a", "b"), ("b", "c"), ("c", "b")]
MORE = {("a", "b", "c"), ("a", "c", "b"), ("b", "c", "b"), ("c", "b", "c"), ("b", "b", "c"), ("c", "c", "b")}


def epochs(*updates: Update) -> list[Epoch]:
    return [Epoch(updates=(update,), now=None, source={}) for update in updates]


def test_tables_are_kept_as_views_are(tmp_path: Path) -> None:
    program = with_derivations(load(TEXT), ["reach"])
    assert program.outputs == ("reach", "one.derivations", "more.derivations")
    store = WholeStore.open(tmp_path / "state", program)
    changes = tmp_path / "changes.jsonl"
    keeper = ResidentKeeper(
        program, RunOptions(sinks=[JsonLinesSink(changes, program)]), store=store, facts={"link": LINKS}
    )
    keeper.apply(epochs(Update("-", "link", ("c", "b")), Update("+", "link", ("a", "c"))))
    assert keeper.view("more.derivations") == {("a", "b", "c")}
    assert keeper.view_at("more.derivations", 0) == MORE
    keeper.snapshot()
    keeper.close()
    published = pq.read_table(tmp_path / "state/current/one.derivations.parquet").to_pylist()
    assert sorted(tuple(row.values()) for row in published) == [("a", "b"), ("a", "c"), ("b", "c")]
    told = {
        (each["op"], *each["tuple"])
        for each in map(json.loads, changes.read_text().splitlines())
        if (each["epoch"], each["relation"]) == (1, "more.derivations")
    }
    assert told == {("-", *row) for row in MORE - {("a", "b", "c")}}

    again = ResidentKeeper(program, store=WholeStore.open(tmp_path / "state", program))
    assert again.view("more.derivations") == {("a", "b", "c")}
    # What explains rows knows the rules as they are written.
    assert again.session.program == program.plain
    assert {each.head.tuple for each in recorded_derivations(again.session, "more")} == {("a", "c")}
    again.close()
    found = WholeStore.read(tmp_path / "state")
    assert list(verify(found, session.evaluate)) == []


def test_a_state_goes_on_recording(tmp_path: Path) -> None:
    program = load(TEXT)
    ResidentKeeper(program, store=WholeStore.open(tmp_path, program)).close()
    with pytest.raises(StateError, match="run that records the derivations of nothing"):
        WholeStore.open(tmp_path, with_derivations(program, ["reach"]))


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(TEXT)
    lines = [json.dumps({"op": "+", "relation": "link", "tuple": link}) for link in LINKS]
    Path("u.jsonl").write_text("\n".join(lines) + "\n")

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, list(arguments))
        return result.exit_code, " ".join(result.output.replace("│", " ").split())

    command = ["run", "p.dl", "--updates", "u.jsonl", "--state", "s", "--no-spark", "-q", "--changes", "c.jsonl"]
    assert run(*command, "--record", "reach") == (0, "")
    told = [json.loads(line) for line in Path("c.jsonl").read_text().splitlines()]
    assert {tuple(each["tuple"]) for each in told if each["relation"] == "more.derivations"} == MORE
    assert pq.read_table("s/current/more.derivations.parquet").num_rows == len(MORE)
    assert run("state", "verify", "s", "-q") == (0, "ok: epochs 0 to 1, reach, one.derivations, more.derivations")
    assert run("state", "compact", "s", "-q")[0] == 0
    assert 'reach("a", "c") by more ├─ reach("a", "b") by one' in run("why", "s", 'reach("a", "c")')[1]

    code, text = run(*command)
    assert code == 1
    assert "record reach as before, or start anew with another folder" in text
    for wrong, message in (
        ("link", "no rule derives link"),
        ("x", "there is no relation x hint: there are link, reach"),
    ):
        code, text = run(*command, "--record", wrong)
        assert (code, message in text) == (2, True), text


def test_streams_record_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"op": "+", "relation": "link", "tuple": link}) for link in LINKS]
    (tmp_path / "in/1.jsonl").write_text("\n".join(lines) + "\n")
    running = maintain(load(TEXT), tmp_path / "in", state=tmp_path / "state", record=["reach"], once=True, spark=spark)
    running.await_termination()
    assert running.view("more.derivations") == MORE
    published = tmp_path / "state/current/more.derivations.parquet"
    assert {tuple(row) for row in spark.read.parquet(str(published)).collect()} == MORE
