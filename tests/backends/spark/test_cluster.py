"""Executors in processes of their own, of `local-cluster` and of a standalone cluster on this machine, give the same answers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

LONG = pytest.mark.skipif(
    not os.environ.get("WHENCE_LONG"), reason="starts several Java machines; make test-long runs it"
)
WHENCE = [sys.executable, "-c", "from whence.cli import main; main()"]
BIN = Path(pyspark.__file__).parent / "bin"
LOCAL_CLUSTER = "local-cluster[2,1,2048]"
JOB = """
import sys
from whence import load
from whence.backends.spark.session import spark_session
from whence.spark import evaluate

spark = spark_session(*sys.argv[1:])
program = load('''.decl link(x:number, y:number) .input link
.decl reach(x:number, y:number) .output reach
reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z).''')
link = spark.range(60).selectExpr("id as x", "(id * 7 + 1) % 60 as y")
for mode in ("in-task", "decomposed", "shuffled"):
    reach = evaluate(program, {"link": link}, mode=mode)["reach"]
    print(reach.count(), reach.selectExpr("sum(x * 61 + y * y)").first()[0])
print(spark.sparkContext.master)
"""
RULES = """.decl link(x:number, y:number) .input link
.decl reach(x:number, y:number) .output reach
reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z).
"""


def closure() -> str:
    found = set()
    for start in range(60):
        at = (start * 7 + 1) % 60
        while (start, at) not in found:
            found.add((start, at))
            at = (at * 7 + 1) % 60
    return f"{len(found)} {sum(x * 61 + y * y for x, y in found)}"


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone cluster with one worker, on the loopback interface."""
    folder = tmp_path_factory.mktemp("standalone")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    own = ["--host", "127.0.0.1", "--webui-port", "0"]
    place = ["--work-dir", str(folder / "work")]
    commands = {
        "master": ["org.apache.spark.deploy.master.Master", *own, "--port", str(port)],
        "worker": ["org.apache.spark.deploy.worker.Worker", *own, *place, "--cores", "2", "--memory", "2g", master],
    }
    running = []
    try:
        for name, command in commands.items():
            with (folder / f"{name}.log").open("wb") as log:
                running.append(subprocess.Popen([BIN / "spark-class", *command], stdout=log, stderr=log, env=env()))
        deadline = time.monotonic() + 120
        while "Registering worker" not in (folder / "master.log").read_text():
            assert time.monotonic() < deadline, (folder / "worker.log").read_text()
            time.sleep(0.2)
        yield master
    finally:
        for each in reversed(running):
            each.terminate()
            each.wait()


def env() -> dict[str, str]:
    return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def output_of(command: list[object]) -> list[str]:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, env=env(), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@LONG
def test_a_cluster_of_processes_gives_the_same() -> None:
    assert output_of([sys.executable, "-c", JOB, LOCAL_CLUSTER]) == [*[closure()] * 3, LOCAL_CLUSTER]


@LONG
def test_a_job_can_be_submitted(standalone: str, tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    assert output_of([BIN / "spark-submit", "--master", standalone, job]) == [*[closure()] * 3, standalone]


def write_updates(path: Path) -> None:
    ring = [{"op": "+", "relation": "link", "tuple": [x, (x + 1) % 12]} for x in range(12)]
    cuts = [{"op": op, "relation": "link", "tuple": [x, (x + 1) % 12]} for x in (3, 7) for op in "-+-"]
    records = [*ring, {"commit": True}, *(line for cut in cuts for line in (cut, {"commit": True})), "no record"]
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in records))


def run(folder: Path, name: str, *options: str, submit: list[object] | None = None) -> list[bytes]:
    """The changes, the dead letters and the last view of `whence run`."""
    own = folder / name
    own.mkdir()
    updates = ["--updates", folder / "updates.jsonl", "--state", own / "state", "--changes", own / "changes.jsonl"]
    output_of([*(submit or WHENCE), "run", folder / "rules.dl", *updates, "--quiet", *options])
    output_of([*WHENCE, "state", "verify", own / "state", "--quiet"])
    return [(own / each).read_bytes() for each in ("changes.jsonl", "rules.dead.jsonl")]


@LONG
def test_runs_on_clusters_write_the_same(standalone: str, tmp_path: Path) -> None:
    (tmp_path / "rules.dl").write_text(RULES)
    write_updates(tmp_path / "updates.jsonl")
    expected = run(tmp_path, "alone", "--no-spark")
    assert expected[0].count(b"\n") > 12 * 12
    assert run(tmp_path, "processes", "--master", LOCAL_CLUSTER) == expected
    assert run(tmp_path, "cluster", "--master", standalone) == expected
    script = tmp_path / "submitted.py"
    script.write_text("from whence.cli import main\n\nmain()\n")
    submit = [BIN / "spark-submit", "--master", standalone, script]
    assert run(tmp_path, "submitted", submit=submit) == expected
