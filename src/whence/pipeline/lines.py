"""Lines of update records from a file, a folder of files or a stream, and the place of each, to go on from later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path

from whence.io import FactError, updates
from whence.io.changes import Position


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
        begun = begin.get("file", "")
        if self.file == begun or (self.is_folder and begun.startswith(f"{self.file}/")):
            self.file = begun
            self.number, self.offset = begin["line"], begin["bytes"]

    def __iter__(self) -> Iterator[bytes | None]:
        if not self.is_folder:
            yield from self._read(self.path, follow=self.follow)
            return
        while not self.stopped():
            for path in sorted(
                each for each in self.path.iterdir() if each.is_file() and not each.name.startswith(".")
            ):
                name = str(path.resolve())
                if name < self.file:
                    continue
                if name > self.file:
                    self.file, self.number, self.offset = name, 0, 0
                yield from self._read(path, follow=False)
                yield None
            if not self.follow:
                return
            time.sleep(updates.POLL)

    def numbered(self) -> Iterator[tuple[int, bytes] | None]:
        return (None if line is None else (self.number, line) for line in self)

    @property
    def name(self) -> str:
        """What messages call the file of the line that came last."""
        return str(self.path / Path(self.file).name if self.is_folder else self.path)

    def place(self) -> Position:
        return {"file": self.file, "line": self.number, "bytes": self.offset}

    def _read(self, path: Path, *, follow: bool) -> Iterator[bytes | None]:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            # A last line without an end was counted as if it had one.
            if size < self.offset - 1:
                problem = (
                    f"{path} became shorter since it was last read: {size} bytes, of which {self.offset} were read"
                )
                raise FactError([problem], hints=["append to it, or start again with another file"])
            stream.seek(min(self.offset, size))
            yield from self._counted(stream, str(path), follow=follow)

    def _counted(self, stream: BufferedIOBase, name: str, *, follow: bool) -> Iterator[bytes | None]:
        for line in updates.read_lines(stream, name, follow=follow, stopped=self.stopped):
            if line is not None:
                self.number += 1
                self.offset += len(line) + 1
            yield line


class StreamLines(Lines):
    """The lines of the standard input: they come once, so there is no place to go on from."""

    def __init__(self, stream: BufferedIOBase, *, stopped: Callable[[], bool]) -> None:
        super().__init__(Path("<stdin>"), {}, stopped=stopped)
        self._stream = stream

    def __iter__(self) -> Iterator[bytes | None]:
        return self._counted(self._stream, "<stdin>", follow=False)

    def place(self) -> Position:
        return {}
