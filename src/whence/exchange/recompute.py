"""Recompute: everything is evaluated anew and compared with what was there before, one of the baselines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from whence.io.changes import Changes, Update
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.prepared import prepare
from whence.session import Session


class Recompute:
    """Looks like a session as far as exchange uses one; changes are those of the `watched` relations."""

    def __init__(self, program: Program, facts: Mapping[str, Iterable[Tuple]], watched: Iterable[str]) -> None:
        self._prepared = prepare(program)
        self._base = {name: set(facts.get(name, ())) for name in program.base_relations}
        self._watched = tuple(watched)
        self._evaluate()

    def _evaluate(self) -> None:
        self.session = Session(self._prepared, facts=self._base)
        self._views = {name: set(self.session.relation(name)) for name in self._watched}

    def apply(self, updates: Iterable[Update]) -> Changes:
        for op, name, row, _ in updates:
            (self._base[name].add if op == "+" else self._base[name].discard)(row)
        before = self._views
        self._evaluate()
        return Changes(_without(self._views, before), _without(before, self._views))

    def trial(self, updates: Iterable[Update]) -> Changes:
        kept = {name: rows.copy() for name, rows in self._base.items()}
        changes = self.apply(updates)
        self._base = kept
        self._evaluate()
        return changes

    def relation(self, name: str) -> set[Tuple]:
        return set(self.session.relation(name))

    def base(self) -> dict[str, set[Tuple]]:
        return self._base


def _without(rows: Mapping[str, set[Tuple]], others: Mapping[str, set[Tuple]]) -> dict[str, list[Tuple]]:
    return {name: list(left) for name in rows if (left := rows[name] - others[name])}
