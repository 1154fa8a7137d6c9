"""The state of a session, as proofs ask for it: look up rows by some of their columns, and what is known of a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

import numpy as np

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.backend import LocalBackend
from whence.engine.protocol import EXTERNAL
from whence.io.changes import Changes
from whence.lang.types import Tuple, Value
from whence.provenance.graph import Fact
from whence.reference.tables import TupleSet
from whence.session import Ranking, Session


class LiveTable(TupleSet):
    """A relation of a session for the reference's solver, which only looks rows up. Indexes are the backend's own."""

    def __init__(self, backend: LocalBackend, relation: str) -> None:
        super().__init__()
        self.backend = backend
        self.name = relation
        self.kinds = backend.kinds[relation]
        self.table = backend.table(relation)
        self.columns = tuple(range(self.table.arity))
        self.numbers: dict[Tuple, int] = {}
        self.added: Set[Tuple] = frozenset()
        self.gone: Set[Tuple] = frozenset()

    def __len__(self) -> int:
        return len(self.table)

    def lookup(self, columns: tuple[int, ...], key: tuple[Value, ...]) -> Collection[Tuple]:
        if len(columns) == self.table.arity:
            return (key,) if self.has(key) else ()
        there = self._there(columns, key)
        if not self.added and not self.gone:
            return there
        supposed = [row for row in self.added if tuple([row[column] for column in columns]) == key]
        return [*(row for row in there if row not in self.gone), *supposed]

    def has(self, row: Tuple) -> bool:
        """Whether the row is there, or would be."""
        return row in self.added or (row not in self.gone and self.row(row) >= 0)

    def some(self, most: int) -> list[Tuple]:
        """Some of the rows."""
        rows = self.backend.decode(self.name, self.table.ids()[:most])
        return [*self.added, *(row for row in rows if row not in self.gone)]

    def _there(self, columns: tuple[int, ...], key: tuple[Value, ...]) -> Collection[Tuple]:
        words = self._words(columns, key)
        if words is None:
            return ()
        if not columns:
            return self.backend.decode(self.name, self.table.ids())
        return self.backend.decode(self.name, self.table.index(columns).probe(words, 0)[1])

    def row(self, row: Tuple) -> int:
        """The row's number, -1 if it is not there, whatever is supposed."""
        number = self.numbers.get(row)
        if number is None:
            words = self._words(self.columns, row)
            number = self.numbers[row] = -1 if words is None else int(self.table.find(words)[0])
        return number

    def _words(self, columns: tuple[int, ...], key: tuple[Value, ...]) -> Lines | None:
        """The key encoded; None if it holds a value that no row holds."""
        words: Lines = np.empty((1, len(columns)), dtype=np.int64)
        dictionary = self.backend.dictionary
        for at, (column, value) in enumerate(zip(columns, key, strict=True)):
            word = dictionary.find(value, self.kinds[column])
            if word is None:
                return None
            words[0, at] = word
        return words


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
