"""Runs of `whence run` in processes of their own that kill themselves at a chosen instant.

An instant is a call that makes something of the state durable or visible: a sync, a rename, a link, a removal, a new folder.
Right before a sync a new file may also be cut in half, as if the process had died while writing it.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from whence.cli import app
from whence.pipeline import spool
from whence.pipeline.files import PARTIAL

_PRELOADED = ["tests.faults.warm", "tests.faults.victims"]
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(_PRELOADED)


def run(
    folder: Path, *options: str, kill_at: int | None = None, halve: bool = False, on_spark: bool = False
) -> tuple[int, int]:
    """The exit code, which is negative for a signal, and how many instants there were."""
    counted = _processes.Value("i", 0)
    way = ("--master", "local[2]") if on_spark else ("--no-spark",)
    process = _processes.Process(target=_run, args=(str(folder), (*way, *options), kill_at, halve, counted))
    process.start()
    process.join(300)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode, counted.value


def _run(folder: str, options: tuple[str, ...], kill_at: int | None, halve: bool, counted: Any) -> None:
    os.chdir(folder)

    def instant() -> None:
        counted.value += 1
        if counted.value == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def sync(descriptor: int) -> None:
        # Nothing is lost with a process: syncing in earnest would only take time.
        is_new = Path(f"/proc/self/fd/{descriptor}").readlink().name.endswith(PARTIAL)
        if halve and counted.value + 1 == kill_at and is_new:
            os.truncate(descriptor, os.fstat(descriptor).st_size // 2)
        instant()

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            instant()
            return function(*args, **kwargs)

        return called

    os.fsync = sync
    os.link = before(os.link)
    shutil.rmtree = before(shutil.rmtree)  # type: ignore[assignment]
    for name in ("replace", "unlink", "mkdir"):
        setattr(Path, name, before(getattr(Path, name)))

    # More and smaller files for Spark, so that there are many micro-batches to be killed in.
    spool._LARGE, spool._AHEAD = 1000, 2
    arguments = ["run", "program.dl", "--state", "state", "--changes", "changes.jsonl", "--quiet"]
    app([*arguments, "--updates", "updates.jsonl", *options])
