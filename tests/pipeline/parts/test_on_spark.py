"""State in parts on Spark: workers hold it, whatever becomes of them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from whence import load, reference
from whence.lang.types import Tuple
from whence.pipeline.failures import BatchFailed
from whence.pipeline.files import StateError
from whence.pipeline.parts.keeper import PartedKeeper
from whence.pipeline.parts.open import open_state
from whence.pipeline.sinks.json_lines import JsonLinesSink
from whence.pipeline.verify import verify
from whence.spark import Maintenance, maintain

REACH = load("""
.decl link(src: number, dst: number)
.input link
.decl reach(src: number, dst: number)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
""")
TRAP = """
.functor trap(x: number): number
.decl n(x: number)
.input n
.decl seen(x: number, y: number)
seen(x, @trap(x)) :- n(x).
.output seen
"""


def add_updates(folder: Path, number: int, updates: list[tuple[str, Tuple]], relation: str = "link") -> None:
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"op": op, "relation": relation, "tuple": row}) for op, row in updates]
    partial = folder / f".{number}"
    partial.write_text("".join(f"{line}\n" for line in lines))
    os.utime(partial, (number, number))  # Spark takes the oldest first
    partial.rename(folder / f"{number:04d}.jsonl")


def start(spark: SparkSession, folder: Path, **options: object) -> Maintenance:
    """A micro-batch for every file."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "updates"))
    sink = JsonLinesSink(folder / "changes.jsonl", REACH)
    return maintain(REACH, lines, state=folder / "state", sinks=[sink], once=True, **options)  # type: ignore[arg-type]


def random_updates(folder: Path, batches: int, seed: int) -> dict[str, set[Tuple]]:
    """The base tuples that they leave."""
    source = random.Random(seed)
    links: set[Tuple] = set()
    for number in range(batches):
        updates = [(source.choice("++-"), (source.randrange(12), source.randrange(12))) for _ in range(6)]
        for op, row in updates:
            (links.add if op == "+" else links.discard)(row)
        add_updates(folder / "updates", number, updates)
    return {"link": links}


def test_a_run_in_parts_tells_what_a_run_in_the_driver_tells(spark: SparkSession, tmp_path: Path) -> None:
    for way in ("whole", "parts"):
        (tmp_path / way).mkdir()
        base = random_updates(tmp_path / way, 6, seed=7)
    start(spark, tmp_path / "whole").await_termination()
    choices: list[str] = []
    running = start(
        spark, tmp_path / "parts", partitions=3, snapshot_every=5, on_choice=lambda each: choices.append(str(each))
    )
    running.await_termination()
    assert choices == ["state in 3 parts: as asked for"]
    keeper = running.keeper
    assert isinstance(keeper, PartedKeeper)
    assert keeper.workers.keys() == {0, 1, 2}
    assert f":{os.getpid()}" not in "".join(keeper.workers.values())  # none of it is in the driver
    assert (tmp_path / "parts" / "changes.jsonl").read_bytes() == (tmp_path / "whole" / "changes.jsonl").read_bytes()
    expected = reference.evaluate(REACH, base)["reach"]
    assert running.view("reach") == expected
    assert {
        tuple(row) for row in spark.read.parquet(str(tmp_path / "parts/state/current/reach.parquet")).collect()
    } == expected
    with pytest.raises(StateError, match="the state is in parts"):
        _ = running.session
    assert list(verify(open_state(tmp_path / "parts" / "state", REACH), reference.evaluate)) == []


def test_a_state_that_outgrows_the_driver_goes_on_in_parts(spark: SparkSession, tmp_path: Path) -> None:
    base = random_updates(tmp_path, 9, seed=2)
    choices: list[str] = []
    running = start(
        spark, tmp_path, resident_limit=40, snapshot_every=2, on_choice=lambda each: choices.append(str(each))
    )
    running.await_termination()
    assert choices[0] == "state in the driver: 0 rows, at most 40 are kept there"
    assert len(choices) == 2
    assert choices[1].startswith("state in 2 parts: ")
    assert isinstance(running.keeper, PartedKeeper)
    assert running.view("reach") == reference.evaluate(REACH, base)["reach"]
    total: set[Tuple] = set()
    for line in (tmp_path / "changes.jsonl").read_text().splitlines():
        change = json.loads(line)
        row = tuple(change["tuple"])
        assert (row in total) == (change["op"] == "-")
        (total.add if change["op"] == "+" else total.remove)(row)
    assert total == running.view("reach")


@pytest.mark.parametrize("kills", [1, 2])
def test_a_run_goes_on_when_a_worker_is_killed_and_a_restart_when_the_next_is_too(
    kills: int, spark: SparkSession, tmp_path: Path
) -> None:
    """The first time tasks take over; if one of their workers is killed as well, Spark gives up."""
    traps = [tmp_path / f"trap {number}" for number in range(kills)]

    def spring(x: int) -> int:
        for trap in traps if x == 3 else []:
            if trap.exists():
                trap.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return x * x

    program = load(TRAP, functions={"trap": spring})
    for number in range(5):
        add_updates(tmp_path / "updates", number, [("+", (each,)) for each in (number, number + 10)], "n")

    def run() -> Maintenance:
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "updates"))
        sink = JsonLinesSink(tmp_path / "changes.jsonl", program)
        return maintain(program, lines, state=tmp_path / "state", sinks=[sink], once=True, partitions=2)

    for trap in traps:
        trap.touch()
    running = run()
    if kills > 1:
        with pytest.raises(BatchFailed, match="could not update the parts of the state"):
            running.await_termination()
        running = run()
    running.await_termination()
    assert not any(trap.exists() for trap in traps)
    expected = {(x, x * x) for number in range(5) for x in (number, number + 10)}
    assert running.view("seen") == expected
    written = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    assert sorted(tuple(each["tuple"]) for each in written) == sorted(expected)


def test_what_cannot_be_in_parts_is_refused_before_anything_starts(spark: SparkSession, tmp_path: Path) -> None:
    program = load(
        ".decl link(src: number, dst: number) .input link "
        ".decl one(src: number, dst: number) choice-domain src .output one one(x, y) :- link(x, y)."
    )
    (tmp_path / "updates").mkdir()
    lines = spark.readStream.text(str(tmp_path / "updates"))
    with pytest.raises(StateError, match="one has a choice-domain: parts would choose each for itself"):
        maintain(program, lines, state=tmp_path / "state", partitions=2)
    maintain(program, lines, state=tmp_path / "state", once=True).await_termination()


CLUSTER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
sys.path.insert(0, sys.argv[2])
from tests.pipeline.parts.test_on_spark import start
spark = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").getOrCreate()
running = start(spark, Path(sys.argv[1]), partitions=2, snapshot_every=5)
running.await_termination()
print("workers", len(set(running.keeper.workers.values())))
spark.stop()
"""


@pytest.mark.skipif("WHENCE_LONG" not in os.environ, reason="it starts a cluster")
def test_executors_of_a_cluster_hold_the_parts(tmp_path: Path) -> None:
    base = random_updates(tmp_path, 8, seed=9)
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": f"{root / 'src'}:{root}"}
    command = [sys.executable, "-c", CLUSTER, str(tmp_path), str(root)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert "workers 2\n" in result.stdout, result.stderr
    store = open_state(tmp_path / "state", REACH)
    assert store.view_at("reach", 8) == reference.evaluate(REACH, base)["reach"]
    assert list(verify(store, reference.evaluate)) == []
