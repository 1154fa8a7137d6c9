"""More threads for large batches, as many as there are cores: compiled loops run without the interpreter's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

A = TypeVar("A")

# Handing work over takes some 50 microseconds, which is what a loop needs for a thousand rows. So many are worth two threads.
LARGE = 1 << 14
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_worthwhile(size: int) -> bool:
    return size >= LARGE and CORES > 1


def threads(size: int) -> int:
    """How many threads had better share a batch of so many rows."""
    return max(1, min(CORES, 2 * size // LARGE))


@contextmanager
def on_one_core() -> Iterator[None]:
    """Without other threads, in a process that is one of several which share the machine's cores."""
    global CORES  # noqa: PLW0603 - a process does one thing at a time
    before, CORES = CORES, 1
    try:
        yield
    finally:
        CORES = before


class _Helpers:
    """The other threads, made when they are first needed. A forked process has none of its parent's and makes its own."""

    def __init__(self) -> None:
        self.local = threading.local()
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self.executor = ThreadPoolExecutor(max(1, CORES - 1), thread_name_prefix="whence", initializer=self._begin)

    def _begin(self) -> None:
        self.local.helps = True

    def run(self, calls: Sequence[Callable[[], A]]) -> list[A]:
        """The results of calls that are made at the same time, as far as there are threads, the first of them in this one.

        Whoever helps makes all calls alone: all others may be waiting for it.
        """
        first, *others = calls
        if not others or hasattr(self.local, "helps"):
            return [call() for call in calls]
        futures = [self.executor.submit(call) for call in others]
        try:
            result = first()
        finally:
            wait(futures)  # nobody may go on while they work on what is theirs
        return [result, *(future.result() for future in futures)]


run = _Helpers().run
