"""Support counting with ranks: one epoch of one stratum.

Each derived row keeps how many derivations it has, its rank, and how many of its derivations use only lower-ranked rows of the
stratum. After every epoch each present row has at least one such well-founded derivation; by induction over ranks it follows
from the inputs, so rows that only support each other cannot stay. The cost of an epoch follows what it adds or suspends, not
the size of the views.

1. *Take away.* What lost its inputs loses derivations. A row whose last well-founded derivation goes is suspended, and what
   was derived from it loses derivations in turn, until nothing more is suspended.
2. *Put back and add.* Suspended rows that still have derivations, and what new inputs derive, become present in rounds. A
   row's rank is the round it becomes present in, so all the derivations it has by then are from lower ranks.

Rows of groups follow from an aggregate instead of derivations (see `aggregates`). As the second step goes on, a group may get
a better value; the old one is then taken away, with what followed from it, before the round goes on.

Changed rows are propagated in batches, one relation at a time. Within a rule, literals before the changed one see the state
after the batch and literals behind it the state before: each derivation is met once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from whence.engine.epoch import StratumEpoch
from whence.engine.guard import Guard
from whence.engine.protocol import BATCH, EXTERNAL, GONE, SUSPENDED, Backend, Ids, Keys, Ranks
from whence.engine.stats import Stats
from whence.engine.stratum import Delta, FlaggedStratum, Ranking
from whence.plan.steps import DeltaPlan, StratumPlan


@dataclass
class SupportStratum(FlaggedStratum[Ids, Keys, Ranks]):
    """A stratum under maintenance. `rank` is the highest in use, `ranked_epochs` how many epochs gave out ranks."""

    plan: StratumPlan
    backend: Backend[Ids, Keys, Ranks]
    guard: Guard
    stats: Stats
    rank: int = 0
    ranked_epochs: int = 0
    counts: ClassVar[bool] = True  # whether rows know how many derivations they have

    @property
    def ranking(self) -> Ranking:
        # Where groups are part of the recursion, rows that groups are made of may have been held back.
        is_exact = self.ranked_epochs <= 1 and not any(spec.recursive for spec in self.plan.aggregates)
        return Ranking.EXACT if is_exact else Ranking.WELL_FOUNDED

    def maintain(
        self,
        removed: Mapping[str, Keys],
        inserted: Mapping[str, Keys],
        inputs: Mapping[str, Delta[Ids]],
        *,
        first: bool,
    ) -> dict[str, Delta[Ids]]:
        if self.plan.is_base:
            with self.stats.phase("put back"):
                return self._keep_base(removed, inserted, first=first)
        epoch = self.begin(inputs)
        if not first:  # before the first epoch nothing was derived
            with self.stats.phase("take away"):
                for name, keys in removed.items():
                    epoch.take_out(name, keys)
                epoch.take_away()
        with self.stats.phase("put back"):
            for name, keys in inserted.items():
                epoch.put_in(name, keys)
            if first:
                epoch.is_first = True
                epoch.unmet = self.plan.distinct - inserted.keys()
                epoch.derive_statics()
                epoch.aggregates.begin()
            epoch.put_back()
            self.ranked_epochs += epoch.rounds > 0
            return epoch.finish()

    def _keep_base(
        self, removed: Mapping[str, Keys], inserted: Mapping[str, Keys], *, first: bool
    ) -> dict[str, Delta[Ids]]:
        """The same where nothing is derived: rows are there or not, as they are told."""
        backend, none = self.backend, self.backend.concatenate([])
        if inserted:
            self.rank += 1
            self.ranked_epochs += 1
            self.stats.rounds += 1
            self.guard.check(self.plan.relations, 1, backend.tuples)
        changes = {}
        for name in self.plan.relations:
            table, gone, added = backend.table(name), none, none
            if name in removed:
                gone = table.drop_supports(removed[name], backend.unranked(removed[name]))
                table.change_flags(gone, on=GONE, off=EXTERNAL | SUSPENDED)
                self.stats.suspended += len(gone)
            if name in inserted:
                add = table.add_new if first else table.add_supports
                added = add(inserted[name], backend.unranked(inserted[name]))
                table.activate(added, self.rank)
                table.change_flags(added, on=EXTERNAL, off=BATCH)
            if len(gone) or len(added):
                changes[name] = Delta(added, gone)
        return changes

    def begin(self, inputs: Mapping[str, Delta[Ids]]) -> StratumEpoch[Ids, Keys, Ranks]:
        return StratumEpoch(self, inputs)

    def revise(
        self,
        plan: StratumPlan,
        inputs: Mapping[str, Delta[Ids]],
        dropped: Sequence[DeltaPlan],
        added: Sequence[DeltaPlan],
    ) -> dict[str, Delta[Ids]]:
        """First the rules that stay are maintained without the derivations of those that go; then what those that come derive
        from all there is by then is added.
        """
        new = {each.rule.name for each in added}
        self.plan = replace(plan, deltas=tuple(each for each in plan.deltas if each.rule.name not in new))
        epoch = self.begin(inputs)
        with self.stats.phase("take away"):
            for each in dropped:
                epoch.drop_all(each)
            epoch.take_away()
        with self.stats.phase("put back"):
            epoch.put_back()
            self.plan = epoch.plan = plan
            for each in added:
                epoch.add_all(each)
            epoch.run_rounds()
            self.ranked_epochs += epoch.rounds > 0
            return epoch.finish()

    def adapt(self, plan: StratumPlan, relation: str, gone: Keys, come: Keys) -> dict[str, Delta[Ids]]:
        """One epoch in which the rules become others: derivations go and come by that, a line for each. No input changes."""
        self.plan = plan
        epoch = self.begin({})
        with self.stats.phase("take away"):
            epoch.drop_supports(relation, gone)
            epoch.take_away()
        with self.stats.phase("put back"):
            epoch.put_back()
            epoch.add_supports(relation, come)
            epoch.run_rounds()
            self.ranked_epochs += epoch.rounds > 0
            return epoch.finish()
