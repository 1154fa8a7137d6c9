"""A program with its data: apply updates, get the changes of its views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.backend import LocalBackend
from whence.engine.dred import DredStratum
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer, absorb
from whence.engine.protocol import EXTERNAL
from whence.engine.revise import revise
from whence.engine.stats import Stats
from whence.engine.support import Delta, SupportStratum
from whence.engine.windows import Windows
from whence.lang.program import Program, Relation
from whence.lang.revise import add_rules, drop_rule
from whence.lang.types import Tuple
from whence.plan import Plan, compile_counting, compile_plan, compile_recomputation
from whence.plan.record import record_derivations, refuse_unrecordable
from whence.reference import Limits
from whence.view import View

if TYPE_CHECKING:
    from whence.engine.maintain import Native


class Strategy(NamedTuple):
    """How views are kept up to date: how a program is planned, and how strata with delta plans are maintained."""

    compile: Callable[[Program, Iterable[str] | None, Mapping[str, int]], Plan]
    native: Native[Ids, Lines, Ids]


STRATEGIES: Mapping[str, Strategy] = {
    "support": Strategy(compile_plan, SupportStratum),
    "counting": Strategy(compile_counting, SupportStratum),
    "dred": Strategy(compile_plan, DredStratum),
    "absorption": Strategy(compile_plan, absorb),
    "recompute": Strategy(compile_recomputation, SupportStratum),
}

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


class Work(TypedDict):
    """What maintaining views took.

    `derivations` were enumerated, in `rounds`; tuples were `suspended` until it was known whether they still follow, and some
    of them `rederived`. `seconds` is by phase: collect, take away, put back, aggregate, recompute, decode, settle.
    """

    rounds: int
    derivations: int
    suspended: int
    rederived: int
    seconds: dict[str, float]


class SessionStats(Work):
    """Work since the session began. `bytes` is by relation, helper relations of the plan included."""

    epochs: int
    bytes: dict[str, int]


def _work(stats: Stats) -> Work:
    return {
        "rounds": stats.rounds,
        "derivations": stats.derivations,
        "suspended": stats.suspended,
        "rederived": stats.rederived,
        "seconds": dict(stats.seconds),
    }


class Session:
    """Keeps the views of a program exact under updates. `facts` are there from the start.

    `wanted` names the relations to be seen, by default all: what they do not need is not derived. The derivations of the
    relations in `record` are kept as relations too, which can be looked at and change like any other: `recordings` says where.

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
        wanted: Iterable[str] | None = None,
        strategy: str = "support",
        record: Collection[str] = (),
        limits: Limits = Limits(),  # noqa: B008 - immutable
        on_round: Callable[[str, int, int], None] | None = None,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"there is no strategy {strategy}; there are {', '.join(STRATEGIES)}")
        self.strategy = strategy
        self._wanted = None if wanted is None else frozenset(wanted)
        if unknown := (self._wanted or frozenset()) - program.relations.keys():
            raise ValueError(f"there is no relation {min(unknown)}; there are {', '.join(program.relations)}")
        self._recorded = frozenset(record)
        sizes = {name: len(rows) for name, rows in (facts or {}).items() if isinstance(rows, Sized)}
        self.plan = self._compile(program, self._wanted, sizes)
        refuse_unrecordable(program, self.plan, self._recorded)
        self.program = program
        self.windows = Windows(program.relations)
        self._base = frozenset(program.base_relations)
        self._backend = LocalBackend(self.plan.program)
        self._maintainer = Maintainer(
            self.plan, self._backend, Guard(program, limits, on_round), STRATEGIES[strategy].native
        )
        self.epoch = -1
        self.last_epoch: Work = _work(Stats())
        self._start(facts or {})

    def _start(self, facts: Mapping[str, Iterable[Tuple]]) -> None:
        """The first epoch, without a look at what is there before it."""
        stats = self._maintainer.stats
        with stats.phase("collect"):
            insertions = {name: list(dict.fromkeys(rows)) for name, rows in facts.items()}
            for name, rows in insertions.items():
                self._check_relation(name)
                arity = self.program.relations[name].arity
                for row in rows:
                    if len(row) != arity:
                        self._check(Update("+", name, row))
            forgotten = [name for name in insertions if self.windows.forgets(name)]
            passing = [Update("+", name, row) for name in forgotten for row in insertions[name]]
            for name, kept in self._collect(passing, None)[0].items():
                insertions[name] = [row for row, stays in kept.items() if stays]
        self._maintainer.settle(self._maintainer.apply({}, insertions))
        self.epoch += 1
        self.last_epoch = _work(stats)

    @property
    def initial(self) -> Changes:
        """What the first epoch brought: all there is, as long as no other has been applied."""
        if self.epoch:
            raise RuntimeError("updates have been applied: what was there at first is not known any more")
        return Changes(
            {name: list(view) for name in self.program.relations if self._shows(name) and (view := self.relation(name))}
        )

    def apply(self, updates: Iterable[Update | tuple[str, str, Tuple]], now: float | None = None) -> Changes:
        """One epoch: all updates at once, the last one for a tuple deciding. Gives the net changes of all relations.

        The clock moves to the latest time of the updates, or to `now`, and what expires by then is deleted in this epoch.
        Raises ValueError for an update that does not fit; nothing is applied then.
        """
        stats = self._maintainer.stats
        before = stats.copy()
        with stats.phase("collect"):
            wanted, count = self._collect(updates, now)
            removals, insertions = self._effective(wanted)
        effective = sum(len(rows) for side in (removals, insertions) for rows in side.values())
        changes = self._maintainer.apply(removals, insertions)
        self.epoch += 1
        return self._finish(changes, before, max(0, count - effective))

    def trial(self, updates: Iterable[Update | tuple[str, str, Tuple]], now: float | None = None) -> Changes:
        """What `apply` would change. The session stays as it is: the epoch is taken back, windows and clock included."""
        before = self._maintainer.stats.copy()
        windows = deepcopy(self.windows)
        try:
            wanted, _ = self._collect(updates, now)
        finally:
            self.windows = windows
        removals, insertions = self._effective(wanted)
        changes = self._finish(self._maintainer.apply(removals, insertions), before, 0)
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

    def _finish(self, changes: Mapping[str, Delta[Ids]], before: Stats, ignored: int) -> Changes:
        """Ends an epoch: its changes as tuples, and what it cost."""
        with self._maintainer.stats.phase("decode"):
            shown = {name: delta for name, delta in changes.items() if self._shows(name)}
            inserted = {name: self._backend.decode(name, delta.added) for name, delta in shown.items()}
            deleted = {name: self._backend.decode(name, delta.gone) for name, delta in shown.items()}
        self._maintainer.settle(changes)
        self.last_epoch = _work(self._maintainer.stats.since(before))
        return Changes(
            {name: rows for name, rows in inserted.items() if rows},
            {name: rows for name, rows in deleted.items() if rows},
            ignored,
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
        self._check_relation(update.relation)
        relation = self.program.relations[update.relation]
        if update.op not in ("+", "-"):
            raise ValueError(f"{update.op} is no operation: + inserts, - deletes")
        if len(update.tuple) != relation.arity:
            raise ValueError(f"{relation.name} has {relation.arity} columns, not {len(update.tuple)}")

    def _check_relation(self, name: str) -> None:
        if name not in self.program.relations:
            raise ValueError(f"there is no relation {name}")
        if name not in self._base:
            raise ValueError(f"{name} is derived by rules: only base relations take updates")

    def add_rule(self, text: str) -> Changes:
        """Adds rules to the program, with facts and declarations that come with them. Gives what that changes, as an epoch.

        Raises `ProgramError` if the program would not be right with them; it stays as it was then.

        >>> from whence import load
        >>> session = Session(load("p(1). p(2). .decl q(x:number) .output p, q"))
        >>> session.add_rule("double: q(2 * x) :- p(x).").inserted
        {'q': [(2,), (4,)]}
        >>> session.drop_rule("double").deleted
        {'q': [(2,), (4,)]}
        """
        return self._revise(add_rules(self.program, text))

    def drop_rule(self, name: str) -> Changes:
        """Takes a rule out of the program; `session.program.rules` has their names. Gives what that changes, as an epoch.

        Raises ValueError if there is no such rule, and `ProgramError` if the program would not be right without it.
        """
        return self._revise(drop_rule(self.program, name))

    def _revise(self, program: Program) -> Changes:
        """Only derivations of rules that come or go are looked at, where relations depend on each other as before."""
        for name, relation in program.relations.items():
            before = self.program.relations.get(name)
            if before is not None:
                _refuse_redeclared(before, relation)
        base = self._base & program.relations.keys()  # a relation that took updates goes on taking them
        wanted, kept = self._wanted, None
        if wanted is not None:
            outputs = {transfer.relation for transfer in program.transfers_of("output")}
            wanted |= outputs - self.program.relations.keys()
            kept = wanted & program.relations.keys() | base.difference(program.base_relations)
        sizes = {name: len(table) for name, table in self._backend.tables.items()}
        plan = self._compile(program, kept, sizes)
        stats = self._maintainer.stats.copy()
        changes = revise(self._maintainer, plan)
        self.program, self.plan, self._wanted = program, plan, wanted
        self._base = base.union(program.base_relations)
        self.windows.extend(program.relations)
        self.epoch += 1
        result = self._finish(changes, stats, 0)
        self._backend.forget(name for name in tuple(self._backend.tables) if name not in plan.program.relations)
        return result

    def _compile(self, program: Program, wanted: frozenset[str] | None, sizes: Mapping[str, int]) -> Plan:
        planned, recordings = record_derivations(program, self._recorded)
        if wanted is not None:
            wanted |= {each.relation for each in recordings.values()}
        plan = STRATEGIES[self.strategy].compile(planned, wanted, sizes)
        refuse_unrecordable(program, plan, {each.rule.head.relation for each in recordings.values()})
        self.recordings = recordings
        self.tables = {each.relation: planned.relations[each.relation] for each in recordings.values()}
        return plan

    def stats(self) -> SessionStats:
        """What has been done since the session began, and what the tables take. `last_epoch` has the work of one epoch."""
        return {
            **_work(self._maintainer.stats),
            "epochs": self.epoch + 1,
            "bytes": {name: table.nbytes for name, table in self._backend.tables.items()},
        }

    def relation(self, name: str) -> View:
        """The tuples of a relation, in no particular order: to iterate over, or as an Arrow table or a pandas DataFrame."""
        known = {**self.program.relations, **self.tables}
        if name not in known:
            raise ValueError(f"there is no relation {name}; there are {', '.join(known)}")
        if not self._shows(name):
            raise ValueError(f"{name} is not among the relations that the session shows")
        return View(known[name], self.program.types, self._backend)

    def _shows(self, name: str) -> bool:
        """Helper relations, whose names hold a `!`, are not shown, but for those of recorded derivations."""
        if name in self.tables:
            return True
        return "!" not in name if self._wanted is None else name in self._wanted

    @property
    def backend(self) -> LocalBackend:
        """The tables, for those who look up more than whole relations. Only `apply` changes them."""
        return self._backend

    def ranking(self, relation: str) -> Ranking:
        """What the ranks of a relation's rows tell."""
        stratum = self._maintainer.support_of(relation)
        if stratum is None:
            return Ranking.NONE
        return Ranking.EXACT if stratum.ranked_epochs <= 1 else Ranking.WELL_FOUNDED

    def base(self) -> dict[str, set[Tuple]]:
        """The tuples that were put into base relations from outside."""
        tables = {name: self._backend.table(name) for name in self._base}
        return {
            name: set(self._backend.decode(name, table.with_flags(table.ids(), on=EXTERNAL)))
            for name, table in tables.items()
        }

    def views(self) -> dict[str, set[Tuple]]:
        return {name: set(self.relation(name)) for name in self.program.relations if self._shows(name)}


def _refuse_redeclared(before: Relation, after: Relation) -> None:
    for one, other in zip(before.fields, after.fields, strict=True):
        if one.kind != other.kind:
            raise ValueError(
                f"column {one.name} of {before.name} would hold {other.kind} instead of {one.kind}: declare {before.name}"
            )
    if (before.window, before.lifetime) != (after.window, after.lifetime):
        raise ValueError(f"{before.name} has tuples already: its .window and .lifetime stay as they are")


def evaluate(
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    *,
    wanted: Iterable[str] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_round: Callable[[str, int, int], None] | None = None,
) -> dict[str, set[Tuple]]:
    """The wanted relations of the program (all by default): one evaluation, in which windows and lifetimes forget nothing."""
    return Session(lasting(program), facts=facts, wanted=wanted, limits=limits, on_round=on_round).views()


def lasting(program: Program) -> Program:
    """The program without windows and lifetimes."""
    relations = {name: replace(relation, window=None, lifetime=None) for name, relation in program.relations.items()}
    return replace(program, relations=relations)
