"""Executors in processes of their own give the same answers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
from whence import load
from whence.backends.spark.session import spark_session
from whence.spark import evaluate

spark = spark_session(sys.argv[1])
program = load('''.decl link(x:number, y:number) .input link
.decl reach(x:number, y:number) .output reach
reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z).''')
link = spark.range(60).selectExpr("id as x", "(id * 7 + 1) % 60 as y")
for mode in ("in-task", "decomposed", "shuffled"):
    reach = evaluate(program, {"link": link}, mode=mode)["reach"]
    print(reach.count(), reach.selectExpr("sum(x * 61 + y * y)").first()[0])
"""


def closure() -> str:
    found = set()
    for start in range(60):
        at = (start * 7 + 1) % 60
        while (start, at) not in found:
            found.add((start, at))
            at = (at * 7 + 1) % 60
    return f"{len(found)} {sum(x * 61 + y * y for x, y in found)}"


@pytest.mark.skipif(not os.environ.get("WHENCE_LONG"), reason="starts three Java machines; make test-long runs it")
def test_a_cluster_of_processes_gives_the_same() -> None:
    command = [sys.executable, "-c", SCRIPT, "local-cluster[2,1,1024]"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [closure()] * 3
