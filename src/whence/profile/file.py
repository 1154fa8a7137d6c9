"""What rules cost, beside a state: `STATE/profile.json`, replaced after an epoch, for whoever reads it while the run goes on."""

from __future__ import annotations

import json
import time
from pathlib import Path

from whence.engine.profile import Profile
from whence.io.updates import reported_writing
from whence.profile.report import report
from whence.profile.to_json import to_json
from whence.session import Session

NAME = "profile.json"
_EVERY = 1.0  # seconds: telling what it costs should not be what it costs


class ProfileFile:
    def __init__(self, folder: Path, profile: Profile) -> None:
        self._path = folder / NAME
        self._profile = profile
        self._due = 0.0

    def after_epoch(self, session: Session) -> None:
        if time.monotonic() < self._due:
            return
        text = json.dumps(to_json(report(self._profile, session)))
        partial = self._path.with_suffix(".partial")
        with reported_writing(self._path):
            partial.write_text(text, encoding="utf-8")
            partial.replace(self._path)
        self._due = time.monotonic() + _EVERY
