"""The example runs: what is seen changes the plan."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "optimizer"


def test_the_example_plans_again_with_what_was_seen() -> None:
    printed = subprocess.run([sys.executable, EXAMPLE / "main.py"], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("by the statistics:\n")
    assert "rows of customer, nation, region: another plan" in printed
