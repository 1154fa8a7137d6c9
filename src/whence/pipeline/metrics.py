"""Figures of a run for those who watch it: `STATE/metrics.json`, replaced after every commit."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from whence.io.updates import reported_writing
from whence.pipeline.report import EpochReport

NAME = "metrics.json"
_SHIPPED = ("exchanges", "shipped", "shipped_bytes")  # of parts that need each other


def last_epoch_of(folder: Path) -> int:
    """The last epoch of the figures, or 0 if there are none."""
    try:
        last: object = json.loads((folder / NAME).read_bytes())["last"]["epoch"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return last if isinstance(last, int) else 0


class MetricsFile:
    """The last epoch, and what the process has done since it started."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._totals = dict.fromkeys(("epochs", "updates", "no_ops", "inserted", "deleted", "rounds", *_SHIPPED), 0)
        self._seconds = 0.0
        self._since = time.time()

    def add(self, reports: Sequence[EpochReport]) -> None:
        self._seconds += sum(each.seconds for each in reports)
        for name in self._totals:
            self._totals[name] += sum(1 if name == "epochs" else getattr(each, name) for each in reports)
        content = {
            "process": os.getpid(),
            "since": self._since,
            "written": time.time(),
            "totals": {**self._totals, "seconds": self._seconds},
            "last": asdict(reports[-1]),
        }
        partial = self.path.with_suffix(".partial")
        with reported_writing(self.path):
            partial.write_text(json.dumps(content, indent=1))
            partial.replace(self.path)
