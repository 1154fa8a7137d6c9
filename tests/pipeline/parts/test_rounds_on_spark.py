"""Parts that ship each other what they need, in the workers of a real Spark session."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from pyspark.sql import SparkSession
from tests.pipeline.parts.test_on_spark import add_updates, random_updates

from whence import load, reference
from whence.lang.program import Program
from whence.pipeline.parts.keeper import PartedKeeper
from whence.pipeline.parts.open import open_state
from whence.pipeline.report import EpochReport
from whence.pipeline.sinks.json_lines import JsonLinesSink
from whence.pipeline.verify import verify
from whence.spark import Maintenance, maintain

CLOSURE = load("""
.decl link(src: number, dst: number)
.input link
.decl reach(src: number, dst: number)
.output reach
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), reach(y, z).
.decl size(n: number)
.output size
size(n) :- n = count : { reach(_, _) }.
""")
TRAP = """
.functor trap(x: number): number
.decl n(x: number)
.input n
.decl seen(x: number, y: number)
.output seen
seen(x, @trap(x)) :- n(x).
seen(x, z) :- seen(x, y), seen(y, z).
"""


def start(spark: SparkSession, folder: Path, program: Program, **options: object) -> Maintenance:
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "updates"))
    sink = JsonLinesSink(folder / "changes.jsonl", program)
    return maintain(program, lines, state=folder / "state", sinks=[sink], once=True, **options)  # type: ignore[arg-type]


def test_a_run_in_rounds_tells_what_a_run_in_the_driver_tells(spark: SparkSession, tmp_path: Path) -> None:
    for way in ("whole", "parts"):
        (tmp_path / way).mkdir()
        base = random_updates(tmp_path / way, 3, seed=7)
    start(spark, tmp_path / "whole", CLOSURE).await_termination()
    reports: list[EpochReport] = []
    running = start(spark, tmp_path / "parts", CLOSURE, partitions=3, on_epoch=reports.append)
    running.await_termination()
    keeper = running.keeper
    assert isinstance(keeper, PartedKeeper)
    assert keeper.workers.keys() == {0, 1, 2}
    assert f":{os.getpid()}" not in "".join(keeper.workers.values())  # none of it is in the driver
    assert len(set(keeper.workers.values())) == 2
    assert (tmp_path / "parts" / "changes.jsonl").read_bytes() == (tmp_path / "whole" / "changes.jsonl").read_bytes()
    assert running.view("reach") == reference.evaluate(CLOSURE, base)["reach"]
    assert all(each.exchanges > 1 and each.shipped_bytes > 0 for each in reports)
    assert list(verify(open_state(tmp_path / "parts" / "state", CLOSURE), reference.evaluate)) == []


def test_a_run_goes_on_when_a_worker_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    trap = tmp_path / "trap"

    def spring(x: int) -> int:
        if x == 1 and trap.exists():
            trap.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return x * x

    program = load(TRAP, functions={"trap": spring})
    for number in range(2):
        add_updates(tmp_path / "updates", number, [("+", (each,)) for each in (number, number + 2)], "n")
    trap.touch()
    running = start(spark, tmp_path, program, partitions=2)
    running.await_termination()
    assert not trap.exists()
    expected = reference.evaluate(program, {"n": {(0,), (1,), (2,), (3,)}})["seen"]
    assert running.view("seen") == expected
    written = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    assert sorted(tuple(each["tuple"]) for each in written) == sorted(expected)
