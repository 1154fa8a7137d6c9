"""Spark's daemon of Python workers, with the engine loaded.

Workers are forks of the daemon, and Spark ends those that had nothing to do for a minute. A worker that begins with the engine
in its memory begins at once; otherwise each loads it, for longer than most fragments take to evaluate. Nothing may be printed
here: Spark reads from the standard output where the daemon listens.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager


def load_engine() -> None:
    """All that fragments need, loops included, so that it is in memory once for all workers."""
    from whence.backends.local.compiling import compile_all  # noqa: PLC0415 - only here
    from whence.backends.spark import tasks  # noqa: F401, PLC0415

    for _ in compile_all():
        pass
    gc.freeze()  # what is never looked at again is never copied either


if __name__ == "__main__":
    load_engine()
    manager()
