"""What users see of the loops being compiled, which happens where `whence warm` has not been there before."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable

_EVERY = 2.0


def compile_soon() -> None:
    """Has another process compile, at the same time, what will be needed next; it ends with this one."""
    from whence.backends.local.compiling import SOON, compile_beside  # noqa: PLC0415 - brings the compiler, which is there now

    atexit.register(compile_beside(SOON).__exit__, None, None, None)


class CompilationNews:
    """Says on the standard error that loops are being compiled, when they are, and now and then how far that is.

    `at_first` is called when the first is.
    """

    def __init__(self, at_first: Callable[[], None] = lambda: None) -> None:
        self.count = 0
        self.started = self.told = 0.0
        self.at_first = at_first

    def __call__(self, name: str) -> None:
        from whence.cli.terminal import err, show  # noqa: PLC0415 - seldom needed

        now = time.monotonic()
        if self.count == 0:
            self.started = self.told = now
            show(err, "compiling the engine's loops; this happens once (whence warm does it ahead)")
            self.at_first()
        elif now - self.told >= _EVERY:
            self.told = now
            show(err, f"compiling {name}: {self.count} done after {now - self.started:.0f} s")
        self.count += 1
