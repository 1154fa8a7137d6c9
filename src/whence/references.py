"""Foreign keys: what rows refer to is there at the end of every epoch.

Within an epoch the order does not matter. A row that would refer to nothing is refused, and so is the deletion of a row that
others, which were there before and stay, refer to. What is refused may leave others without what they refer to, or with a
key that is taken: all is settled again without it, until nothing else is refused. Rows that are nil in a column refer to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from whence.backends.local.backend import LocalBackend
from whence.constraints import Broken, Constraints, values_at
from whence.io.changes import Update
from whence.lang.tables import AreThere, Reference, copies_there
from whence.lang.types import Tuple, Value

_Values = tuple[Value, ...]


@dataclass
class _Ends:
    """The rows of a table that an epoch brings, and those that it takes away, with the places of the updates."""

    come: dict[Tuple, list[int]] = field(default_factory=dict)
    gone: dict[Tuple, list[int]] = field(default_factory=dict)


class References:
    """Looks at the references of all tables, given the updates of an epoch that nothing else refuses."""

    def __init__(self, constraints: Constraints, backend: LocalBackend, are_there: AreThere) -> None:
        self._constraints = constraints
        self._backend = backend
        self._are_there = are_there
        referring = {name for name, _ in constraints.references}
        self._tables = sorted(referring | {each.table for _, each in constraints.references})

    def broken(self, updates: Mapping[int, Update]) -> dict[int, Broken]:
        """The updates that are refused now. Others may be, once these are left out."""
        ends = {name: self._ends(name, updates) for name in self._tables}
        found: dict[int, Broken] = {}
        for name, each in self._constraints.references:
            self._refuse_deletions(name, each, ends, found)
        if found:  # what is kept may be what new rows refer to
            return found
        for name, each in self._constraints.references:
            self._refuse_insertions(name, each, ends, found)
        return found

    def _refuse_deletions(self, name: str, each: Reference, ends: dict[str, _Ends], found: dict[int, Broken]) -> None:
        parents, children = ends[each.table], ends[name]
        back = {values_at(row, each.keys) for row in parents.come}
        lost = {
            keys: row for row in parents.gone if None not in (keys := values_at(row, each.keys)) and keys not in back
        }
        for row in self._holders(name, each.columns, lost):
            if row not in children.gone:
                parent = lost[values_at(row, each.columns)]
                for at in parents.gone[parent]:
                    found.setdefault(at, Broken(at, each.table, parent, each.text, referring=(name, row)))

    def _refuse_insertions(self, name: str, each: Reference, ends: dict[str, _Ends], found: dict[int, Broken]) -> None:
        parents, children = ends[each.table], ends[name]
        asked = {row: keys for row in children.come if None not in (keys := values_at(row, each.columns))}
        held = {
            values_at(row, each.keys)
            for row in self._holders(each.table, each.keys, asked.values())
            if row not in parents.gone
        }
        held |= {values_at(row, each.keys) for row in parents.come}
        for row, keys in asked.items():
            if keys not in held:
                for at in children.come[row]:
                    found.setdefault(at, Broken(at, name, row, each.text, reference=each))

    def _ends(self, name: str, updates: Mapping[int, Update]) -> _Ends:
        own = {at: update for at, update in updates.items() if update.relation == name}
        rows = list(dict.fromkeys(update.tuple for update in own.values()))
        companion = self._constraints.tables[name].copies
        if companion is None:
            before = dict(zip(rows, map(int, self._are_there(name, rows)), strict=True))
        else:
            before = copies_there(rows, name, companion, self._are_there)
        written = self._constraints.written[name]
        now = dict(before)
        places: dict[tuple[str, Tuple], list[int]] = {}
        for at, (op, _, row, _) in own.items():
            places.setdefault((op, row), []).append(at)
            now[row] = now[row] + 1 if op == "+" else max(now[row] - 1, min(now[row], written.get(row, 0)))
        ends = _Ends()
        for row in rows:
            if now[row] and not before[row]:
                ends.come[row] = places["+", row]
            elif before[row] and not now[row]:
                ends.gone[row] = places["-", row]
        return ends

    def _holders(self, name: str, columns: tuple[int, ...], asked: Iterable[_Values]) -> list[Tuple]:
        """The rows of a table, before the epoch, that have one of these values in the columns."""
        table = self._backend.table(name)
        order = sorted(range(len(columns)), key=columns.__getitem__)
        keys = [values_at(key, order) for key in dict.fromkeys(asked)]
        if not keys or not len(table):
            return []
        places = tuple(columns[at] for at in order)
        kinds = [self._constraints.program.relations[name].fields[at].kind for at in places]
        words = self._backend.dictionary.encode_rows(keys, kinds)
        if len(places) == table.arity:
            ids = table.find(words)
            ids = ids[ids >= 0]
        else:
            ids = table.index(places).probe(words, 0)[1]
        return self._backend.decode(name, np.unique(ids))
