"""Where epochs end: updates, ticks and commits in, whole epochs out."""

from __future__ import annotations

from collections.abc import Callable

from whence.io.changes import Epoch, Position, Update
from whence.io.updates import Applicable, Commit, Tick


class EpochCutter:
    """Collects records until a commit or the size of the epoch ends it.

    A commit with nothing before it, right after an epoch that ended without one, speaks of that epoch. Other commits with
    nothing before them are empty epochs.
    """

    def __init__(self, place: Callable[[], Position], size: int | None = None, *, was_cut: bool = False) -> None:
        self.place = place  # right after the record taken last
        self.size = size
        self.was_cut = was_cut
        self.updates: list[Update] = []
        self.now: float | None = None

    def take(self, record: Applicable) -> Epoch | None:
        """The epoch that ends with this record, if one does."""
        match record:
            case Update():
                self.updates.append(record)
                return self.cut() if len(self.updates) == self.size else None
            case Tick(at):
                self.now = at if self.now is None else max(self.now, at)
                return None
            case Commit():
                if self.is_empty and self.was_cut:
                    return None
                return self._end(cut=False)

    def cut(self) -> Epoch | None:
        """Ends the epoch without a commit, if there is anything in it."""
        return None if self.is_empty else self._end(cut=True)

    @property
    def is_empty(self) -> bool:
        return not self.updates and self.now is None

    def _end(self, *, cut: bool) -> Epoch:
        self.was_cut = cut
        epoch = Epoch(self.updates, self.now, {**self.place(), "cut": cut})
        self.updates, self.now = [], None
        return epoch
