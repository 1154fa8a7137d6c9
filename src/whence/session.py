"""A program with its data: apply updates, get the changes of its views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.backend import LocalBackend
from whence.engine.dred import DredStratum
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer, absorb
from whence.engine.revise import revise
from whence.engine.stats import Stats
from whence.engine.support import Delta, SupportStratum
from whence.engine.windows import Windows
from whence.io.changes import Changes, Update
from whence.lang.fit import check_rows
from whence.lang.program import Program, Relation
from whence.lang.revise import add_rules, drop_rule
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import Plan, compile_counting, compile_plan, compile_recomputation
from whence.plan.record import Recording, record_derivations, refuse_unrecordable
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


class Ranking(Enum):
    """NONE: there are no ranks. WELL_FOUNDED: each row has a derivation from rows of its stratum that rank lower. EXACT: ranks
    are also the rounds in which a fresh evaluation makes the rows, so that no derivation is shorter.
    """

    NONE = 0
    WELL_FOUNDED = 1
    EXACT = 2


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
        self.plan, self.recordings = self._compile(program, self._wanted, sizes)
        refuse_unrecordable(program, self.plan, self._recorded)
        self.program = program
        self.windows = Windows(program.relations)
        self._base = frozenset(program.base_relations)
        self._limits, self._on_round = limits, on_round
        self._backend = LocalBackend(self.plan.program)
        self._maintainer = self._make_maintainer(self._backend, limits)
        self._is_running = False
        self._unfinished: tuple[_Rows, _Rows] | None = None  # what an epoch that failed was to take out and put in
        self.epoch = -1
        self.last_epoch: Work = _work(Stats())
        self._start(facts or {})

    def _make_maintainer(
        self, backend: LocalBackend, limits: Limits, stats: Stats | None = None
    ) -> Maintainer[Ids, Lines, Ids]:
        guard = Guard(self.program, limits, self._on_round)
        return Maintainer(self.plan, backend, guard, STRATEGIES[self.strategy].native, stats)

    def _start(self, facts: Mapping[str, Iterable[Tuple]]) -> None:
        """The first epoch, without a look at what is there before it."""
        stats = self._maintainer.stats
        with stats.phase("collect"):
            insertions: _Rows = {}
            for name, rows in facts.items():
                self._check_relation(name)
                listed = list(rows)
                check_rows(self.program.relations[name], listed, self.program.types)
                insertions[name] = list(dict.fromkeys(listed))
            forgotten = [name for name in insertions if self.windows.forgets(name)]
            passing = [Update("+", name, row) for name in forgotten for row in insertions[name]]
            for name, kept in self.windows.collect(passing, None).items():
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
        Raises ValueError for an update that does not fit. Whatever is raised, nothing is applied then.
        """
        self._mend()
        stats = self._maintainer.stats
        before = stats.copy()
        with stats.phase("collect"):
            listed = self._checked(updates, now)
        with self._all_or_nothing():
            with stats.phase("collect"):
                removals, insertions = self._collect(listed, now)
            effective = sum(len(rows) for side in (removals, insertions) for rows in side.values())
            result = self._finish(
                self._maintainer.apply(removals, insertions), before, max(0, len(listed) - effective), self._shows
            )
        self.epoch += 1
        return result

    def trial(self, updates: Iterable[Update | tuple[str, str, Tuple]], now: float | None = None) -> Changes:
        """What `apply` would change. The session stays as it is: the epoch is taken back, windows and clock included."""
        self._mend()
        before = self._maintainer.stats.copy()
        listed = self._checked(updates, now)
        with self._all_or_nothing():
            removals, insertions = self._collect(listed, now)
            changes = self._finish(self._maintainer.apply(removals, insertions), before, 0, self._shows)
            self._maintainer.settle(self._maintainer.apply(insertions, removals))
            self.windows.undo()
        return changes

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """An epoch. If it fails, the session is what it was before: the next to look at it has that evaluated again."""
        self.windows.begin()
        self._unfinished = {}, {}
        with self._running():
            yield
        self._unfinished = None

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False

    def _mend(self) -> None:
        """Evaluates the views anew if an epoch failed halfway. That took no limit to reach before, so it takes none now."""
        if self._is_running:
            raise RuntimeError("an epoch is under way: the session can be looked at when it is over")
        if self._unfinished is None:
            return
        removals, insertions = self._unfinished
        base = self._base_tuples()
        for name, rows in removals.items():
            base[name].update(rows)
        for name, rows in insertions.items():
            base[name].difference_update(rows)
        backend = LocalBackend(self.plan.program)
        backend.enumerated, backend.warned = self._backend.enumerated, self._backend.warned
        maintainer = self._make_maintainer(backend, Limits(), self._maintainer.stats)
        maintainer.evaluator.solver.counters = self._maintainer.evaluator.solver.counters
        with self._running():
            maintainer.settle(maintainer.apply({}, {name: list(rows) for name, rows in base.items()}))
        maintainer.limit(self._limits)
        self.windows.undo()
        self._backend, self._maintainer, self._unfinished = backend, maintainer, None

    def _collect(self, updates: Iterable[Update], now: float | None) -> tuple[_Rows, _Rows]:
        """What is to be taken out and is there from outside, and what is to be put in and is not; what expires, too."""
        removals: _Rows = {}
        insertions: _Rows = {}
        for name, rows in self.windows.collect(updates, now).items():
            present = self._maintainer.is_external(name, rows)
            removals[name] = [row for row, there in zip(rows, present, strict=True) if there and not rows[row]]
            insertions[name] = [row for row, there in zip(rows, present, strict=True) if not there and rows[row]]
        self._unfinished = removals, insertions
        return removals, insertions

    def _finish(
        self, changes: Mapping[str, Delta[Ids]], before: Stats, ignored: int, shows: Callable[[str], bool]
    ) -> Changes:
        """Ends an epoch: its changes as tuples, and what it cost."""
        with self._maintainer.stats.phase("decode"):
            shown = {name: delta for name, delta in changes.items() if shows(name)}
            inserted = {name: self._backend.decode(name, delta.added) for name, delta in shown.items()}
            deleted = {name: self._backend.decode(name, delta.gone) for name, delta in shown.items()}
        self._maintainer.settle(changes)
        self.last_epoch = _work(self._maintainer.stats.since(before))
        return Changes(
            {name: rows for name, rows in inserted.items() if rows},
            {name: rows for name, rows in deleted.items() if rows},
            ignored,
        )

    def _checked(self, updates: Iterable[Update | tuple[str, str, Tuple]], now: float | None) -> list[Update]:
        if isinstance(updates, Update):
            raise TypeError(f"an epoch is a list of updates: [{updates!r}]")
        listed = [_as_update(update) for update in updates]
        rows: _Rows = {}
        _check_time(now)
        for op, name, row, time in listed:
            if name not in rows:
                self._check_relation(name)
            if op not in ("+", "-"):
                raise ValueError(f"{op} is no operation: + inserts, - deletes")
            _check_time(time)
            rows.setdefault(name, []).append(row)
        for name, each in rows.items():
            check_rows(self.program.relations[name], each, self.program.types)
        return listed

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
        return self.revise(add_rules(self.program, text))

    def drop_rule(self, name: str) -> Changes:
        """Takes a rule out of the program; `session.program.rules` has their names. Gives what that changes, as an epoch.

        Raises ValueError if there is no such rule, and `ProgramError` if the program would not be right without it.
        """
        return self.revise(drop_rule(self.program, name))

    def revise(self, program: Program) -> Changes:
        """Another program for the same base tuples. Gives what that changes, as an epoch.

        Only derivations of rules that come or go are looked at, where relations depend on each other as before.
        Raises ValueError if a relation would have other columns.
        """
        self._mend()
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
        plan, recordings = self._compile(program, kept, sizes)
        stats = self._maintainer.stats.copy()
        with self._all_or_nothing():
            changes = revise(self._maintainer, plan)
            result = self._finish(changes, stats, 0, lambda name: _is_shown(name, wanted, recordings))
        self.program, self.plan, self._wanted, self.recordings = program, plan, wanted, recordings
        self._base = base.union(program.base_relations)
        self.windows.extend(program.relations)
        self.epoch += 1
        self._backend.forget(name for name in tuple(self._backend.tables) if name not in plan.program.relations)
        return result

    def _compile(
        self, program: Program, wanted: frozenset[str] | None, sizes: Mapping[str, int]
    ) -> tuple[Plan, Mapping[str, Recording]]:
        planned, recordings = record_derivations(program, self._recorded)
        if wanted is not None:
            wanted |= {each.relation for each in recordings.values()}
        plan = STRATEGIES[self.strategy].compile(planned, wanted, sizes)
        refuse_unrecordable(program, plan, {each.rule.head.relation for each in recordings.values()})
        return plan, recordings

    def stats(self) -> SessionStats:
        """What has been done since the session began, and what the tables take. `last_epoch` has the work of one epoch."""
        self._mend()
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
        return View(known[name], self.program.types, lambda: self.backend)

    @property
    def tables(self) -> Mapping[str, Relation]:
        """The relations of recorded derivations."""
        return {each.relation: self.plan.program.relations[each.relation] for each in self.recordings.values()}

    def _shows(self, name: str) -> bool:
        return _is_shown(name, self._wanted, self.recordings)

    @property
    def backend(self) -> LocalBackend:
        """The tables, for those who look up more than whole relations. Only `apply` changes them."""
        self._mend()
        return self._backend

    def ranking(self, relation: str) -> Ranking:
        """What the ranks of a relation's rows tell."""
        self._mend()
        stratum = self._maintainer.support_of(relation)
        if stratum is None:
            return Ranking.NONE
        # Where groups are part of the recursion, rows that groups are made of may have been held back.
        is_exact = stratum.ranked_epochs <= 1 and not any(spec.recursive for spec in stratum.plan.aggregates)
        return Ranking.EXACT if is_exact else Ranking.WELL_FOUNDED

    def base(self) -> dict[str, set[Tuple]]:
        """The tuples that were put into base relations from outside."""
        self._mend()
        return self._base_tuples()

    def _base_tuples(self) -> dict[str, set[Tuple]]:
        return {
            name: set(self._backend.decode_keys(name, self._maintainer.external(name))) for name in sorted(self._base)
        }

    def views(self) -> dict[str, set[Tuple]]:
        return {name: set(self.relation(name)) for name in self.program.relations if self._shows(name)}


def _is_shown(name: str, wanted: frozenset[str] | None, recordings: Mapping[str, Recording]) -> bool:
    """Helper relations, whose names hold a `!`, are not shown, but for those of recorded derivations."""
    if any(name == each.relation for each in recordings.values()):
        return True
    return "!" not in name if wanted is None else name in wanted


def _as_update(given: object) -> Update:
    if isinstance(given, Update):
        return given
    if not isinstance(given, tuple) or len(given) not in (3, 4):
        raise ValueError(f"{given!r} is no update: write Update(op, relation, tuple)")
    return Update(*given)


def _check_time(time: object) -> None:
    if time is not None and not (isinstance(time, Real) and isfinite(float(time))):
        raise ValueError(f"{time!r} is no time: a finite number is")


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
