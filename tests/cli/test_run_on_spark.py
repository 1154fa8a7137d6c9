"""`whence run` on Spark and in one process: the same changes, dead letters, summary and exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from tests.faults.workload import write_workload
from tests.waiting import wait_until_read

from whence.pipeline.manifest import read_manifest, write_manifest

Whence = Callable[..., Result]

COMMIT = '{"commit": true}'
NUMBERS = """\
.functor half(x: number): number
.decl n(x: number)
.input n
.decl h(x: number)
h(@half(x)) :- n(x).
h(x + 1) :- h(x), x > 900.
.output h
"""


def number(value: int) -> str:
    return json.dumps({"op": "+", "relation": "n", "tuple": [value]})


def outcome(result: Result) -> tuple[int, str, object, str]:
    """The exit code, the changes, what is said (without times), and the dead letters."""
    said: object = result.stderr
    if result.exit_code == 0:
        summary = json.loads(result.stderr)
        del summary["seconds"], summary["work"]
        said = summary
    letters = Path("program.dead.jsonl")
    buried = letters.read_text() if letters.exists() else ""
    letters.unlink(missing_ok=True)
    return result.exit_code, result.stdout, said, buried


def same_both_ways(whence: Whence, *options: str, stdin: str | bytes | None = None) -> tuple[int, str, object, str]:
    arguments = ("run", "program.dl", *options, "--json")
    expected = outcome(whence(*arguments, "--no-spark", stdin=stdin))
    assert outcome(whence(*arguments, stdin=stdin)) == expected
    return expected


@pytest.fixture(autouse=True)
def _spark(spark: SparkSession) -> None:
    """The runs find it there."""


def test_a_table_of_updates(folder: Path, whence: Whence) -> None:
    write_workload(folder, 1, seed=11)
    Path("program.dl").write_text(".decl n(x: number) .input n .decl h(x: number) h(x + 1) :- n(x). .output h")
    Path("n.csv").write_text(
        "op,epoch,x\n" + "".join(f"{'-' if at % 3 == 2 else '+'},{at // 4},{at % 5}\n" for at in range(40))
    )
    code, changes, _, _ = same_both_ways(whence, "--updates", "n.csv")
    assert (code, len({json.loads(line)["epoch"] for line in changes.splitlines()}) > 5) == (0, True)


@pytest.mark.parametrize("options", [(), ("--epoch-size", "3")])
def test_a_file_of_epochs(options: tuple[str, ...], folder: Path, whence: Whence) -> None:
    write_workload(folder, 60, seed=11)
    code, changes, _, letters = same_both_ways(whence, "--updates", "updates.jsonl", *options)
    assert (code, bool(changes), bool(letters)) == (0, True, True)


def test_a_folder_of_files(folder: Path, whence: Whence) -> None:
    write_workload(folder, 30, seed=12)
    lines = Path("updates.jsonl").read_text().splitlines()
    Path("in").mkdir()
    for at in range(0, len(lines), 25):
        Path(f"in/{at:04d}.jsonl").write_text("\n".join(lines[at : at + 25]))
    code, changes, _, letters = same_both_ways(whence, "--updates", "in")
    assert (code, bool(changes)) == (0, True)
    assert {json.loads(line)["file"] for line in letters.splitlines()} <= {
        f"in/{at:04d}.jsonl" for at in range(0, 999, 25)
    }


def test_the_standard_input_with_odd_bytes(folder: Path, whence: Whence) -> None:
    Path("program.dl").write_text(".decl n(x: symbol)\n.input n\n.output n\n")
    row = '{"op": "+", "relation": "n", "tuple": ["%s"]}'
    lines = [
        b"\xef\xbb\xbf" + (row % "bom").encode(),
        b"",
        (row % "\\r").encode() + b"\r",
        b'{"op": "\xff"}',
        b"\xef\xbb\xbf{}",
    ]
    lines += [(row % "\\ud800 half").encode(), COMMIT.encode(), (row % "end").encode()]
    code, changes, _, letters = same_both_ways(whence, "--updates", "-", stdin=b"\n".join(lines))
    assert (code, len(changes.splitlines()), len(letters.splitlines())) == (0, 4, 2)


def test_strict_stops_at_the_same_record(folder: Path, whence: Whence) -> None:
    Path("program.dl").write_text(".decl n(x: number)\n.input n\n.output n\n")
    Path("updates.jsonl").write_text("\n".join([number(1), COMMIT, number(2), "?", COMMIT]))
    code, changes, said, _ = same_both_ways(whence, "--updates", "updates.jsonl", "--strict")
    assert (code, len(changes.splitlines())) == (1, 1)
    assert str(said).startswith("updates.jsonl:4: ")


@pytest.mark.parametrize(("value", "code"), [(0, 1), (2000, 3)])
def test_what_ends_a_run_ends_it_after_the_epochs_before(value: int, code: int, folder: Path, whence: Whence) -> None:
    Path("program.dl").write_text(NUMBERS)
    Path("f.py").write_text("def half(x):\n    return x // 2 if x else 1 // x\n")
    Path("updates.jsonl").write_text("\n".join([number(2), COMMIT, number(value), COMMIT, number(4)]))
    options = ("--updates", "updates.jsonl", "--functions", "f.py", "--max-tuples", "50")
    found = same_both_ways(whence, *options)
    assert found[:2] == (code, '{"epoch": 1, "op": "+", "relation": "h", "tuple": [1]}\n')


def test_a_state_goes_on_with_and_without_spark(folder: Path, whence: Whence) -> None:
    """Halves of the updates, each run another way, give what one run gives."""
    write_workload(folder, 40, seed=13)
    whole = whence("run", "program.dl", "--updates", "updates.jsonl", "--no-spark", "--quiet").stdout
    lines = Path("updates.jsonl").read_text().splitlines(keepends=True)
    parts = [lines[:20], lines[20:45], lines[45:60], lines[60:]]
    Path("updates.jsonl").write_text("")
    # Epochs end with the updates of a run: parts end where epochs end.
    pending: list[str] = []
    for way, part in zip(([], ["--no-spark"], [], []), parts, strict=True):
        pending += part
        last = max(at for at, line in enumerate(pending) if "commit" in line) + 1
        with Path("updates.jsonl").open("a") as file:
            file.writelines(pending[:last])
        pending = pending[last:]
        arguments = [
            "run",
            "program.dl",
            "--updates",
            "updates.jsonl",
            "--state",
            "s",
            "--changes",
            "c.jsonl",
            "--quiet",
        ]
        result = whence(*arguments, *way)
        assert (result.exit_code, result.output) == (0, "")
    assert not pending
    assert Path("c.jsonl").read_text() == whole


def test_a_signal_ends_the_epoch_under_way_and_the_run(folder: Path) -> None:
    """In a process of its own, which brings its own Spark."""
    Path("program.dl").write_text(".decl n(x: number)\n.input n\n.output n\n")
    command = [
        sys.executable,
        "-c",
        "from whence.cli import main; main()",
        "run",
        "program.dl",
        "--updates",
        "-",
        "--json",
    ]
    with subprocess.Popen(
        [*command, "--state", "s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(f"{number(1)}\n{COMMIT}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"epoch": 1, "op": "+", "relation": "n", "tuple": [1]}
        process.stdin.write(f"{number(2)}\n")
        process.stdin.flush()
        wait_until_read(process.stdin)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(120) == 0
        assert json.loads(process.stdout.read()) == {"epoch": 2, "op": "+", "relation": "n", "tuple": [2]}
        summary = json.loads(process.stderr.read())
        assert (summary["epochs"], summary["tuples"]) == (2, {"n": 2})


def test_epochs_that_spark_has_committed_but_the_log_lacks_are_noticed(folder: Path, whence: Whence) -> None:
    Path("program.dl").write_text(".decl n(x: number)\n.input n\n.output n\n")
    Path("updates.jsonl").write_text(f"{number(1)}\n{COMMIT}\nnot a record\n")
    options = ("run", "program.dl", "--updates", "updates.jsonl", "--state", "s", "--changes", "c.jsonl", "--quiet")
    assert whence(*options).exit_code == 0
    # A micro-batch without epochs is nothing that the log would know of.
    with Path("updates.jsonl").open("a") as updates:
        updates.write("nor this\n")
    assert whence(*options).exit_code == 0
    with Path("updates.jsonl").open("a") as updates:
        updates.write(f"{number(2)}\n{COMMIT}\n")
    assert whence(*options).exit_code == 0
    max(Path("s/log").iterdir()).unlink()
    found = read_manifest(Path("s"))
    assert found is not None
    write_manifest(Path("s"), replace(found[0], delivered=0))
    Path("s/metrics.json").unlink()
    result = whence(*options)
    assert result.exit_code == 1
    assert "s/checkpoint says that micro-batch " in result.stderr
    assert "but the log ends with epoch 1" in result.stderr
