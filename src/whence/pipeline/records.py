"""Update records in, epochs out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from whence.io.changes import Epoch, Position
from whence.io.updates import DeadLetter, Schema, parse_record
from whence.pipeline.epochs import EpochCutter

# What becomes of a line that cannot be applied; the place is the one right after it.
Bury = Callable[[DeadLetter, Position], None]


def cut_epochs(
    lines: Iterable[tuple[int, bytes] | None], cutter: EpochCutter, schema: Schema, bury: Callable[[DeadLetter], None]
) -> Iterator[Epoch]:
    """The epochs of numbered lines. None ends an epoch, and so does the end of the lines."""
    for each in lines:
        if each is None:
            ended = cutter.cut()
        else:
            number, line = each
            record = parse_record(line, number, schema)
            if isinstance(record, DeadLetter):
                bury(record)
                continue
            ended = None if record is None else cutter.take(record)
        if ended is not None:
            yield ended
    ended = cutter.cut()
    if ended is not None:
        yield ended
