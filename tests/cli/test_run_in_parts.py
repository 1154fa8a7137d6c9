"""`whence run --partitions`: the same as without, and `whence state` on what it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from tests.faults.workload import write_workload

from whence.pipeline.parts.open import read_state

Whence = Callable[..., Result]
CHOSEN = """\
.decl link(src: symbol, dst: symbol)
.input link
.decl first(src: symbol, dst: symbol) choice-domain src
first(x, y) :- link(x, y).
.output first
"""
NUMBERS = """\
.functor half(x: number): number
.decl n(x: number)
.input n
.decl h(x: number, y: number)
h(x, @half(x)) :- n(x).
h(x, y + 1) :- h(x, y), y > 900.
.output h
"""


@pytest.fixture(autouse=True)
def _spark(spark: SparkSession) -> None:
    """The runs find it there."""


def run(whence: Whence, state: str, *options: str) -> tuple[int, object, bytes, str]:
    """The exit code, what is said (without times), the changes, and the dead letters."""
    arguments = ("--updates", "updates.jsonl", "--state", state, "--changes", f"{state}.jsonl", "--json")
    result = whence("run", "program.dl", *arguments, *options)
    said: object = result.stderr
    if result.exit_code == 0:
        said = {name: each for name, each in json.loads(result.stderr).items() if name not in ("seconds", "work")}
    letters = Path("program.dead.jsonl")
    buried = letters.read_text() if letters.exists() else ""
    letters.unlink(missing_ok=True)
    return result.exit_code, said, Path(f"{state}.jsonl").read_bytes(), buried


def test_a_run_in_parts_is_like_any_other_and_its_state_can_be_looked_at(folder: Path, whence: Whence) -> None:
    write_workload(folder, 30, seed=11)
    expected = run(whence, "whole", "--no-spark")
    assert run(whence, "parts", "--partitions", "2", "--snapshot-every", "8") == expected
    assert expected[0] == 0
    whole, parts = (json.loads(whence("state", "ls", name, "--json").stdout) for name in ("whole", "parts"))
    assert (whole["parts"], parts["parts"]) == (None, 2)
    assert parts["tuples"] == whole["tuples"]
    shown = whence("state", "ls", "parts").stdout
    assert "2, by reach.src, lonely.name, cheapest.src" in shown
    assert whence("state", "verify", "parts", "--reference").stdout == "ok: epochs 0 to 30, reach, lonely, cheapest\n"
    assert whence("state", "compact", "parts", "--retain", "0").exit_code == 0
    assert whence("state", "verify", "parts").exit_code == 0
    again = whence("run", "program.dl", "--updates", "updates.jsonl", "--state", "parts", "--changes", "parts.jsonl")
    assert "state in 2 parts: it is so already" in again.stderr
    assert Path("parts.jsonl").read_bytes() == expected[2]


@pytest.mark.parametrize(("value", "code"), [(0, 1), (2000, 3)])
def test_what_ends_a_run_ends_it_after_the_epochs_before(value: int, code: int, folder: Path, whence: Whence) -> None:
    Path("program.dl").write_text(NUMBERS)
    Path("f.py").write_text("def half(x):\n    return x // 2 if x else 1 // x\n")
    rows = [f'{{"op": "+", "relation": "n", "tuple": [{each}]}}\n{{"commit": true}}\n' for each in (2, value, 4)]
    Path("updates.jsonl").write_text("".join(rows))
    options = ("--functions", "f.py", "--max-tuples", "50")
    expected = run(whence, "whole", *options, "--no-spark")
    assert run(whence, "parts", *options, "--partitions", "2") == expected
    assert (expected[0], expected[2]) == (code, b'{"epoch": 1, "op": "+", "relation": "h", "tuple": [2, 1]}\n')


def test_a_state_in_the_driver_goes_on_in_parts_and_does_not_go_back(folder: Path, whence: Whence) -> None:
    write_workload(folder, 12, seed=4)
    lines = Path("updates.jsonl").read_text().splitlines(keepends=True)
    expected = run(whence, "whole", "--no-spark")
    half = max(at for at, line in enumerate(lines[: len(lines) // 2]) if "commit" in line) + 1
    Path("updates.jsonl").write_text("".join(lines[:half]))
    assert run(whence, "s", "--no-spark")[0] == 0
    with Path("updates.jsonl").open("a") as file:
        file.writelines(lines[half:])
    assert run(whence, "s", "--partitions", "2")[2] == expected[2]
    code, said, *_ = run(whence, "s", "--no-spark")
    assert (code, said) == (1, "s is in 2 parts, which need Spark\n  hint: leave out --no-spark\n")
    assert run(whence, "s", "--partitions", "3")[2] == expected[2]  # dealt anew, which changes no view
    assert read_state(Path("s")).parts == 3


def test_what_cannot_be_in_parts_is_refused(folder: Path, whence: Whence) -> None:
    Path("program.dl").write_text(CHOSEN)
    Path("updates.jsonl").write_text("")
    arguments = ("run", "program.dl", "--updates", "updates.jsonl", "--partitions", "2")
    result = whence(*arguments, "--state", "s", "--quiet")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        1,
        "the state of program.dl cannot be in parts: first has a choice-domain: parts would choose each for itself",
    )
    assert "parts are kept in the folder of --state" in whence(*arguments).stderr
    result = whence(*arguments, "--state", "s", "--no-spark")
    assert (result.exit_code, "Spark's workers" in result.stderr) == (2, True)
