"""What users see of the loops being compiled, which happens where `whence warm` has not been there before."""

from __future__ import annotations

import time

_EVERY = 2.0


class CompilationNews:
    """Says on the standard error that loops are being compiled, when they are, and now and then how far that is."""

    def __init__(self) -> None:
        self.count = 0
        self.started = self.told = 0.0

    def __call__(self, name: str) -> None:
        from whence.cli.terminal import err, show  # noqa: PLC0415 - seldom needed

        now = time.monotonic()
        if self.count == 0:
            self.started = self.told = now
            show(err, "compiling the engine's loops; this happens once (whence warm does it ahead)")
        elif now - self.told >= _EVERY:
            self.told = now
            show(err, f"compiling {name}: {self.count} done after {now - self.started:.0f} s")
        self.count += 1
