"""Where what a run makes goes: changes to files, pipes and sinks, records that cannot be applied to a file of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

import typer

import whence
from whence.io import FactError
from whence.io import updates as records
from whence.io.changes import Position
from whence.lang.program import Program
from whence.pipeline.records import Bury
from whence.pipeline.sinks import Sink
from whence.pipeline.sinks.json_lines import JsonLines, JsonLinesSink
from whence.pipeline.sinks.named import NamedSink
from whence.pipeline.sources.named import NamedSource, NamedSources

STDOUT = Path("-")


def sink_argument(text: str) -> NamedSink:
    try:
        return NamedSink(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


class _Stream(JsonLines):
    """Changes to a file that begins with this run, or to a pipe."""

    def __init__(self, path: Path, program: Program) -> None:
        super().__init__(program)
        self.path = path
        self._file: BinaryIO | None = None

    def write(self, epoch: int, changes: whence.Changes) -> None:
        with records.reported_writing(self.path):
            if self._file is None:
                self._file = self._open()
            self._file.writelines(self.lines(epoch, changes))
            self._file.flush()

    def close(self) -> None:
        if self._file is not None and self.path != STDOUT:
            self._file.close()

    def _open(self) -> BinaryIO:
        if self.path == STDOUT:
            return sys.stdout.buffer
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.path.open("wb")


@contextmanager
def changes_to(path: Path, program: Program, *, durable: bool) -> Iterator[Sink]:
    is_pipe = path == STDOUT or (path.exists() and not path.is_file())
    if durable and not is_pipe:
        yield JsonLinesSink(path, program)
    else:
        with closing(_Stream(path, program)) as stream:
            yield stream


def opened(named: Sequence[NamedSink], program: Program) -> list[Sink]:
    try:
        return [each.opened(program) for each in named]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--sink") from None


def refusing(updates: NamedSource | NamedSources) -> Bury:
    def refuse(letter: records.DeadLetter, place: Position) -> NoReturn:
        where = f"{updates.place_of(place)}:{letter.line}"
        raise FactError([f"{where}: {letter.reason}"], hints=["without --strict the run goes on"])

    return refuse


def burying(updates: NamedSource | NamedSources, letters: records.DeadLetterFile, *, durable: bool) -> Bury:
    """The name of a line's file is told if there are several, or may be: the next run on a state may read another."""

    def bury(letter: records.DeadLetter, place: Position) -> None:
        named = "file" in place and (durable or updates.path is None or updates.is_folder)
        letters.add(letter, **({"file": updates.place_of(place)} if named else {}))

    return bury


@contextmanager
def quiet_end() -> Iterator[None]:
    """A reader that wants no more changes is not an error."""
    try:
        yield
    except BrokenPipeError:
        # What is left in the buffer would fail again when Python flushes it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
