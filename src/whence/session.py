"""A program with its data: apply updates, get the changes of its views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from whence.backends.local.backend import LocalBackend
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer
from whence.engine.protocol import EXTERNAL
from whence.engine.windows import Windows
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.plan import Plan, compile_plan, compile_recomputation
from whence.reference import Limits

# How views are kept up to date, by name.
STRATEGIES: Mapping[str, Callable[[Program], Plan]] = {"support": compile_plan, "recompute": compile_recomputation}


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


class Session:
    """Keeps the views of a program exact under updates. `facts` are there from the start.

    >>> from whence import load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"))
    >>> _ = session.apply([Update("+", "link", ("a", "b")), Update("+", "link", ("b", "c"))])
    >>> sorted(session.relation("reach"))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> sorted(session.apply([Update("-", "link", ("b", "c"))]).deleted["reach"])
    [('a', 'c'), ('b', 'c')]
    """

    def __init__(
        self,
        program: Program,
        *,
        facts: Mapping[str, Iterable[Tuple]] | None = None,
        strategy: str = "support",
        limits: Limits = Limits(),  # noqa: B008 - immutable
        on_round: Callable[[str, int, int], None] | None = None,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"there is no strategy {strategy}; there are {', '.join(STRATEGIES)}")
        self.plan = STRATEGIES[strategy](program)
        self.program = program
        self.windows = Windows(program.relations)
        self._base = frozenset(program.base_relations)
        self._backend = LocalBackend(self.plan.program)
        self._maintainer = Maintainer(self.plan, self._backend, Guard(program, limits, on_round))
        self.epoch = -1
        self.initial = self.apply(Update("+", name, row) for name, rows in (facts or {}).items() for row in rows)

    def apply(self, updates: Iterable[Update | tuple[str, str, Tuple]], now: float | None = None) -> Changes:
        """One epoch: all updates at once, the last one for a tuple deciding. Gives the net changes of all relations.

        The clock moves to the latest time of the updates, or to `now`, and what expires by then is deleted in this epoch.
        Raises ValueError for an update that does not fit; nothing is applied then.
        """
        wanted, count = self._collect(updates, now)
        removals: dict[str, list[Tuple]] = {}
        insertions: dict[str, list[Tuple]] = {}
        effective = 0
        for name, rows in wanted.items():
            present = self._maintainer.is_external(name, self._backend.encode(name, list(rows)))
            removals[name] = [row for row, there in zip(rows, present, strict=True) if there and not rows[row]]
            insertions[name] = [row for row, there in zip(rows, present, strict=True) if not there and rows[row]]
            effective += len(removals[name]) + len(insertions[name])
        changes = self._maintainer.apply(removals, insertions)
        self.epoch += 1
        shown = {name: delta for name, delta in changes.items() if not self.plan.is_helper(name)}
        inserted = {name: self._backend.decode(name, delta.added) for name, delta in shown.items()}
        deleted = {name: self._backend.decode(name, delta.gone) for name, delta in shown.items()}
        self._maintainer.settle(changes)
        return Changes(
            {name: rows for name, rows in inserted.items() if rows},
            {name: rows for name, rows in deleted.items() if rows},
            max(0, count - effective),
        )

    def _collect(
        self, updates: Iterable[Update | tuple[str, str, Tuple]], now: float | None
    ) -> tuple[dict[str, dict[Tuple, bool]], int]:
        """For each tuple spoken of, whether it is to be there after the epoch; and the number of updates."""
        listed = [update if isinstance(update, Update) else Update(*update) for update in updates]
        for update in listed:
            self._check(update)
        return self.windows.collect(listed, now), len(listed)

    def _check(self, update: Update) -> None:
        relation = self.program.relations.get(update.relation)
        if relation is None:
            raise ValueError(f"there is no relation {update.relation}")
        if update.relation not in self._base:
            raise ValueError(f"{update.relation} is derived by rules: only base relations take updates")
        if update.op not in ("+", "-"):
            raise ValueError(f"{update.op} is no operation: + inserts, - deletes")
        if len(update.tuple) != relation.arity:
            raise ValueError(f"{relation.name} has {relation.arity} columns, not {len(update.tuple)}")

    def stats(self) -> dict[str, object]:
        """What has been done since the session began, and what the tables take."""
        done = self._maintainer.stats
        return {
            "epochs": self.epoch + 1,
            "rounds": done.rounds,
            "derivations": self._backend.enumerated,
            "suspended": done.suspended,
            "bytes": {name: table.nbytes for name, table in self._backend.tables.items()},
        }

    @property
    def rounds(self) -> int:
        """The rounds of recursion so far."""
        return self._maintainer.stats.rounds

    @property
    def nbytes(self) -> int:
        """What the tables and their indexes take."""
        return sum(table.nbytes for table in self._backend.tables.values())

    def relation(self, name: str) -> Iterator[Tuple]:
        """The tuples of a relation, in no particular order."""
        return iter(self._backend.decode(name, self._backend.table(name).ids()))

    def base(self) -> dict[str, set[Tuple]]:
        """The tuples that were put into base relations from outside."""
        tables = {name: self._backend.table(name) for name in self._base}
        return {
            name: set(self._backend.decode(name, table.with_flags(table.ids(), on=EXTERNAL)))
            for name, table in tables.items()
        }

    def views(self) -> dict[str, set[Tuple]]:
        return {name: set(self.relation(name)) for name in self.program.relations}


def evaluate(
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    *,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_round: Callable[[str, int, int], None] | None = None,
) -> dict[str, set[Tuple]]:
    """Every relation of the program, given its facts: one evaluation, in which windows and lifetimes forget nothing."""
    lasting = {name: replace(relation, window=None, lifetime=None) for name, relation in program.relations.items()}
    session = Session(replace(program, relations=lasting), facts=facts, limits=limits, on_round=on_round)
    return session.views()
