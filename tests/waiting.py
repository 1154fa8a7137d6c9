"""Waiting for something to happen, not for time to pass."""

from __future__ import annotations

import fcntl
import struct
import termios
import time
from collections.abc import Callable
from typing import IO

PATIENCE = 120.0


def wait_for(condition: Callable[[], bool]) -> None:
    """Raises AssertionError if it does not come about, however slow the machine."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_until_read(pipe: IO[str]) -> None:
    """Until whoever reads the pipe has taken all that is in it."""

    def is_empty() -> bool:
        return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0] == 0

    wait_for(is_empty)
