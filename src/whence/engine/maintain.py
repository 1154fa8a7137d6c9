"""Epochs: a batch of updates taken through the strata in order, each stratum handing its net changes to those above."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic

from whence.engine.aggregates import AggregateStratum
from whence.engine.guard import Guard
from whence.engine.protocol import ADDED, EXTERNAL, Backend, Ids, Keys, Ranks
from whence.engine.recompute import RecomputedStratum
from whence.engine.support import Delta, Stats, SupportStratum
from whence.lang.types import Tuple
from whence.plan.compile import Plan
from whence.reference.evaluate import StratumEvaluator


class Maintainer(Generic[Ids, Keys, Ranks]):
    """The views of one plan, kept exact."""

    def __init__(self, plan: Plan, backend: Backend[Ids, Keys, Ranks], guard: Guard) -> None:
        self.plan = plan
        self.backend = backend
        self.guard = guard
        evaluator = StratumEvaluator(plan.program, guard.limits)
        self.strata: list[
            SupportStratum[Ids, Keys, Ranks] | AggregateStratum[Ids, Keys, Ranks] | RecomputedStratum[Ids, Keys, Ranks]
        ] = []
        for stratum, each in zip(plan.program.strata, plan.strata, strict=True):
            if each.aggregate is not None:
                self.strata.append(AggregateStratum(each, each.aggregate, backend))
            elif each.native:
                self.strata.append(SupportStratum(each, backend, guard))
            else:
                self.strata.append(RecomputedStratum(each, stratum, backend, evaluator))
        self.started = False

    def apply(
        self, removals: Mapping[str, list[Tuple]], insertions: Mapping[str, list[Tuple]]
    ) -> dict[str, Delta[Ids]]:
        """One epoch. What is taken out must be there from outside, and what is put in must not. `settle` ends it."""
        return self.apply_encoded(
            {name: self.backend.encode(name, rows) for name, rows in removals.items() if rows},
            {name: self.backend.encode(name, rows) for name, rows in insertions.items() if rows},
        )

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
                changes |= stratum.maintain(out, put, inputs, first=not self.started)
        self.started = True
        return changes

    def settle(self, changes: Mapping[str, Delta[Ids]]) -> None:
        """Forgets the state before the epoch."""
        for name, delta in changes.items():
            table = self.backend.table(name)
            table.change_flags(delta.added, off=ADDED)
            table.erase(delta.gone)

    def is_external(self, name: str, keys: Keys) -> list[bool]:
        """For each row, whether it was put in from outside."""
        return self.backend.have_flag(name, keys, EXTERNAL)

    @property
    def stats(self) -> Stats:
        total = Stats()
        for stratum in self.strata:
            total.rounds += stratum.stats.rounds
            total.suspended += stratum.stats.suspended
            total.rederived += stratum.stats.rederived
        return total
