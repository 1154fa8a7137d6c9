"""Lines of update records as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from whence.io.changes import Epoch, Position
from whence.io.updates import Schema
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.lines import Lines
from whence.pipeline.records import Bury, cut_epochs
from whence.pipeline.sources import Source


class LineSource(Source):
    """`opened` gives the lines from a position on: of files, of a pipe or of a socket."""

    def __init__(self, opened: Callable[[Position], Lines], schema: Schema, size: int | None, bury: Bury) -> None:
        self._opened = opened
        self._schema = schema
        self._size = size
        self._bury = bury
        self._lines: Lines | None = None

    def epochs(self, begin: Position) -> Iterator[Epoch]:
        lines = self._lines = self._opened(begin)
        cutter = EpochCutter(lines.place, self._size, was_cut=bool(begin.get("cut")))
        return cut_epochs(lines.numbered(), cutter, self._schema, self._bury)

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
