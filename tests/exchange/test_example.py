"""The example runs, and a correction travels in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "exchange"


def test_the_example_tells_its_story(tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLE / "main.py", tmp_path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert '  ? BioSQL.C("Musca domestica", "hose fly") or BioSQL.C("Musca domestica", "house fly")\n' in printed
    assert "but by BioSQL#1: BioSQL distrusts m2.\n" in printed
    assert printed.endswith(
        'GUS imports\n  - GUS.N("Musca domestica", "hose fly")\n  + GUS.N("Musca domestica", "house fly")\n'
    )
