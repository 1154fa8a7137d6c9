"""Update records in, epochs out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Literal, NamedTuple

from whence.io.changes import Epoch, Position
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
    lines: Iterable[NumberedLine | None], cutter: EpochCutter, schema: Schema, bury: Callable[[DeadLetter], None]
) -> Iterator[Epoch]:
    """The epochs of numbered lines. None ends an epoch, and so does the end of the lines."""
    for line in lines:
        if line is None:
            ended = cutter.cut()
        else:
            record = parse_record(line.text, line.number, schema) if line.record is UNREAD else line.record
            if isinstance(record, DeadLetter):
                bury(record)
                continue
            ended = None if record is None else cutter.take(record)
        if ended is not None:
            yield ended
    ended = cutter.cut()
    if ended is not None:
        yield ended
