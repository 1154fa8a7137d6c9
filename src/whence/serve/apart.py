"""Work on a frozen copy of this process: a forked child has all of its memory as it was, and nothing that it does is seen here.

So a question may take its time, try things out in the session, and be stopped at any instant, while epochs go on. What stops
them is the fork alone, some milliseconds.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import NoReturn

_PORTION = 1 << 16
_GRACE = 1.0  # for an answer that is being written when the time is over


class TooLate(Exception):
    """There is no answer in time."""


class TooBusy(Exception):
    """Others are waiting already."""


class Apart:
    """Runs calls in copies of the process: so many `at_once`, so many more waiting, each for so many `seconds`."""

    def __init__(self, *, at_once: int = 2, waiting: int = 8, seconds: float = 10.0, more_bytes: int = 2 << 30) -> None:
        self.seconds = seconds
        self._more_bytes = more_bytes
        self._running = BoundedSemaphore(at_once)
        self._places = BoundedSemaphore(at_once + waiting)
        self._forking = Lock()

    def run(self, frozen: AbstractContextManager[object], call: Callable[[], bytes]) -> bytes:
        """What `call` returns in a copy that is made inside of `frozen`. Raises TooLate or TooBusy, and nothing that `call` does:
        it has to answer, whatever happens.
        """
        if not self._places.acquire(blocking=False):
            raise TooBusy("too many questions are waiting")
        try:
            if not self._running.acquire(timeout=self.seconds):
                raise TooBusy("other questions took all the time")
            try:
                return self._run(frozen, call)
            finally:
                self._running.release()
        finally:
            self._places.release()

    def _run(self, frozen: AbstractContextManager[object], call: Callable[[], bytes]) -> bytes:
        read, write = os.pipe()
        with self._forking, frozen, warnings.catch_warnings():
            # Newer Pythons warn of other threads, of which the child makes no use.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
            if not child:
                self._answer(call, write)
        os.close(write)
        try:
            return self._received(read)
        finally:
            os.close(read)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def _received(self, read: int) -> bytes:
        deadline = time.monotonic() + self.seconds + _GRACE
        parts: list[bytes] = []
        while True:
            if not select.select([read], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TooLate(f"it took more than {self.seconds:g} s")
            part = os.read(read, _PORTION)
            if not part:
                break
            parts.append(part)
        if not parts:
            raise TooLate("it took more memory or time than a question may")
        return b"".join(parts)

    def _answer(self, call: Callable[[], bytes], write: int) -> NoReturn:
        """In the child, which ends here whatever happens."""
        code = 1
        try:
            gc.disable()  # a collection would copy every page that it looks at
            os.nice(10)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            # Who opened a file may close it and mean it: sockets, the lock of the state.
            for descriptor in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
                if descriptor > 2 and descriptor != write:
                    _close(descriptor)
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + self._more_bytes, resource.RLIM_INFINITY))
            signal.signal(signal.SIGALRM, _stop)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
            answer = call()
            signal.setitimer(signal.ITIMER_REAL, 0)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(answer)
            code = 0
        finally:
            os._exit(code)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        return  # the one that listed them


def _stop(*_: object) -> NoReturn:
    raise TimeoutError
