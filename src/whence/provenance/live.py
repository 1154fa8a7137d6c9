"""The state of a session, as proofs ask for it: its tables, and what is known of a row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from whence.backends.local.arrays import Ids
from whence.engine.protocol import EXTERNAL
from whence.io.changes import Changes
from whence.lang.types import Tuple
from whence.lookup import LiveTable
from whence.provenance.graph import Fact
from whence.reference.tables import TupleSet
from whence.session import Ranking, Session


class LiveState:
    """All relations of a session. What it gives is true until the session's next epoch.

    With `suppose` it is what would be after some changes, whose outcome a trial has told.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tables: dict[str, TupleSet] = {}
        self._live: dict[str, LiveTable] = {}
        self._external: Mapping[Fact, bool] = {}
        self._rankings: dict[str, Ranking] = {}
        self._base = frozenset(session.program.base_relations)
        for name in session.program.relations.keys() & session.backend.tables.keys():
            self.tables[name] = self._live[name] = LiveTable(session.backend, name)

    def holds(self, relation: str, row: Tuple) -> bool:
        """Raises ValueError if there can be no such row."""
        table = self._live.get(relation)
        if table is None:
            raise ValueError(f"the session holds no relation {relation}; it holds {', '.join(sorted(self._live))}")
        if len(row) != table.table.arity:
            raise ValueError(f"{relation} has {table.table.arity} columns, not {len(row)}")
        return table.has(row)

    def is_external(self, relation: str, row: Tuple) -> bool:
        if relation not in self._base:
            return False
        supposed = self._external.get(Fact(relation, row))
        if supposed is not None:
            return supposed
        table = self._live[relation]
        found = table.row(row)
        return found >= 0 and bool(table.table.flags(_one(found))[0] & EXTERNAL)

    def ranking(self, fact: Fact) -> Ranking:
        found = self._rankings.get(fact.relation)
        if found is None:
            found = self._rankings[fact.relation] = self.session.ranking(fact.relation)
        return found

    def rank(self, fact: Fact) -> int:
        table = self._live[fact.relation]
        return int(table.table.ranks(_one(table.row(fact.tuple)))[0])

    def suppose(self, outcome: Changes, external: Mapping[Fact, bool]) -> None:
        """Answers as if these changes had been; `external` are the base facts that came or went for it."""
        self._external = external
        for name, table in self._live.items():
            table.added = frozenset(outcome.inserted.get(name, ()))
            table.gone = frozenset(outcome.deleted.get(name, ()))

    def sample(self, relation: str, most: int) -> list[Tuple]:
        """Some rows of a relation."""
        return self._live[relation].some(most) if relation in self._live else []

    @property
    def is_supposed(self) -> bool:
        return bool(self._external)

    def forget(self) -> None:
        """Forgets where rows are: they may have moved."""
        for table in self._live.values():
            table.numbers.clear()


def _one(row: int) -> Ids:
    return np.array([row], dtype=np.int32)
