"""A streaming query that is killed and started again leaves the store that it would have left in one go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.events.programs import Truth, assert_same, packet, packets
from tests.events.test_stores import LINE

from whence.events.store import EventStore
from whence.events.tables import MANIFEST
from whence.events.verify import problems_of

VICTIM = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from tests.events.programs import packets
from tests.events.test_stores import LINE
from whence.events.on_spark import EventStream
from whence.events.store import EventStore

folder = Path(sys.argv[1])
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
stream = spark.readStream.schema("at string, src string, dst string, data string").option("maxFilesPerTrigger", 1)
events = stream.json(str(folder / "in"))
with EventStore(packets(), folder / "store") as store:
    if store.tables.commits == 0:
        store.load(LINE)
    EventStream(store).start(events, availableNow=True).awaitTermination()
"""
FILES = 8


@pytest.mark.skipif("WHENCE_LONG" not in os.environ, reason="starts Spark several times: make test-long")
def test_kills_of_a_stream_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    truth = Truth(packets(), LINE)
    for number in range(FILES):
        rows = [packet("n1" if at % 2 else "n2", "n3", f"{number}-{at}") for at in range(50)]
        lines = [json.dumps(dict(zip(("at", "src", "dst", "data"), row, strict=True))) for row in rows]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines))
        for row in rows:
            truth.event(row)
    (tmp_path / "victim.py").write_text(VICTIM)
    root = Path(__file__).parents[2]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")]),
        "PYSPARK_PYTHON": sys.executable,
    }
    kills = 0
    for wanted in (1, 3, 6, FILES + 1):
        process = subprocess.Popen([sys.executable, tmp_path / "victim.py", tmp_path], env=env, start_new_session=True)
        while process.poll() is None:
            if batches(tmp_path) >= wanted:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.005)
        process.wait()
    assert kills > 0
    assert process.returncode == 0
    store = EventStore.read(tmp_path / "store")
    assert store.runs == len(store.tables["outputs"]) == FILES * 50
    assert_same(store, truth)
    assert list(problems_of(store)) == []


def batches(folder: Path) -> int:
    path = folder / "store" / MANIFEST
    return json.loads(path.read_text())["about"].get("batch", -1) + 1 if path.exists() else 0
