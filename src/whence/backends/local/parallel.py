"""A second thread for large batches: compiled loops run without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

A = TypeVar("A")

# Handing work over takes some 50 microseconds, which is what a loop needs for a thousand rows.
LARGE = 1 << 14
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_worthwhile(size: int) -> bool:
    return size >= LARGE and CORES > 1


@contextmanager
def on_one_core() -> Iterator[None]:
    """Without a second thread, in a process that is one of several which share the machine's cores."""
    global CORES  # noqa: PLW0603 - a process does one thing at a time
    before, CORES = CORES, 1
    try:
        yield
    finally:
        CORES = before


class _Helper:
    """The thread, made when it is first needed. A forked process has none of its parent's threads and makes its own."""

    def __init__(self) -> None:
        self.executor: ThreadPoolExecutor | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self.executor = None

    def run(self, calls: Sequence[Callable[[], A]]) -> list[A]:
        """The results of one call, or of two that are made at the same time."""
        if len(calls) == 1:
            return [calls[0]()]
        if self.executor is None:
            self.executor = ThreadPoolExecutor(1, thread_name_prefix="whence")
        one, other = calls
        future = self.executor.submit(other)
        try:
            result = one()
        finally:
            wait([future])  # nobody may go on while it works on what is theirs
        return [result, future.result()]


run = _Helper().run
