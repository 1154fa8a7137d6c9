"""One process at a time on a state folder."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from whence.io.updates import reported_writing
from whence.pipeline.files import StateError


class StateLock:
    """Held until released, or until the process is gone, however it went. Raises StateError if another one holds it."""

    def __init__(self, folder: Path) -> None:
        path = folder / "lock"
        with reported_writing(path):
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 1000).decode(errors="replace") or "another process"
            os.close(self._descriptor)
            hint = "wait until it has ended, or stop it; each run needs a state folder of its own"
            raise StateError([f"{folder} is in use by {holder}"], hints=[hint]) from None
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
