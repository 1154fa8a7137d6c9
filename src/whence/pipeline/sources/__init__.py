"""Where updates come from.

A `Source` feeds a run in one process. For Spark there are streaming sources in Python. Those for databases and brokers need their
extra: `whence[postgres]`, `whence[kafka]`, `whence[mqtt]`, `whence[calendar]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from whence.io.changes import Epoch, Position


class Source(Protocol):
    """Updates from somewhere, cut into epochs. Each epoch says where it ends, and a source goes on from any such position."""

    def epochs(self, begin: Position) -> Iterator[Epoch]:
        """Those after a position; from the beginning if it is empty, or one in something else."""
        ...

    def close(self) -> None:
        """After the last epoch of a run, however it ended. A source with nothing to let go of inherits this."""
        return
