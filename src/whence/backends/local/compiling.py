"""When the loops are compiled: on first use, once for each machine and version; the result is kept on disk.

Numba's compiler is a program in Python that holds one lock: what two cores can do for it takes two processes. A second one
compiles loops that will be needed soon, and the first finds them on disk.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack

from whence.backends.local import (  # noqa: F401 - bring all kernels
    backend,
    best,
    best_rounds,
    blocks,
    bundles,
    by_column,
    cascade,
    chains,
    gathered,
    machine,
    parallel,
    rounds,
    text_in,
    text_order,
    text_out,
    walks,
)
from whence.backends.local.memory import KERNELS

# What a first evaluation needs after the loop that runs plans, in this order; that one takes as long as all of these.
SOON = (
    "claim_rows",
    "choose_rows",
    "fill_slots",
    "count_keys",
    "fill_blocks",
    "read_column",
    "spread_gain",
    "claim_bundles",
    "choose_flags",
    "drop_flags",
    "read_lines",
    "sample_blocks",
    "follow_walks",
    "place_rows",
    "read_halves",
    "read_states",
)


def compile_all(names: Iterable[str] | None = None) -> Iterator[tuple[str, float, bool]]:
    """Compiles loops, all if none are named, or loads them: the name, the seconds it took, and whether it was compiled now."""
    for name in tuple(KERNELS) if names is None else names:
        loop, started = KERNELS[name], time.perf_counter()
        is_compiled = loop.load()
        yield name, time.perf_counter() - started, is_compiled


def compile_beside(names: Iterable[str]) -> AbstractContextManager[object]:
    """Has another process compile these, until the end of the context. With one core there is none."""
    beside = ExitStack()
    if parallel.CORES > 1 and sys.executable:
        code = "import sys; from whence.backends.local.compiling import compile_all; list(compile_all(sys.argv[1:]))"
        quiet = subprocess.DEVNULL
        command = [sys.executable, "-c", code, *names]
        child = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603 - our own
        beside.callback(child.wait)
        beside.callback(child.terminate)  # first: what it has done is on disk, file by file
    return beside
