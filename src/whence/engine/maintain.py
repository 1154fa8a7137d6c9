"""Epochs: a batch of updates taken through the strata in order, each stratum handing its net changes to those above."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, cast

from whence.engine.guard import Guard
from whence.engine.profile import Profile, ProfiledBackend, watched
from whence.engine.protocol import EXTERNAL, Backend, Ids, Keys, Ranks
from whence.engine.recompute import RecomputedStratum
from whence.engine.stats import Stats
from whence.engine.stratum import Delta, MaintainedStratum, Ranking
from whence.engine.support import SupportStratum
from whence.lang.program import Stratum
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan.compile import Plan
from whence.plan.steps import StratumPlan
from whence.reference.evaluate import StratumEvaluator

# Makes a stratum with delta plans, of which nothing is known yet.
Native = Callable[[StratumPlan, Backend[Ids, Keys, Ranks], Guard, Stats], MaintainedStratum[Ids, Keys, Ranks]]


def absorb(
    plan: StratumPlan, backend: Backend[Ids, Keys, Ranks], guard: Guard, stats: Stats
) -> MaintainedStratum[Ids, Keys, Ranks]:
    """Maintains what rules derive by absorption. Base relations have nothing to absorb, aggregates no formulas."""
    if plan.aggregates or not (plan.deltas or plan.statics):
        return SupportStratum(plan, backend, guard, stats)
    # Decision diagrams take longer to load than all the rest.
    from whence.engine.absorption import AbsorptionStratum  # noqa: PLC0415

    return AbsorptionStratum(plan, backend, guard, stats)


class Maintainer(Generic[Ids, Keys, Ranks]):
    """The views of one plan, kept exact. `native` is how strata with delta plans are maintained; a `profile` is filled."""

    def __init__(
        self,
        plan: Plan,
        backend: Backend[Ids, Keys, Ranks],
        guard: Guard,
        native: Native[Ids, Keys, Ranks] = SupportStratum,
        stats: Stats | None = None,
        *,
        profile: Profile | None = None,
    ) -> None:
        self.plan = plan
        self.native = native
        self.profile = profile
        self.stats = stats or Stats()
        if profile is not None:
            backend = cast("Backend[Ids, Keys, Ranks]", ProfiledBackend(backend, profile, self.stats))
        self.backend = backend
        self.guard = guard
        backend.watch, guard.sizes, guard.round_trip = guard, backend.sizes, backend.round_trip
        self.evaluator = StratumEvaluator(plan.program, guard.limits)
        self.strata: list[MaintainedStratum[Ids, Keys, Ranks]] = [
            self.make(stratum, each, backend, self.evaluator)
            for stratum, each in zip(plan.program.strata, plan.strata, strict=True)
        ]
        self.started = False

    def make(
        self, stratum: Stratum, plan: StratumPlan, backend: Backend[Ids, Keys, Ranks], evaluator: StratumEvaluator
    ) -> MaintainedStratum[Ids, Keys, Ranks]:
        """A stratum that nothing is known of yet."""
        if plan.native:
            return self.native(plan, backend, self.guard, self.stats)
        return RecomputedStratum(plan, stratum, backend, evaluator, self.stats)

    def apply(
        self, removals: Mapping[str, list[Tuple]], insertions: Mapping[str, list[Tuple]]
    ) -> dict[str, Delta[Ids]]:
        """One epoch. What is taken out must be there from outside, and what is put in must not. `settle` ends it."""
        with self.stats.phase("collect"):
            removed = {name: self.backend.encode(name, rows) for name, rows in removals.items() if rows}
            inserted = {name: self.backend.encode(name, rows) for name, rows in insertions.items() if rows}
        return self.apply_encoded(removed, inserted)

    def apply_encoded(self, removed: Mapping[str, Keys], inserted: Mapping[str, Keys]) -> dict[str, Delta[Ids]]:
        """The same, for rows as the backend writes them."""
        self.guard.restart()
        changes: dict[str, Delta[Ids]] = {}
        for stratum in self.strata:
            own = stratum.plan.relations
            out = {name: removed[name] for name in own if name in removed}
            put = {name: inserted[name] for name in own if name in inserted}
            inputs = {name: changes[name] for name in stratum.plan.inputs if name in changes}
            if out or put or inputs or not self.started:
                with watched(self.profile, stratum.plan, self.stats) as cost:
                    made = stratum.maintain(out, put, inputs, first=not self.started)
                    if cost is not None:
                        cost.note(made.values())
                changes |= made
        self.started = True
        self.stats.derivations = self.backend.enumerated
        return changes

    def limit(self, limits: Limits) -> None:
        """Other limits from now on."""
        self.guard.limits = self.evaluator.guard.limits = limits

    def settle(self, changes: Mapping[str, Delta[Ids]]) -> None:
        """Forgets the state before the epoch."""
        with self.stats.phase("settle"):
            for name, delta in changes.items():
                table = self.backend.table(name)
                table.keep_added(delta.added)
                table.erase(delta.gone)
        self.guard.sample = None  # which holds on to all rows of the epoch

    def are_outside(self, name: str, keys: Keys) -> list[bool]:
        """For each row, whether it was put in from outside."""
        stratum = self.stratum_of(name)
        return self.backend.have_flag(name, keys, EXTERNAL) if stratum is None else stratum.are_outside(name, keys)

    def outside(self, name: str) -> Keys:
        """The rows that were put in from outside."""
        stratum = self.stratum_of(name)
        return self.backend.rows(name, having=EXTERNAL) if stratum is None else stratum.outside(name)

    def keeps_base(self, name: str) -> bool:
        """Whether all that its stratum does with rows from outside is to keep them."""
        stratum = self.stratum_of(name)
        return isinstance(stratum, SupportStratum) and stratum.plan.is_base

    def ranking(self, name: str) -> Ranking:
        stratum = self.stratum_of(name)
        return Ranking.NONE if stratum is None else stratum.ranking

    def stratum_of(self, name: str) -> MaintainedStratum[Ids, Keys, Ranks] | None:
        """None for a relation that is not in the plan yet."""
        return next((stratum for stratum in self.strata if name in stratum.plan.relations), None)
