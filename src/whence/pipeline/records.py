"""Update records in, epochs out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Literal, NamedTuple

from whence.io.changes import Epoch, Position, Update
from whence.io.updates import DeadLetter, Record, Schema, parse_record
from whence.pipeline.epochs import EpochCutter

# What becomes of a line that cannot be applied; the place is the one right after it.
Bury = Callable[[DeadLetter, Position], None]


class _Unread(Enum):
    UNREAD = "unread"


UNREAD: Literal[_Unread.UNREAD] = _Unread.UNREAD

# What a line says, None if it is blank, or that nobody has read it yet.
Parsed = Record | None | Literal[_Unread.UNREAD]


class NumberedLine(NamedTuple):
    number: int
    text: bytes
    record: Parsed = UNREAD


def cut_epochs(
    lines: Iterable[NumberedLine | None], cutter: EpochCutter, schema: Schema, bury: Bury
) -> Iterator[Epoch]:
    """The epochs of numbered lines. None ends an epoch, and so does the end of the lines."""
    origins: list[tuple[int, bytes]] = []
    for line in lines:
        if line is None:
            ended = cutter.cut()
        else:
            record = parse_record(line.text, line.number, schema) if line.record is UNREAD else line.record
            if isinstance(record, DeadLetter):
                bury(record, cutter.place())
                continue
            if isinstance(record, Update):
                origins.append((line.number, line.text))
            ended = None if record is None else cutter.take(record)
        if ended is not None:
            yield refusable(ended, origins, bury)
            origins = []
    ended = cutter.cut()
    if ended is not None:
        yield refusable(ended, origins, bury)


def refusable(epoch: Epoch, origins: Sequence[tuple[int, bytes]], bury: Bury) -> Epoch:
    """The epoch, given the number and text of the line of each update: those that a table cannot take are dead letters."""

    def refuse(at: int, reason: str) -> None:
        number, line = origins[at]
        bury(DeadLetter(number, reason, line.rstrip(b"\r\n").decode(errors="backslashreplace")), epoch.source)

    return replace(epoch, refuse=refuse)
