"""The facts that a node stores of a relation, found by stamp or by the values of some columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from whence.lang.program import Atom, Const, Var
from whence.lang.types import Tuple
from whence.sensors.messages import Fact, Stamp
from whence.sensors.rules import Environment


class FactTable:
    """An index on some columns is made when they are first asked for, and kept up to date."""

    def __init__(self) -> None:
        self.facts: dict[Stamp, Fact] = {}
        self._indexes: dict[tuple[int, ...], dict[Tuple, dict[Stamp, Fact]]] = {}

    def __len__(self) -> int:
        return len(self.facts)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts.values())

    def get(self, born: Stamp) -> Fact | None:
        return self.facts.get(born)

    def add(self, fact: Fact) -> None:
        self.facts[fact.born] = fact
        for columns, index in self._indexes.items():
            index.setdefault(tuple([fact.row[at] for at in columns]), {})[fact.born] = fact

    def drop(self, born: Stamp) -> None:
        fact = self.facts.pop(born)
        for columns, index in self._indexes.items():
            del index[tuple([fact.row[at] for at in columns])][born]

    def matching(self, atom: Atom, environment: Environment) -> Collection[Fact]:
        """Facts that have the values which the arguments of an atom have by now; the others still have to be compared."""
        return list(self._found(atom, environment).values())

    def count(self, atom: Atom, environment: Environment) -> int:
        """How many those are."""
        return len(self._found(atom, environment))

    def _found(self, atom: Atom, environment: Environment) -> dict[Stamp, Fact]:
        columns, key = known_columns(atom, environment)
        if not columns:
            return self.facts
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = {}
            for fact in self.facts.values():
                index.setdefault(tuple([fact.row[at] for at in columns]), {})[fact.born] = fact
        return index.get(key, {})


def known_columns(atom: Atom, environment: Environment) -> tuple[tuple[int, ...], Tuple]:
    columns, key = [], []
    for at, arg in enumerate(atom.args):
        if isinstance(arg, Const):
            columns.append(at)
            key.append(arg.value)
        elif isinstance(arg, Var) and arg.name in environment:
            columns.append(at)
            key.append(environment[arg.name])
    return tuple(columns), tuple(key)
