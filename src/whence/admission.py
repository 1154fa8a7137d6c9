"""What is let into the tables of SQL, while a session goes on.

Tables are relations, which are sets. Updates of a table whose rows may be equal become updates of the relation and of its
companion (`lang.tables`): a row that is there already comes as one more copy, and what is deleted is the last copy. An update
that would break a constraint is refused. Updates count in their order: a key is free once the row that has it is deleted. What
rows refer to is looked at as it is at the end of the epoch (`references`).

Nothing is kept for that: what is there is looked up in the tables of the session, for all updates of an epoch at once, rows by
an index on the columns of each key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from whence.backends.local.backend import LocalBackend
from whence.constraints import Broken, Constraints, key_of
from whence.io.changes import Update
from whence.lang.tables import Key, copies_there
from whence.lang.types import Tuple, Value
from whence.references import References

Refuse = Callable[[Broken], None]


def admitted(
    updates: Sequence[Update],
    constraints: Constraints,
    backend: LocalBackend,
    refuse: Refuse,
    *,
    referring: bool = True,
) -> list[Update]:
    """The updates as the relations take them, without those that break a constraint: these are told to `refuse`.

    What rows refer to is looked at if `referring`.
    """
    if not constraints:
        return list(updates)
    of_tables = {at: update for at, update in enumerate(updates) if update.relation in constraints.tables}
    broken = _broken(of_tables, constraints, backend, referring=referring)
    for at in sorted(broken):
        refuse(broken[at])
    made: dict[int, Update | None] = dict.fromkeys(broken)
    for name, table in constraints.tables.items():
        if table.copies is not None:
            kept = {at: each for at, each in of_tables.items() if each.relation == name and at not in broken}
            made.update(_numbered(kept, name, table.copies, constraints, backend))
    return [each for at, update in enumerate(updates) if (each := made.get(at, update)) is not None]


def _broken(
    updates: dict[int, Update], constraints: Constraints, backend: LocalBackend, *, referring: bool
) -> dict[int, Broken]:
    """The updates that break a constraint. Those that refer to rows are settled again as long as others are refused."""
    asked = referring and bool(constraints.references)
    references = References(constraints, backend, partial(_are_there, backend)) if asked else None
    found: dict[int, Broken] = {}
    while True:
        kept = {at: update for at, update in updates.items() if at not in found}
        by_table: dict[str, dict[int, Update]] = {}
        for at, update in kept.items():
            by_table.setdefault(update.relation, {})[at] = update
        more: dict[int, Broken] = {}
        for name, own in by_table.items():
            table = constraints.tables[name]
            if table.keys or table.checks:
                more |= _Keys(name, constraints, backend).broken(own)
        if references is None:
            return more
        more = more or references.broken(kept)
        if not more:
            return found
        found |= more


def _numbered(
    updates: dict[int, Update], name: str, companion: str, constraints: Constraints, backend: LocalBackend
) -> dict[int, Update]:
    """Updates of rows as updates of copies, as far as they are others then."""
    rows = [update.tuple for update in updates.values()]
    if not len(backend.table(companion)) and len(set(rows)) == len(rows):  # so it is while no row is there twice
        coming = [at for at, update in updates.items() if update.op == "+"]
        there = _are_there(backend, name, [updates[at].tuple for at in coming])
        again = [at for at, is_there in zip(coming, there, strict=True) if is_there]
        return {at: updates[at]._replace(relation=companion, tuple=(*updates[at].tuple, 2)) for at in again}
    counts = copies_there(rows, name, companion, lambda relation, asked: _are_there(backend, relation, asked))
    written = constraints.written[name]
    made: dict[int, Update] = {}
    for at, update in updates.items():
        row = update.tuple
        count = counts[row]
        if update.op == "+":
            count = counts[row] = count + 1
        elif count > written.get(row, 0):
            counts[row] -= 1
        made[at] = update if count <= 1 else update._replace(relation=companion, tuple=(*row, count))
    return made


def _are_there(backend: LocalBackend, relation: str, rows: list[Tuple]) -> list[bool]:
    if not rows or not len(backend.table(relation)):
        return [False] * len(rows)
    found: list[bool] = (backend.table(relation).find(backend.encode(relation, rows)) >= 0).tolist()
    return found


class _Keys:
    """Follows the keys of one table through the updates of an epoch."""

    def __init__(self, name: str, constraints: Constraints, backend: LocalBackend) -> None:
        self._name = name
        self._table = constraints.tables[name]
        self._constraints = constraints
        self._written = constraints.written[name]
        self._backend = backend

    def broken(self, updates: dict[int, Update]) -> dict[int, Broken]:
        coming = [update.tuple for update in updates.values() if update.op == "+"]
        unchecked = self._constraints.unchecked(self._name, coming)
        rows = list(dict.fromkeys(update.tuple for update in updates.values()))
        held = [self._holders(key, rows) for key in self._table.keys]
        found: dict[int, Broken] = {}
        for at, update in updates.items():
            row = update.tuple
            if update.op == "-":
                self._let_go(row, held)
            elif row in unchecked:
                found[at] = Broken(at, self._name, row, unchecked[row])
            elif (broken := self._take(at, row, held)) is not None:
                found[at] = broken
        return found

    def _take(self, at: int, row: Tuple, held: list[dict[tuple[Value, ...], Tuple]]) -> Broken | None:
        keys = [(key, key_of(row, key), holders) for key, holders in zip(self._table.keys, held, strict=True)]
        for key, values, holders in keys:
            if values in holders:
                return Broken(at, self._name, row, key.text, holders[values])
        for _, values, holders in keys:
            if None not in values:
                holders[values] = row
        return None

    def _let_go(self, row: Tuple, held: list[dict[tuple[Value, ...], Tuple]]) -> None:
        if row in self._written:
            return
        for key, holders in zip(self._table.keys, held, strict=True):
            if holders.get(values := key_of(row, key)) == row:
                del holders[values]

    def _holders(self, key: Key, rows: list[Tuple]) -> dict[tuple[Value, ...], Tuple]:
        """The rows of the table that have the key of one of these, by their keys."""
        table = self._backend.table(self._name)
        columns = tuple(sorted(key.columns))
        asked = [row for row in rows if None not in key_of(row, key)]
        if not asked or not len(table):
            return {}
        lines = self._backend.encode(self._name, asked)
        if len(columns) == table.arity:
            ids = table.find(lines)
            ids = ids[ids >= 0]
        else:
            ids = table.index(columns).probe(np.ascontiguousarray(lines[:, columns]), 0)[1]
        return {key_of(row, key): row for row in self._backend.decode(self._name, np.unique(ids))}
