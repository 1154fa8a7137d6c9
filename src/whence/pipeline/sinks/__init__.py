"""Where changes go. A sink may be given an epoch again after a crash, with the same changes: writing is idempotent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from whence.io.changes import Changes


class SinkWarning(UserWarning):
    """Something that a sink had to set aside."""


class Sink(Protocol):
    """Takes the changes of the output relations, epoch by epoch, in order.

    `write` returns once the changes are safe. An epoch that was written before is replaced, not added. After a crash the
    epochs that may not have arrived are written again, so that a sink sees every epoch at least once and keeps it once.
    """

    def write(self, epoch: int, changes: Changes) -> None: ...

    def close(self) -> None:
        """After the last epoch of a run, however it ended. A sink with nothing to let go of inherits this."""
        return


@dataclass(frozen=True)
class CallbackSink(Sink):
    """Calls a function with each epoch and its changes. Being idempotent is up to the function."""

    function: Callable[[int, Changes], object]

    def write(self, epoch: int, changes: Changes) -> None:
        self.function(epoch, changes)
