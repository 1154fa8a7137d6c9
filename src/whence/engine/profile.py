"""What each rule costs, and each literal of it: counted by standing between the epoch algorithms and a backend.

Who does not ask for a profile has no such thing in the way, so it costs nothing then. With it, what is taken away goes plan by
plan instead of in one call of the backend, so that it is known whose derivations went; and a plan with several joins is run once
more up to each of its steps, which tells how many assignments come out of that step and what it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Generic, cast

from whence.engine.protocol import Backend, BestRounds, Forbid, Gain, Ids, Keys, Ranks, Spread, TableOperations
from whence.engine.stats import Stats
from whence.engine.stratum import Delta
from whence.lang.types import NUMBER
from whence.plan.steps import Build, Compute, Constant, DeltaPlan, Join, StratumPlan

OWN_PHASE = "profiling"  # what telling the steps of plans apart takes
_COUNTED_ONLY = (Constant(0, NUMBER),)  # the head of a plan of which only the number of heads matters


@dataclass
class StepCost:
    """Assignments that came out of a step, and the time it took."""

    rows: int = 0
    seconds: float = 0.0


@dataclass
class PlanCost:
    """What one plan did. `rows` changed where it begins; of its `derivations`, `new` made a row that was not there before.

    `steps` are by place in the plan; those that are not told apart are not in it.
    """

    plan: DeltaPlan
    runs: int = 0
    rows: int = 0
    derivations: int = 0
    new: int = 0
    lost: int = 0  # rows that went
    finding: float = 0.0  # seconds for joins and tests
    storing: float = 0.0  # seconds for putting heads into tables, or taking them out
    steps: dict[int, StepCost] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.finding + self.storing


@dataclass
class StratumCost:
    """Rows that came and went are net, of each epoch."""

    plan: StratumPlan
    epochs: int = 0
    rounds: int = 0
    seconds: float = 0.0
    added: int = 0
    gone: int = 0

    def note(self, changes: Iterable[Delta[Ids]]) -> None:
        for delta in changes:
            self.added += len(delta.added)
            self.gone += len(delta.gone)


class Profile:
    """Filled while views are maintained. Plans that were replaced stay in it, beside those in use."""

    def __init__(self) -> None:
        self.plans: dict[DeltaPlan, PlanCost] = {}
        self.strata: dict[int, StratumCost] = {}
        self.elsewhere: dict[str, float] = {}  # seconds outside of epochs, by what for
        self._storing: PlanCost | None = None

    def restart(self) -> None:
        """Counts from now on only."""
        self.plans.clear()
        self.strata.clear()
        self.elsewhere.clear()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Time that passes outside of epochs."""
        started = perf_counter()
        try:
            yield
        finally:
            self.elsewhere[what] = self.elsewhere.get(what, 0.0) + perf_counter() - started

    @contextmanager
    def stratum(self, plan: StratumPlan, stats: Stats) -> Iterator[StratumCost]:
        """One epoch of a stratum."""
        cost = self.strata.setdefault(id(plan), StratumCost(plan))
        started, rounds, own = perf_counter(), stats.rounds, stats.seconds[OWN_PHASE]
        yield cost
        cost.epochs += 1
        cost.rounds += stats.rounds - rounds
        cost.seconds += perf_counter() - started - (stats.seconds[OWN_PHASE] - own)

    def of(self, plan: DeltaPlan) -> PlanCost:
        return self.plans.setdefault(plan, PlanCost(plan))

    def stored(self, seconds: float, *, new: int = 0, lost: int = 0) -> None:
        """What became of the heads that a plan has just given, if one has."""
        if self._storing is not None:
            self._storing.storing += seconds
            self._storing.new += new
            self._storing.lost += lost

    @contextmanager
    def storing(self, cost: PlanCost) -> Iterator[None]:
        self._storing = cost
        try:
            yield
        finally:
            self._storing = None


def waited(profile: Profile | None, what: str) -> AbstractContextManager[None]:
    return nullcontext() if profile is None else profile.waiting(what)


def watched(profile: Profile | None, plan: StratumPlan, stats: Stats) -> AbstractContextManager[StratumCost | None]:
    return nullcontext() if profile is None else profile.stratum(plan, stats)


class _ProfiledTable(Generic[Ids, Keys, Ranks]):
    """A table that tells what is put in and taken out. All else goes to the table itself."""

    def __init__(self, table: TableOperations[Ids, Keys, Ranks], profile: Profile) -> None:
        self._table, self._profile = table, profile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def __len__(self) -> int:
        return len(self._table)

    def add_supports(self, keys: Keys, ranks: Ranks) -> Ids:
        started = perf_counter()
        made = self._table.add_supports(keys, ranks)
        self._profile.stored(perf_counter() - started, new=len(made))
        return made

    def add_new(self, keys: Keys, ranks: Ranks) -> Ids:
        started = perf_counter()
        made = self._table.add_new(keys, ranks)
        self._profile.stored(perf_counter() - started, new=len(made))
        return made

    def drop_supports(self, keys: Keys, ranks: Ranks) -> Ids:
        started = perf_counter()
        lost = self._table.drop_supports(keys, ranks)
        self._profile.stored(perf_counter() - started, lost=len(lost))
        return lost


class ProfiledBackend(Generic[Ids, Keys, Ranks]):
    """A backend whose plans and tables are watched. All else goes to the backend itself."""

    def __init__(self, backend: Backend[Ids, Keys, Ranks], profile: Profile, stats: Stats) -> None:
        self._backend, self._profile, self._stats = backend, profile, stats
        self._prefixes: dict[DeltaPlan, Sequence[tuple[int, DeltaPlan]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def __setattr__(self, name: str, value: object) -> None:
        # What the engine tells a backend (who watches it, what it has counted) is told the one behind.
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            setattr(self._backend, name, value)

    def table(self, relation: str) -> TableOperations[Ids, Keys, Ranks]:
        watched_table = _ProfiledTable(self._backend.table(relation), self._profile)
        return cast("TableOperations[Ids, Keys, Ranks]", watched_table)

    def scratch(self) -> Any:
        return ProfiledBackend(self._backend.scratch(), self._profile, self._stats)

    def take_over(self, relation: str, other: Any) -> tuple[Ids, Ids]:
        return self._backend.take_over(relation, other._backend)  # noqa: SLF001 - another of this class

    def spread_loss(self, *_: object, **__: object) -> Spread[Ids] | None:
        return None

    def spread_gain(self, *_: object, **__: object) -> Gain[Ids] | None:
        return None

    def best_rounds(self, *_: object) -> BestRounds[Ids] | None:
        return None

    def run_adding(self, plan: DeltaPlan, ids: Ids, forbid: Forbid) -> Iterator[tuple[Keys, Ranks]]:
        return self.run(plan, ids, forbid)

    def run(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> Iterator[tuple[Keys, Ranks]]:
        cost = self._profile.of(plan)
        with self._stats.phase(OWN_PHASE):
            spent = self._run_prefixes(plan, ids, forbid, cost)
        before, found = cost.finding, cost.derivations
        cost.runs += 1
        cost.rows += 1 if ids is None else len(ids)
        batches = self._backend.run(plan, ids, forbid)
        while True:
            started = perf_counter()
            batch = next(batches, None)
            cost.finding += perf_counter() - started
            if batch is None:
                break
            cost.derivations += len(batch[0])
            with self._profile.storing(cost):
                yield batch
        if plan.steps:
            last = cost.steps.setdefault(len(plan.steps) - 1, StepCost())
            last.rows += cost.derivations - found
            last.seconds += max(0.0, cost.finding - before - spent)

    def _run_prefixes(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid, cost: PlanCost) -> float:
        """Runs the plan up to each of its steps; what the last of them took."""
        if plan not in self._prefixes:
            self._prefixes[plan] = _prefixes(plan, getattr(self._backend, "functions", {}))
        before, counted = 0.0, self._backend.enumerated
        for at, prefix in self._prefixes[plan]:
            started = perf_counter()
            rows = sum(len(keys) for keys, _ in self._backend.run(prefix, ids, forbid))
            spent = perf_counter() - started
            step = cost.steps.setdefault(at, StepCost())
            step.rows += rows
            step.seconds += max(0.0, spent - before)
            before = spent
        self._backend.enumerated = counted
        return before


def _prefixes(plan: DeltaPlan, functions: Mapping[str, object]) -> Sequence[tuple[int, DeltaPlan]]:
    """The plan up to each of its steps but the last. Functions of users are called once, so nothing behind one is told apart."""
    found: list[tuple[int, DeltaPlan]] = []
    if not any(isinstance(step, Join) for step in plan.steps[:-1]):
        return found
    for at, step in enumerate(plan.steps[:-1]):
        if isinstance(step, Compute) and step.functor in functions:
            break
        if not isinstance(step, Compute | Build):  # they make no row more or less
            found.append((at, replace(plan, steps=plan.steps[: at + 1], head=_COUNTED_ONLY)))
    return found
