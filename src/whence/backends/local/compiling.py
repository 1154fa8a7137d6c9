"""When the loops are compiled: on first use, once for each machine and version; the result is kept on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator

from whence.backends.local import backend, best, blocks, cascade, machine, rounds  # noqa: F401 - bring all kernels
from whence.backends.local.memory import KERNELS


def compile_all() -> Iterator[tuple[str, float, bool]]:
    """Compiles every loop, or loads it: its name, the seconds it took, and whether it was compiled now."""
    for name, (dispatcher, signature) in KERNELS.items():
        started = time.perf_counter()
        misses = sum(dispatcher.stats.cache_misses.values())
        dispatcher.compile(f"({signature})")
        yield name, time.perf_counter() - started, sum(dispatcher.stats.cache_misses.values()) > misses
