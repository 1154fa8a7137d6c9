"""Changes as JSON lines: `{"epoch": 3, "op": "-", "relation": "reach", "tuple": ["a", "c"]}`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from whence.io.bags import as_often
from whence.io.changes import Changes
from whence.io.json_text import read_json
from whence.io.updates import format_changes, reported_writing
from whence.lang.program import Program, output_names
from whence.pipeline.files import StateError
from whence.pipeline.sinks import Sink

_PORTION = 1 << 16


class JsonLines:
    """The lines of changes: those of the output relations, deletions first."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._outputs = [program.relations[name] for name in output_names(program)]
        self._types = program.types

    def lines(self, epoch: int, changes: Changes) -> Iterator[bytes]:
        changes = as_often(self._program, changes)
        return format_changes(epoch, changes.deleted, changes.inserted, self._outputs, self._types)


class JsonLinesSink(JsonLines, Sink):
    """Appends to a file. Lines of the same epoch or of later ones, which a crash may have left there, are taken out."""

    def __init__(self, path: str | Path, program: Program) -> None:
        super().__init__(program)
        self.path = Path(path)
        self._last: int | None = None

    def write(self, epoch: int, changes: Changes) -> None:
        with reported_writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("r+b" if self.path.exists() else "w+b") as file:
                if self._last is None or epoch <= self._last:
                    self._take_out(file, epoch)
                file.seek(0, os.SEEK_END)
                file.writelines(self.lines(epoch, changes))
                file.flush()
                os.fsync(file.fileno())
        self._last = epoch

    def _take_out(self, file: BinaryIO, epoch: int) -> None:
        before = (end for end, line in _backwards(file) if line.endswith(b"\n") and self._epoch(line) < epoch)
        file.truncate(next(before, 0))

    def _epoch(self, line: bytes) -> int:
        try:
            record = read_json(line.decode())
        except ValueError:
            record = None
        epoch = record.get("epoch") if isinstance(record, dict) else None
        if not isinstance(epoch, int):
            hint = "name another file for the changes"
            raise StateError([f"{self.path} holds something else than changes"], hints=[hint])
        return epoch


def _backwards(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of a file from the last to the first, each with where it ends."""
    start = end = file.seek(0, os.SEEK_END)
    rest = b""
    while start or rest:
        at = rest.rfind(b"\n", 0, -1)
        if at >= 0 or not start:
            line, rest = rest[at + 1 :], rest[: at + 1]
            yield end, line
            end -= len(line)
        else:
            size = min(_PORTION, start)
            start -= size
            file.seek(start)
            rest = file.read(size) + rest
