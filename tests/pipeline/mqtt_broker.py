"""An MQTT broker of our own, started for the tests on a free port of this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


def find_program() -> str | None:
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


@contextmanager
def broker() -> Iterator[int]:
    """The port of a fresh broker that keeps sessions in memory, and stops with the test."""
    program = find_program()
    if program is None:
        pytest.skip("mosquitto is not installed: tools/ensure_mosquitto.sh does that")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with TemporaryDirectory(prefix="whence-mqtt-") as folder:
        settings = Path(folder) / "mosquitto.conf"
        settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
        running = subprocess.Popen([program, "-c", str(settings)], stderr=subprocess.DEVNULL)
        try:
            _wait(port)
            yield port
        finally:
            running.terminate()
            running.wait(20)


def _wait(port: int) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < end, "mosquitto does not answer"
            time.sleep(0.05)
        else:
            return
