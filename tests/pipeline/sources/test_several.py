"""Several sources in one run: all updates of each, in its order, and a run that goes on where each of them was."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from whence.cli import app

PROGRAM = """
.decl seen(place:symbol, who:symbol) .input seen
.decl name(who:symbol, text:symbol) .input name
at(p, t) :- seen(p, w), name(w, t). .output at
"""


def line(relation: str, *row: str, op: str = "+") -> str:
    return json.dumps({"op": op, "relation": relation, "tuple": row}) + "\n"


def run(folder: Path, *sources: str, **expected: int) -> set[tuple[str, ...]]:
    words = [each for source in sources for each in ("--updates", source)]
    changes, state = str(folder / "changes.jsonl"), str(folder / "state")
    command = ["run", str(folder / "p.dl"), *words, "--state", state, "--changes", changes, "--no-spark", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stderr.splitlines()[-1])
    assert {name: summary[name] for name in expected} == expected
    rows: set[tuple[str, ...]] = set()
    for each in map(json.loads, (folder / "changes.jsonl").read_text().splitlines()):
        (rows.add if each["op"] == "+" else rows.remove)(tuple(each["tuple"]))
    return rows


def test_files_and_pages_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    seen, names = tmp_path / "seen.jsonl", tmp_path / "names.csv"
    seen.write_text(line("seen", "hall", "w1") + line("seen", "lab", "w2") + line("seen", "hall", "w1", op="-"))
    names.write_text("who,text\nw1,Ann\nw2,Bob\n")
    sources = str(seen), f"poll+file:{names}#relation=name"
    assert run(tmp_path, *sources, updates=5) == {("lab", "Bob")}
    assert run(tmp_path, *sources, updates=0) == {("lab", "Bob")}
    with seen.open("a") as file:
        file.write(line("seen", "lab", "w1"))
    names.write_text("who,text\nw1,Ann\nw2,Bert\n")
    assert run(tmp_path, *sources, updates=3) == {("lab", "Bert"), ("lab", "Ann")}


def test_letters_name_their_source(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text("nonsense\n" + line("seen", "lab", name))
    run(tmp_path, str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl"), updates=2, dead_letters=2)
    letters = [json.loads(each) for each in (tmp_path / "p.dead.jsonl").read_text().splitlines()]
    assert {Path(each["file"]).name for each in letters} == {"one.jsonl", "two.jsonl"}


def test_a_source_that_fails_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "one.jsonl").write_text(line("seen", "lab", "x"))
    words = ["--updates", str(tmp_path / "one.jsonl"), "--updates", "mqtt://127.0.0.1:1/a"]
    done = CliRunner().invoke(
        app, ["run", str(tmp_path / "p.dl"), *words, "--no-spark", "--changes", str(tmp_path / "c")]
    )
    assert done.exit_code == 1
    assert "cannot reach the broker" in done.stderr


def test_several_sources_are_for_one_process(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "one.jsonl").write_text("")
    words = ["--updates", str(tmp_path / "one.jsonl"), "--updates", f"poll+file:{tmp_path}/x.csv#relation=name"]
    done = CliRunner().invoke(app, ["run", str(tmp_path / "p.dl"), *words])
    assert done.exit_code == 2
    assert "is read with --no-spark" in " ".join(done.stderr.replace("│", " ").split())
