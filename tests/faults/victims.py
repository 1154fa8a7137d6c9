"""Runs in processes of their own that kill themselves at a chosen instant: of `whence run`, and of state in parts.

An instant is a call that makes something of the state durable or visible: a sync, a rename, a link, a removal, a new folder.
Right before a sync a new file may also be cut in half, as if the process had died while writing it.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.pipeline.parts.carrier import InProcess

from whence import load_file
from whence.cli import app
from whence.io.changes import Epoch, Position
from whence.io.updates import Schema
from whence.lang.program import Program
from whence.pipeline import spool
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.files import PARTIAL
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.lines import Lines
from whence.pipeline.options import RunOptions
from whence.pipeline.parts.keeper import PartedKeeper
from whence.pipeline.parts.open import open_state
from whence.pipeline.parts.orders import Done
from whence.pipeline.parts.rounds import Rounds
from whence.pipeline.parts.worker import Order
from whence.pipeline.records import cut_epochs
from whence.pipeline.sinks.json_lines import JsonLinesSink
from whence.pipeline.store import WholeStore

_APART_AFTER = 4
_PRELOADED = ["tests.faults.warm", "tests.faults.victims"]
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(_PRELOADED)


def run(
    folder: Path, *options: str, kill_at: int | None = None, halve: bool = False, on_spark: bool = False
) -> tuple[int, int]:
    """The exit code, which is negative for a signal, and how many instants there were."""
    way = ("--master", "local[2]") if on_spark else ("--no-spark",)
    return _until_the_end(_run, str(folder), (*way, *options), kill_at, halve)


def run_in_parts(folder: Path, *, kill_at: int | None = None, halve: bool = False) -> tuple[int, int]:
    """The same of a state that is taken into three parts half-way; their tasks run in the process too, one after the other."""
    return _until_the_end(_run_in_parts, str(folder), kill_at, halve)


def _until_the_end(target: Callable[..., None], *args: object) -> tuple[int, int]:
    counted = _processes.Value("i", 0)
    process = _processes.Process(target=target, args=(*args, counted))
    process.start()
    process.join(300)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode, counted.value


def _run(folder: str, options: tuple[str, ...], kill_at: int | None, halve: bool, counted: Any) -> None:
    os.chdir(folder)
    _arm(kill_at, halve, counted)
    # More and smaller files for Spark, so that there are many micro-batches to be killed in.
    spool._LARGE, spool._AHEAD = 1000, 2
    arguments = ["run", "program.dl", "--state", "state", "--changes", "changes.jsonl", "--quiet"]
    app([*arguments, "--updates", "updates.jsonl", *options])


def _run_in_parts(folder: str, kill_at: int | None, halve: bool, counted: Any) -> None:
    os.chdir(folder)
    _arm(kill_at, halve, counted)
    program = load_file(Path("program.dl"))
    sink = JsonLinesSink("changes.jsonl", program)
    state = open_state(Path("state"), program)
    if isinstance(state, WholeStore):
        whole = ResidentKeeper(program, RunOptions(sinks=[sink], snapshot_every=3, retain=2), store=state)
        for epoch in _epochs(program, whole.source):
            if whole.epoch == _APART_AFTER:
                break
            whole.apply([epoch])
        whole.hand_over()
    store = state.in_parts(3, sink.write)
    run = Rounds(InProcess()) if store.manifest.ships else _in_turn
    keeper = PartedKeeper(store, run, RunOptions(sinks=[sink], snapshot_every=3, retain=2), tasks=2)
    for epoch in _epochs(program, keeper.source):
        keeper.apply([epoch])
    keeper.close()


def _epochs(program: Program, done: Position) -> Iterator[Epoch]:
    lines = Lines(Path("updates.jsonl"), done)
    cutter = EpochCutter(lines.place, was_cut=bool(done.get("cut")))
    return cut_epochs(lines.numbered(), cutter, Schema.of(program), lambda _, __: None)


def _in_turn(order: Order) -> list[Done]:
    return [done for index in range(order.tasks) for done in order(index)]


def _arm(kill_at: int | None, halve: bool, counted: Any) -> None:
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
