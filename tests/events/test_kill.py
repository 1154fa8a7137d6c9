"""A run that is killed again and again ends with the store that it would have made in one go."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.events.programs import PACKETS, Truth, assert_same, packets

from whence.events.store import EventStore
from whence.events.tables import MANIFEST
from whence.events.verify import problems_of
from whence.lang.types import Tuple

KILLS = 40 if "WHENCE_LONG" in os.environ else 4
PLACES = ["n0", "n1", "n2", "n3"]


def history(seed: int, length: int) -> list[tuple[str, str, Tuple]]:
    draw = random.Random(seed)
    steps: list[tuple[str, str, Tuple]] = []
    for number in range(length):
        if draw.random() < 0.1:
            # Routes lead to higher numbers only: no loops.
            at = draw.randrange(3)
            row = (PLACES[at], "n3", PLACES[draw.randrange(at + 1, 4)])
            steps.append((draw.choice("+-"), "route", row))
        else:
            at = draw.choice(PLACES)
            steps.append(("+", "packet", (at, at, "n3", f"p{number}")))
    return steps


@pytest.mark.parametrize("scheme", ["exspan", "advanced"])
def test_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, scheme: str) -> None:
    steps = history(3, 600)
    (tmp_path / "program.dl").write_text(PACKETS)
    (tmp_path / "route.facts").write_text("n0\tn3\tn1\nn1\tn3\tn2\nn2\tn3\tn3\n")
    lines = [json.dumps({"op": op, "relation": name, "tuple": row}) for op, name, row in steps]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    command = [
        str(Path(sys.executable).parent / "whence"),
        "events",
        "run",
        "program.dl",
        "--events",
        "events.jsonl",
        "--store",
        "store",
    ]
    command += ["--scheme", scheme, "--commit-every", "40", "--quiet", "--json"]
    draw = random.Random(scheme)
    killed = 0
    while True:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        if killed < KILLS:
            before = commits(tmp_path)
            while commits(tmp_path) < before + draw.randrange(1, 4) and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        killed += 1
    assert killed > 0
    truth = Truth(packets(), {"route": [("n0", "n3", "n1"), ("n1", "n3", "n2"), ("n2", "n3", "n3")]})
    for op, name, row in steps:
        if name == "route":
            truth.change(op, name, row)
        else:
            truth.event(row)
    store = EventStore.read(tmp_path / "store")
    assert store.runs == sum(name == "packet" for _, name, _ in steps)
    assert len(store.tables["outputs"]) == sum(len(trees) for trees in truth.trees.values())
    assert_same(store, truth)
    assert list(problems_of(store)) == []


def commits(folder: Path) -> int:
    """How often the store has been committed."""
    path = folder / "store" / MANIFEST
    return json.loads(path.read_text())["commits"] if path.exists() else 0
