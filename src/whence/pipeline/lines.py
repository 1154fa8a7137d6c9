"""Lines of update records from a file, a folder of files or a stream, and the place of each, to go on from later."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from io import BufferedIOBase
from pathlib import Path

from whence.io import FactError, updates
from whence.io.changes import Position
from whence.pipeline.records import NumberedLine


class Lines:
    """The lines from `begin` on, and None where an epoch ends because nothing more has come, or because its file ends.

    `file`, `number` and `offset` say where the line was that came last. A file is read to its end, the files of a folder by
    their names; to `follow` is to wait for more. Files appear in a folder complete.
    """

    def __init__(
        self, path: Path, begin: Position, *, follow: bool = False, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self.path = path
        self.follow = follow
        self.stopped = stopped
        self.is_folder = path.is_dir()
        self.file = str(path.resolve())
        self.number = self.offset = 0
        self.tail = Tail()
        self.before = b""  # what the tail was before the line that came last
        self._digest: str | None = None  # of what was read before, until it has been found again
        begun = begin.get("file", "")
        if self.file == begun or (self.is_folder and begun.startswith(f"{self.file}/")):
            self.file = begun
            self.number, self.offset, self._digest = begin["line"], begin["bytes"], begin.get("digest")

    def __iter__(self) -> Iterator[bytes | None]:
        if not self.is_folder:
            yield from self._read(self.path, follow=self.follow)
            return
        while not self.stopped():
            with reported_reading(self.path):
                listed = sorted(
                    each for each in self.path.iterdir() if each.is_file() and not each.name.startswith(".")
                )
            for path in listed:
                name = str(path.resolve())
                if name < self.file:
                    continue
                if name > self.file:
                    self.file, self.number, self.offset, self.tail, self._digest = name, 0, 0, Tail(), None
                yield from self._read(path, follow=False)
                yield None
            if not self.follow:
                return
            time.sleep(updates.POLL)

    def close(self) -> None:
        """Files are closed when they have been read."""

    def numbered(self) -> Iterator[NumberedLine | None]:
        return (None if line is None else NumberedLine(self.number, line) for line in self)

    @property
    def name(self) -> str:
        """What messages call the file of the line that came last."""
        return str(self.path / Path(self.file).name if self.is_folder else self.path)

    def place(self) -> Position:
        return {"file": self.file, "line": self.number, "bytes": self.offset, "digest": self.tail.digest()}

    def _read(self, path: Path, *, follow: bool) -> Iterator[bytes | None]:
        with reported_reading(path):
            stream = path.open("rb")
        with stream:
            size = stream.seek(0, 2)
            # A last line without an end was counted as if it had one.
            if size < self.offset - 1:
                problem = (
                    f"{path} became shorter since it was last read: {size} bytes, of which {self.offset} were read"
                )
                raise FactError([problem], hints=["append to it, or start again with another file"])
            self.tail = Tail.before(stream, self.offset)
            if self._digest is not None and self.tail.digest() != self._digest:
                problem = f"{path} is not what was read before: its content before byte {self.offset} has changed"
                raise FactError([problem], hints=["append to it, or start again with another file"])
            self._digest = None
            stream.seek(min(self.offset, size))
            yield from self._counted(stream, str(path), follow=follow)

    def _counted(self, stream: BufferedIOBase, name: str, *, follow: bool) -> Iterator[bytes | None]:
        for line in updates.read_lines(stream, name, follow=follow, stopped=self.stopped):
            if line is not None:
                self.number += 1
                self.offset += len(line) + 1
                self.before = self.tail.data
                self.tail.add(line)
            yield line


@contextmanager
def reported_reading(path: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FactError([f"cannot read {path}: {(error.strerror or str(error)).lower()}"]) from None


class Tail:
    """The last of what has been read of a file: its digest tells whether the file is still the one that was read."""

    _SIZE = 4096

    def __init__(self, read: bytes = b"") -> None:
        self.data = read[-self._SIZE :]

    @classmethod
    def before(cls, stream: BufferedIOBase, offset: int) -> Tail:
        start = max(0, offset - cls._SIZE)
        stream.seek(start)
        found = stream.read(offset - start)
        # A last line without an end was counted as if it had one.
        return cls(found + b"\n" if len(found) < offset - start else found)

    def add(self, line: bytes) -> None:
        self.data = (self.data + line + b"\n")[-self._SIZE :]

    def digest(self) -> str:
        return blake2b(self.data, digest_size=8).hexdigest()


class StreamLines(Lines):
    """The lines of the standard input, a pipe or a socket: they come once, so there is no place to go on from."""

    def __init__(self, stream: BufferedIOBase, name: str = "<stdin>", *, stopped: Callable[[], bool]) -> None:
        super().__init__(Path(name), {}, stopped=stopped)
        self._stream = stream

    def __iter__(self) -> Iterator[bytes | None]:
        return self._counted(self._stream, str(self.path), follow=False)

    def place(self) -> Position:
        return {}

    def close(self) -> None:
        if self._stream is not sys.stdin.buffer:
            self._stream.close()


def is_pipe(path: Path) -> bool:
    """Whether its lines come once: a named pipe, what a shell makes of `<(…)`, a terminal, a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def open_pipe(path: Path, *, stopped: Callable[[], bool]) -> StreamLines:
    """Waits for somebody to write. Raises FactError."""
    with reported_reading(path):
        if not path.is_socket():
            return StreamLines(path.open("rb"), str(path), stopped=stopped)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            return StreamLines(connection.makefile("rb"), str(path), stopped=stopped)


def open_socket(host: str, port: int, *, stopped: Callable[[], bool]) -> StreamLines:
    """The lines that a server sends. Raises FactError."""
    name = f"{host}:{port}"
    with reported_reading(name), socket.create_connection((host, port)) as connection:
        return StreamLines(connection.makefile("rb"), name, stopped=stopped)
