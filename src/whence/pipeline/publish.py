"""The output relations as tables that other tools can read at any moment: `STATE/current/RELATION.parquet`.

`current` is a link to a folder with all tables of one epoch, whose name is the epoch. It is switched as a whole, so that a
reader who resolves it once sees one epoch. Tables are written by a thread, which takes a small share of the time: a small
view is current after every epoch, a large one soon after.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Condition, Thread

import pyarrow as pa
import pyarrow.parquet as pq

from whence.io.updates import reported_writing
from whence.pipeline.snapshots import file_name

SHARE = 0.02
_KEPT = 2  # one more than the current one, for those who are reading it

Tables = Mapping[str, pa.Table]


class Publisher:
    """`state` gives the last epoch and the views after it."""

    def __init__(self, folder: Path, state: Callable[[], tuple[int, Tables]]) -> None:
        self.folder = folder
        self._state = state
        self._condition = Condition()
        self._is_due = self._is_closing = False
        self._failure: BaseException | None = None
        self._publish()
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def notify(self) -> None:
        """There has been an epoch."""
        with self._condition:
            if self._failure is not None:
                raise self._failure
            self._is_due = True
            self._condition.notify()

    def close(self) -> None:
        """Publishes the last epoch."""
        with self._condition:
            self._is_closing = True
            self._condition.notify()
        self._thread.join()
        if self._failure is None and self._is_due:
            self._publish()

    def _work(self) -> None:
        pause = 0.0
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._is_closing, pause)
                self._condition.wait_for(lambda: self._is_due or self._is_closing)
                if self._is_closing:
                    return
                self._is_due = False
            started = time.monotonic()
            try:
                self._publish()
            except Exception as error:  # noqa: BLE001 - raised in the thread that applies epochs
                self._failure = error
                return
            pause = (time.monotonic() - started) / SHARE

    def _publish(self) -> None:
        epoch, tables = self._state()

        def write(own: Path) -> None:
            for name, table in tables.items():
                pq.write_table(table, own / file_name(name))

        publish(self.folder, epoch, write)


def publish(folder: Path, epoch: int, write: Callable[[Path], None]) -> None:
    """Makes `current` the folder with the views after an epoch, which `write` fills, unless it is that already."""
    tables = folder / "views"
    own = tables / f"{epoch:012d}"
    current = folder / "current"
    if current.exists() and current.resolve() == own.resolve():
        return
    with reported_writing(own):
        if own.exists():
            shutil.rmtree(own)
        own.mkdir(parents=True)
        write(own)
        link = folder / "current.partial"
        link.unlink(missing_ok=True)
        link.symlink_to(Path("views") / own.name)
        link.replace(current)
        for old in sorted(tables.iterdir())[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
