"""An exchange in a process of its own that kills itself at a chosen instant."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

from tests.faults.victims import _arm

from whence.exchange.peer import Peer

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.faults.warm", "tests.exchange.victim"])


def exchange(folder: Path, *, kill_at: int | None = None, halve: bool = False) -> tuple[int, int]:
    """The exit code, which is negative for a signal, and how many instants there were."""
    counted = _processes.Value("i", 0)
    process = _processes.Process(target=_exchange, args=(str(folder), kill_at, halve, counted))
    process.start()
    process.join(120)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode, counted.value


def _exchange(folder: str, kill_at: int | None, halve: bool, counted: Any) -> None:
    _arm(kill_at, halve, counted)
    with Peer.open(Path(folder)) as peer:
        peer.import_()
