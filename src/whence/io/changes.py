"""The words for what changes: updates go in, an epoch takes them together, changes come out, and positions say how far it got.

Everything above speaks in these: sessions, the pipeline, sinks, whatever brings updates or takes changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypedDict

from whence.html import SHOWN_ROWS, shown_block, shown_note, shown_table, shown_title, value_text
from whence.io.json_text import Json
from whence.lang.types import Tuple, Value


class Update(NamedTuple):
    """`+` puts a tuple into a base relation, `-` takes it out. `time` is when, for windows and lifetimes."""

    op: str
    relation: str
    tuple: Tuple
    time: float | None = None


@dataclass(frozen=True)
class Changes:
    """The net changes of one epoch, by relation, and how many updates changed nothing."""

    inserted: Mapping[str, list[Tuple]] = field(default_factory=dict)
    deleted: Mapping[str, list[Tuple]] = field(default_factory=dict)
    ignored: int = 0

    def __iter__(self) -> Iterator[Update]:
        for name, rows in self.deleted.items():
            yield from (Update("-", name, row) for row in rows)
        for name, rows in self.inserted.items():
            yield from (Update("+", name, row) for row in rows)

    def __len__(self) -> int:
        return sum(len(rows) for side in (self.inserted, self.deleted) for rows in side.values())

    def _repr_html_(self) -> str:
        shown = list(islice(self, SHOWN_ROWS))
        rows = [(each.op, f"{each.relation}({', '.join(map(_written, each.tuple))})") for each in shown]
        left = len(self) - len(shown)
        return shown_block(
            shown_title(f"{len(self):,} changes" if len(self) else "nothing changes"),
            shown_table(("", ""), rows, classes=["in" if each.op == "+" else "out" for each in shown]) if rows else "",
            shown_note(f"{left:,} more") if left else "",
        )


def _written(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else value_text(value)


class Position(TypedDict, total=False):
    """Where in its source an epoch ends: a JSON object with what its source counts. A source without places leaves it empty."""

    file: str
    line: int  # of the file, how many bytes are before its end, and a digest of the last of them
    bytes: int
    digest: str
    query: str | None  # of Spark, its micro-batch, how many rows of it were taken, and whether that was all
    batch: int
    rows: int
    whole: bool
    seq: int  # of the changes that a database has captured
    offsets: Mapping[str, Mapping[str, int]]  # of the next message, by topic and partition
    messages: int  # of a broker, how many have come, and under which name it keeps them
    session: str
    seen: Sequence[Json]  # the rows of a page at the last look, and how many looks there were
    looks: int
    sources: Mapping[str, Position]  # of several sources, by their names
    cut: bool  # no commit ended the epoch


@dataclass(frozen=True, slots=True)
class Epoch:
    """Updates that are applied at once, in the order of their records; the clock moves to `now` if it is later.

    `refuse` is told the place of an update among them that a table cannot take, and why.
    """

    updates: Sequence[Update]
    now: float | None = None
    source: Position = field(default_factory=Position)
    refuse: Callable[[int, str], None] | None = field(default=None, compare=False, repr=False)
