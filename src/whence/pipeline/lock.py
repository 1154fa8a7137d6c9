"""One process at a time on a state folder."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whence.io.updates import reported_writing
from whence.pipeline.files import StateError


class StateLock:
    """Held until released, or until the process is gone, however it went. Raises StateError if another one holds it.

    Who only reads changes nothing in the folder: its lock is the file that is there, if one is.
    """

    def __init__(self, folder: Path, *, reading: bool = False) -> None:
        path = folder / "lock"
        self._descriptor: int | None = None
        if reading and not path.exists():
            return
        with reported_writing(path):
            self._descriptor = os.open(path, os.O_RDONLY if reading else os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 1000).decode(errors="replace") or "another process"
            os.close(self._descriptor)
            hint = "wait until it has ended, or stop it; each run needs a state folder of its own"
            raise StateError([f"{folder} is in use by {holder}"], hints=[hint]) from None
        if reading:
            return
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def locked_for_reading(folder: Path) -> Iterator[None]:
    """Nobody writes meanwhile. Raises StateError if somebody does already."""
    lock = StateLock(folder, reading=True)
    try:
        yield
    finally:
        lock.release()
