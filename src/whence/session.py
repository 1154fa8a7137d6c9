"""A program with its data: apply updates, get the changes of its views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from whence.backends.local.backend import LocalBackend
from whence.engine.maintain import STRATEGIES, Maintainer
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.plan.compile import compile_plan


class Update(NamedTuple):
    """`+` puts a tuple into a base relation, `-` takes it out."""

    op: str
    relation: str
    tuple: Tuple


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


class Session:
    """Keeps the views of a program exact under updates.

    >>> from whence import load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"))
    >>> _ = session.apply([Update("+", "link", ("a", "b")), Update("+", "link", ("b", "c"))])
    >>> sorted(session.relation("reach"))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> sorted(session.apply([Update("-", "link", ("b", "c"))]).deleted["reach"])
    [('a', 'c'), ('b', 'c')]
    """

    def __init__(self, program: Program, *, strategy: str = "support") -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"there is no strategy {strategy}; there are {', '.join(STRATEGIES)}")
        self.plan = compile_plan(program)
        self.program = program
        self._backend = LocalBackend(self.plan.program.relations, program.functions)
        self._maintainer = Maintainer(self.plan, self._backend, strategy)
        self._settled = self.apply(())

    def apply(self, updates: Iterable[Update | tuple[str, str, Tuple]]) -> Changes:
        """One epoch: all updates at once, the last one for a tuple deciding. Gives the net changes of all relations."""
        wanted: dict[str, dict[Tuple, bool]] = {}
        count = 0
        for op, relation, row in updates:
            wanted.setdefault(relation, {})[row] = op == "+"
            count += 1
        removals: dict[str, list[Tuple]] = {}
        insertions: dict[str, list[Tuple]] = {}
        effective = 0
        for name, rows in wanted.items():
            present = self._maintainer.is_external(name, self._backend.encode(name, list(rows)))
            removals[name] = [row for row, there in zip(rows, present, strict=True) if there and not rows[row]]
            insertions[name] = [row for row, there in zip(rows, present, strict=True) if not there and rows[row]]
            effective += len(removals[name]) + len(insertions[name])
        changes = self._maintainer.apply(removals, insertions)
        inserted = {name: self._backend.decode(name, delta.added) for name, delta in changes.items() if not self.plan.is_helper(name)}
        deleted = {name: self._backend.decode(name, delta.gone) for name, delta in changes.items() if not self.plan.is_helper(name)}
        self._maintainer.settle(changes)
        return Changes(
            {name: rows for name, rows in inserted.items() if rows},
            {name: rows for name, rows in deleted.items() if rows},
            count - effective,
        )

    def relation(self, name: str) -> Iterator[Tuple]:
        """The tuples of a relation, in no particular order."""
        return iter(self._backend.decode(name, self._backend.table(name).ids()))

    def views(self) -> dict[str, set[Tuple]]:
        return {name: set(self.relation(name)) for name in self.program.relations}
