"""The base tuples of a program with their times, without its views: what a restart needs to know."""

from __future__ import annotations

from collections.abc import Iterable

from whence.engine.windows import Windows
from whence.io.changes import Update
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.reader import Reader


class Base:
    """Follows the updates of epochs as a session does, but derives nothing."""

    def __init__(self, program: Program) -> None:
        self.rows: dict[str, set[Tuple]] = {name: set() for name in program.base_relations}
        self.windows = Windows(program.relations)

    @classmethod
    def of(cls, session: Reader) -> Base:
        """What the session holds now; it shares the session's windows."""
        base = cls(session.program)
        base.rows = session.base()
        base.windows = session.windows
        return base

    def apply(self, updates: Iterable[Update], now: float | None) -> None:
        for name, rows in self.windows.collect(updates, now).items():
            there = self.rows[name]
            there.update(row for row, wanted in rows.items() if wanted)
            there.difference_update(row for row, wanted in rows.items() if not wanted)

    def restore(self, relation: str, rows: Iterable[tuple[Tuple, float]]) -> None:
        """Rows in the order in which they came, with when. The clock has to be set before."""
        for row, time in rows:
            self.rows[relation].add(row)
            self.windows.insert(relation, row, time)
