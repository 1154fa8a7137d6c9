"""From lines to files that Spark reads: whole epochs, in order, with where they came from.

A file begins with the place of its first line. It ends where an epoch ends, so that a micro-batch never holds part of one.
While Spark is busy, epochs gather in one file; when it is idle, an epoch goes out at once. If Spark falls behind, reading
waits.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Condition

from whence.io.changes import Position, Update
from whence.io.updates import Commit, Schema, parse_record
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.files import PARTIAL, write_file
from whence.pipeline.lines import Lines, Tail
from whence.pipeline.records import UNREAD, NumberedLine, Parsed

_LARGE = 4 << 20
_AHEAD = 8  # files that Spark has not taken yet
_WAIT = 0.1


_Line = tuple[bytes, Parsed]


@dataclass(frozen=True, slots=True)
class _Begin:
    """The place before a line, and the last that was read before it."""

    number: int
    source: Position
    tail: bytes = b""

    @classmethod
    def of(cls, line: bytes, lines: Lines) -> _Begin:
        """Before the line that came last."""
        source = lines.place()
        if not source:
            return cls(lines.number - 1, source)
        digest = Tail(lines.before).digest()
        before: Position = {
            **source,
            "line": lines.number - 1,
            "bytes": lines.offset - len(line) - 1,
            "digest": digest,
        }
        return cls(lines.number - 1, before, lines.before)

    def header(self) -> bytes:
        tail = b64encode(self.tail).decode()
        return json.dumps({"line": self.number, "source": dict(self.source), "tail": tail}).encode()


class Spool:
    """The files between a reader and Spark. A reader fills it in one thread, Spark's batches are taken in another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(f"*{PARTIAL}"):
            path.unlink()
        self._next = 1 + max((int(path.stem) for path in self._files()), default=0)
        self._changed = Condition()
        self._ahead: set[str] = set()
        self._begin = _Begin(0, {})
        self._lines: list[_Line] = []
        self._records: dict[str, list[Parsed]] = {}
        self._size = 0

    def end(self) -> Position | None:
        """The place after the last line that is here, if there is one."""
        newest = max(self._files(), default=None)
        if newest is None:
            return None
        place = FilePlace(newest.read_bytes().split(b"\n")[:-1])
        for _ in place:
            pass
        return place.source

    def fill(self, lines: Lines, ends: EpochEnds, stopped: Callable[[], bool]) -> None:
        """Takes all lines, until there are no more or the query has ended."""
        begin = self._begin
        gathered: list[_Line] = []
        for line in lines:
            is_end = line is None
            if line is not None:
                begin = begin if gathered else _Begin.of(line, lines)
                is_end, record = ends.read(lines.number, line)
                gathered.append((line, record))
            if is_end:
                self._add(begin, gathered, cut=line is None)
                gathered = []
                self._hold_back(stopped)
        self._add(begin, gathered, cut=True)

    def records(self, name: str) -> Sequence[Parsed]:
        """What the lines of a file say, as far as this process has read them to find where epochs end."""
        return self._records.pop(name, ())

    def taken(self, names: Collection[str]) -> None:
        """Spark has brought these files: those before them are done with, and more may come."""
        first = min(names, default="")
        for path in self._files():
            if path.name < first:
                path.unlink()
        with self._changed:
            self._ahead.difference_update(names)
            if not self._ahead:
                self._write()
            self._changed.notify_all()

    def _files(self) -> list[Path]:
        return [path for path in self.folder.glob("*.jsonl") if path.stem.isdecimal()]

    def _add(self, begin: _Begin, lines: list[_Line], *, cut: bool) -> None:
        """Lines with whole epochs. If the last of them was cut, its file has to end there."""
        with self._changed:
            if not self._lines:
                self._begin = begin
            self._lines += lines
            self._size += sum(len(line) for line, _ in lines)
            if cut or not self._ahead or self._size >= _LARGE:
                self._write()

    def _write(self) -> None:
        if self._lines:
            name = f"{self._next:012d}.jsonl"
            self._records[name] = [record for _, record in self._lines]
            write_file(self.folder / name, b"\n".join([self._begin.header(), *(line for line, _ in self._lines), b""]))
            self._next += 1
            self._ahead.add(name)
            self._lines, self._size = [], 0

    def _hold_back(self, stopped: Callable[[], bool]) -> None:
        with self._changed:
            while len(self._ahead) >= _AHEAD and not stopped():
                self._changed.wait(_WAIT)


class FilePlace:
    """The lines of a file of the spool, with their numbers; `source` is the place after the one that came last.

    `records` is what the lines say, where that is known.
    """

    def __init__(self, lines: list[bytes], records: Sequence[Parsed] = ()) -> None:
        header = json.loads(lines[0])
        self._lines = lines[1:]
        self._records = records if len(records) == len(self._lines) else [UNREAD] * len(self._lines)
        self._begin: Position = header["source"]
        self._offset: int = header["source"].get("bytes", 0)
        self._number: int = header["line"]
        self._tail = Tail(b64decode(header.get("tail", "")))

    def __iter__(self) -> Iterator[NumberedLine]:
        for line, record in zip(self._lines, self._records, strict=True):
            self._number += 1
            self._offset += len(line) + 1
            self._tail.add(line)
            yield NumberedLine(self._number, line, record)

    @property
    def source(self) -> Position:
        """Empty for a stream, in which there are no places."""
        if not self._begin:
            return {}
        return {**self._begin, "line": self._number, "bytes": self._offset, "digest": self._tail.digest()}


class EpochEnds:
    """Says of lines, one after the other, whether an epoch surely ends there. What had to be read for it is not read again."""

    def __init__(self, schema: Schema, size: int | None) -> None:
        self._schema = schema
        self._cutter = None if size is None else EpochCutter(Position, size)

    def read(self, number: int, line: bytes) -> tuple[bool, Parsed]:
        if self._cutter is None and b"commit" not in line:
            return False, UNREAD
        record = parse_record(line, number, self._schema)
        if self._cutter is None:
            return isinstance(record, Commit), record
        if not isinstance(record, Update | Commit):
            return False, record
        return self._cutter.take(record) is not None or self._cutter.is_empty, record
