"""Memory while names come and go for a long time: what has gone is forgotten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import soak

from whence.backends.local.words import FEWEST

LONG = "WHENCE_LONG" in os.environ


def soaked(count: int, *state: str) -> list[dict[str, int]]:
    """What a process of its own tells as it goes through so many epochs."""
    run = subprocess.run(
        [sys.executable, soak.__file__, str(count), *state], stdout=subprocess.PIPE, check=True, text=True
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("is_durable", [False, True], ids=["in memory", "through a state"])
def test_memory_is_flat_while_names_come_and_go(is_durable: bool, tmp_path: Path) -> None:
    told = soaked(200_000 if LONG else 3_000, *([str(tmp_path / "state")] if is_durable else []))
    assert max(each["values"] for each in told) < 2 * FEWEST
    if LONG:
        settled = max(each["bytes"] for each in told if each["epochs"] <= 20_000)
        assert max(each["bytes"] for each in told) < settled + 16_000_000
