"""From lines to files that Spark reads: whole epochs, in order, with where they came from.

A file begins with the place of its first line. It ends where an epoch ends, so that a micro-batch never holds part of one.
While Spark is busy, epochs gather in one file; when it is idle, an epoch goes out at once. If Spark falls behind, reading
waits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Condition

from whence.io.changes import Position, Update
from whence.io.updates import Commit, Schema, parse_record
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.files import PARTIAL, write_file
from whence.pipeline.lines import Lines

PATTERN = "*.jsonl"
_LARGE = 4 << 20
_AHEAD = 8  # files that Spark has not taken yet
_WAIT = 0.1


@dataclass(frozen=True, slots=True)
class _Begin:
    """The place before a line."""

    number: int
    source: Position

    @classmethod
    def of(cls, line: bytes, lines: Lines) -> _Begin:
        """Before the line that came last."""
        source = lines.place()
        before = {**source, "line": lines.number - 1, "bytes": lines.offset - len(line) - 1} if source else source
        return cls(lines.number - 1, before)

    def header(self) -> bytes:
        return json.dumps({"line": self.number, "source": dict(self.source)}).encode()


class Spool:
    """The files between a reader and Spark. A reader fills it in one thread, Spark's batches are taken in another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(f"*{PARTIAL}"):
            path.unlink()
        self._next = 1 + max((int(path.stem) for path in folder.glob(PATTERN)), default=0)
        self._changed = Condition()
        self._ahead: set[str] = set()
        self._begin = _Begin(0, {})
        self._lines: list[bytes] = []
        self._size = 0

    def end(self) -> Position | None:
        """The place after the last line that is here, if there is one."""
        newest = max(self.folder.glob(PATTERN), default=None)
        if newest is None:
            return None
        place = FilePlace(newest.read_bytes().split(b"\n")[:-1])
        for _ in place:
            pass
        return place.source

    def fill(self, lines: Lines, ends_epoch: Callable[[int, bytes], bool], stopped: Callable[[], bool]) -> None:
        """Takes all lines, until there are no more or the query has ended."""
        begin = self._begin
        gathered: list[bytes] = []
        for line in lines:
            if line is not None:
                begin = begin if gathered else _Begin.of(line, lines)
                gathered.append(line)
            if line is None or ends_epoch(lines.number, line):
                self._add(begin, gathered, cut=line is None)
                gathered = []
                self._hold_back(stopped)
        self._add(begin, gathered, cut=True)

    def taken(self, names: Collection[str]) -> None:
        """Spark has brought these files: those before them are done with, and more may come."""
        first = min(names, default="")
        for path in self.folder.glob(PATTERN):
            if path.name < first:
                path.unlink()
        with self._changed:
            self._ahead.difference_update(names)
            if not self._ahead:
                self._write()
            self._changed.notify_all()

    def _add(self, begin: _Begin, lines: list[bytes], *, cut: bool) -> None:
        """Lines with whole epochs. If the last of them was cut, its file has to end there."""
        with self._changed:
            if not self._lines:
                self._begin = begin
            self._lines += lines
            self._size += sum(map(len, lines))
            if cut or not self._ahead or self._size >= _LARGE:
                self._write()

    def _write(self) -> None:
        if self._lines:
            name = f"{self._next:012d}.jsonl"
            write_file(self.folder / name, b"\n".join([self._begin.header(), *self._lines, b""]))
            self._next += 1
            self._ahead.add(name)
            self._lines, self._size = [], 0

    def _hold_back(self, stopped: Callable[[], bool]) -> None:
        with self._changed:
            while len(self._ahead) >= _AHEAD and not stopped():
                self._changed.wait(_WAIT)


class FilePlace:
    """The lines of a file of the spool, with their numbers; `source` is the place after the one that came last."""

    def __init__(self, lines: list[bytes]) -> None:
        header = json.loads(lines[0])
        self._lines = lines[1:]
        self._begin: Position = header["source"]
        self._offset: int = header["source"].get("bytes", 0)
        self._number: int = header["line"]

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for line in self._lines:
            self._number += 1
            self._offset += len(line) + 1
            yield self._number, line

    @property
    def source(self) -> Position:
        """Empty for a stream, in which there are no places."""
        return {**self._begin, "line": self._number, "bytes": self._offset} if self._begin else {}


def epoch_ends(schema: Schema, size: int | None) -> Callable[[int, bytes], bool]:
    """Says of lines, one after the other, whether an epoch surely ends there."""
    if size is None:
        return lambda number, line: b"commit" in line and isinstance(parse_record(line, number, schema), Commit)
    cutter = EpochCutter(Position, size)

    def ends(number: int, line: bytes) -> bool:
        record = parse_record(line, number, schema)
        return isinstance(record, Update | Commit) and (cutter.take(record) is not None or cutter.is_empty)

    return ends
