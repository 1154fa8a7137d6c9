"""The views of a state that another process keeps: its log is read as it grows, and every epoch of it is applied here again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from whence.io.changes import Epoch
from whence.lang.load import Functions
from whence.pipeline.files import Damaged, StateError
from whence.pipeline.folder import Store
from whence.pipeline.parts.open import read_state
from whence.plan.record import RecordedProgram
from whence.serve.live import LiveViews
from whence.serve.reports import applied_to
from whence.session import Session

_NAP = 0.03
_LOOK = 1.0  # at the folder, whatever its times say


def _oldest_views(store: Store) -> LiveViews:
    program = store.program
    oldest, base = store.oldest_base()
    rules = program.plain if isinstance(program, RecordedProgram) else program
    session = Session(rules, facts=base.rows, windows=base.windows)
    return LiveViews(session, epoch=oldest, name=store.manifest.name)


def recall(live: LiveViews, folder: Path, functions: Functions | None = None) -> None:
    """Has views that go on from a state know the epochs before, too: they happen once more, aside. Raises StateError."""
    store = read_state(folder, functions)
    start = live.history.oldest
    aside = _oldest_views(store)
    for epoch in store.since(aside.epoch):
        if aside.epoch == start:
            break
        applied_to(aside, epoch)
    live.history.recall(aside.history.newest(start))
    live.tell()


class Follower:
    """Begins with the oldest epoch that the state knows, so that all of them can be looked at. Raises StateError."""

    def __init__(self, folder: Path, functions: Functions | None = None) -> None:
        self.store = read_state(folder, functions)
        self.live = _oldest_views(self.store)
        self.live.lag = lambda: {"epochs": self._behind}
        self._behind = 0
        self._log = folder / "log"
        self._seen: tuple[int, float] = (0, 0.0)
        self.catch_up()

    def follow(self, stopped: Callable[[], bool]) -> None:
        while not stopped():
            self.catch_up()
            time.sleep(_NAP)

    def catch_up(self) -> None:
        """Applies what has come since. Raises StateError if epochs were forgotten before they were read here, or if the program
        has become another one.
        """
        modified, now = self._log.stat().st_mtime_ns, time.monotonic()
        if modified == self._seen[0] and now < self._seen[1]:
            return
        self._seen = modified, now + _LOOK
        epochs = self._epochs()
        for at, epoch in enumerate(epochs, 1):
            applied_to(self.live, epoch)
            self._behind = len(epochs) - at

    def _epochs(self) -> list[Epoch]:
        try:
            return self.store.since(self.live.epoch)
        except Damaged:
            # Who writes has compacted the log meanwhile; what is still there is found under another name.
            turns = self.store.turns
            self.store.look_again()
            if self.store.turns != turns:
                problem = f"the program of {self.store.folder} has become another one"
                raise StateError([problem], hints=["serve the state again"]) from None
            return self.store.since(self.live.epoch)
