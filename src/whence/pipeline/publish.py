"""The output relations as tables that other tools can read at any moment: `STATE/current/RELATION.parquet`.

`current` is a link to a folder with all tables of one epoch, whose name is the epoch. It is switched as a whole, once all of it
is safe, so that a reader who resolves it once sees one epoch. Tables are written by a thread, which takes a small share of the
time: a small view is current after every epoch, a large one soon after. Files beside the tables have their checksums.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Condition, Thread

import pyarrow as pa

from whence.io.updates import reported_writing
from whence.pipeline.files import Damaged, StateWarning, read_file, sync_folder, write_file
from whence.pipeline.snapshots import file_name, write_table

SHARE = 0.02
CURRENT = "current"
_CHECKSUMS = ".checksums"  # readers of folders of tables pass over such names
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
            write_tables(own, {file_name(name): table for name, table in tables.items()})

        publish(self.folder, epoch, write)


def publish(folder: Path, epoch: int, write: Callable[[Path], None]) -> None:
    """Makes `current` the folder with the views after an epoch, which `write` fills, unless it is that already."""
    tables = folder / "views"
    own = tables / f"{epoch:012d}"
    current = folder / CURRENT
    if current.exists() and current.resolve() == own.resolve():
        try:
            check_published(own)
        except Damaged as error:
            warnings.warn(f"{error.problems[0]}; written again", StateWarning, stacklevel=2)
        else:
            return
    with reported_writing(own):
        if own.exists():
            shutil.rmtree(own)
        own.mkdir(parents=True)
        write(own)
        sync_folder(own)
        sync_folder(tables)
        link = folder / f"{CURRENT}.partial"
        link.unlink(missing_ok=True)
        link.symlink_to(Path("views") / own.name)
        link.replace(current)
        sync_folder(folder)
        for old in sorted(tables.iterdir())[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def write_tables(folder: Path, tables: Mapping[str, pa.Table], part: str = "") -> None:
    """Writes tables below a folder, by their paths, with their checksums: those of a part have a file of their own."""
    sums = {}
    for path, table in tables.items():
        with reported_writing(folder / path):
            (folder / path).parent.mkdir(exist_ok=True)
        sums[path] = write_table(folder / path, table)
    write_file(folder / f"{_CHECKSUMS}{part}.json", json.dumps(sums).encode())


def check_published(folder: Path) -> None:
    """Raises Damaged if a table is missing or not as it was written."""
    listed = sorted(folder.glob(f"{_CHECKSUMS}*.json"))
    if not listed:
        raise Damaged(folder / f"{_CHECKSUMS}.json", "the file is missing")
    for path in listed:
        try:
            sums = json.loads(path.read_bytes())
            expected = [(folder / name, str(value)) for name, value in sums.items()]
        except (OSError, ValueError, AttributeError):
            raise Damaged(path, "the content is not what was written there") from None
        for table, value in expected:
            read_file(table, value)
