"""A program with its data: apply updates, get the changes of its views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from whence.backends.local.backend import LocalBackend
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer
from whence.engine.windows import Windows
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.plan import Plan, compile_plan, compile_recomputation
from whence.plan.record import record_derivations
from whence.reference import Limits

# How views are kept up to date, by name.
STRATEGIES: Mapping[str, Callable[[Program], Plan]] = {"support": compile_plan, "recompute": compile_recomputation}

_Rows = dict[str, list[Tuple]]


class Update(NamedTuple):
    """`+` puts a tuple into a base relation, `-` takes it out. `time` is when, for windows and lifetimes."""

    op: str
    relation: str
    tuple: Tuple
    time: float | None = None


class Ranking(Enum):
    """NONE: there are no ranks. WELL_FOUNDED: each row has a derivation from rows of its stratum that rank lower. EXACT: ranks
    are also the rounds in which a fresh evaluation makes the rows, so that no derivation is shorter.
    """

    NONE = 0
    WELL_FOUNDED = 1
    EXACT = 2


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

    The derivations of the relations in `record` are kept as relations too: `recordings` says where.

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
        record: Collection[str] = (),
        limits: Limits = Limits(),  # noqa: B008 - immutable
        on_round: Callable[[str, int, int], None] | None = None,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"there is no strategy {strategy}; there are {', '.join(STRATEGIES)}")
        planned, self.recordings = record_derivations(program, record)
        self.plan = STRATEGIES[strategy](planned)
        _refuse_unrecordable(self.plan, record)
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
        removals, insertions = self._effective(wanted)
        self.epoch += 1
        return self._maintain(removals, insertions, count)

    def trial(self, updates: Iterable[Update | tuple[str, str, Tuple]], now: float | None = None) -> Changes:
        """What `apply` would change. The session stays as it is: the epoch is taken back, windows and clock included."""
        windows = deepcopy(self.windows)
        try:
            wanted, count = self._collect(updates, now)
        finally:
            self.windows = windows
        removals, insertions = self._effective(wanted)
        changes = self._maintain(removals, insertions, count)
        self._maintainer.settle(self._maintainer.apply(insertions, removals))
        return changes

    def _effective(self, wanted: Mapping[str, dict[Tuple, bool]]) -> tuple[_Rows, _Rows]:
        """What is to be taken out and is there from outside, and what is to be put in and is not."""
        removals: _Rows = {}
        insertions: _Rows = {}
        for name, rows in wanted.items():
            present = self._maintainer.is_external(name, self._backend.encode(name, list(rows)))
            removals[name] = [row for row, there in zip(rows, present, strict=True) if there and not rows[row]]
            insertions[name] = [row for row, there in zip(rows, present, strict=True) if not there and rows[row]]
        return removals, insertions

    def _maintain(self, removals: _Rows, insertions: _Rows, count: int) -> Changes:
        effective = sum(len(rows) for side in (removals, insertions) for rows in side.values())
        changes = self._maintainer.apply(removals, insertions)
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
        wanted: dict[str, dict[Tuple, bool]] = {}
        self.windows.advance(now)
        for update in listed:
            self.windows.advance(update.time)
        for op, relation, row, time in listed:
            wanted.setdefault(relation, {})[row] = op == "+"
            if op == "+":
                self.windows.insert(relation, row, time)
            else:
                self.windows.delete(relation, row)
        for relation, row in self.windows.expire():
            wanted.setdefault(relation, {})[row] = False
        return wanted, len(listed)

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

    def relation(self, name: str) -> Iterator[Tuple]:
        """The tuples of a relation, in no particular order."""
        return iter(self._backend.decode(name, self._backend.table(name).ids()))

    @property
    def backend(self) -> LocalBackend:
        """The tables, for those who look up more than whole relations. Only `apply` changes them."""
        return self._backend

    def ranking(self, relation: str) -> Ranking:
        """What the ranks of a relation's rows tell."""
        stratum = self._maintainer.support_of(relation)
        if stratum is None:
            return Ranking.NONE
        # A recorded firing takes a round of its own.
        is_exact = stratum.ranked_epochs <= 1 and not self.recordings
        return Ranking.EXACT if is_exact else Ranking.WELL_FOUNDED

    def views(self) -> dict[str, set[Tuple]]:
        return {name: set(self.relation(name)) for name in self.program.relations}


def _refuse_unrecordable(plan: Plan, record: Collection[str]) -> None:
    for stratum in plan.strata:
        for name in set(record) & set(stratum.relations):
            if not stratum.native:
                raise ValueError(f"derivations of {name} cannot be recorded: {stratum.why_not_native}")


def evaluate(
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    *,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_round: Callable[[str, int, int], None] | None = None,
) -> dict[str, set[Tuple]]:
    """Every relation of the program, given its facts: one evaluation, in which windows and lifetimes forget nothing."""
    return Session(lasting(program), facts=facts, limits=limits, on_round=on_round).views()


def lasting(program: Program) -> Program:
    """The program without windows and lifetimes."""
    relations = {name: replace(relation, window=None, lifetime=None) for name, relation in program.relations.items()}
    return replace(program, relations=relations)
