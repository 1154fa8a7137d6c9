from __future__ import annotations

import time

import typer

from whence.backends.local.compiling import compile_all, compile_beside
from whence.backends.local.memory import KERNELS
from whence.cli.progress import Progress
from whence.cli.terminal import counted, err


def warm() -> None:
    """Compile the engine's loops ahead of their first use.

    They are compiled once for each installation and kept on disk beside the package, or in the user's cache folder if that is
    not writable.
    """
    started = time.perf_counter()
    now = kept = 0
    # One from the front, another from the back: what it has done when they meet is found on disk.
    with Progress(err, "compiling") as progress, compile_beside(reversed(KERNELS)):
        for name, _, was_compiled in compile_all():
            now, kept = (now + 1, kept) if was_compiled else (now, kept + 1)
            progress.text = f"compiling: {name} is done"
    seconds = time.perf_counter() - started
    typer.echo(f"compiled {counted(now, 'loop')} in {seconds:.1f} s; {kept} were there")
