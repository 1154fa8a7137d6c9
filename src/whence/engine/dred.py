"""Delete and rederive (DRed): the field's baseline for deletions in recursive views, over the same plans and tables.

What follows in any way from rows that went is taken away; what can still be derived from the rest is then put back, each row
being looked up in every rule that could derive it. Counts and ranks are not asked. Where rows have many derivations most of
what is taken away comes back, and that is what it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from whence.engine.epoch import StratumEpoch
from whence.engine.protocol import EXTERNAL, GONE, HIDDEN, QUEUED, SUSPENDED, Ids, Keys, Ranks
from whence.engine.stratum import Delta, Ranking
from whence.engine.support import SupportStratum
from whence.plan.delta_plans import rederivation
from whence.plan.steps import Check, DeltaPlan, Join


@dataclass
class DredStratum(SupportStratum[Ids, Keys, Ranks]):
    """A stratum under maintenance by DRed."""

    backwards: dict[int, DeltaPlan] = field(default_factory=dict)
    counts: ClassVar[bool] = False

    @property
    def ranking(self) -> Ranking:
        return Ranking.NONE

    def begin(self, inputs: Mapping[str, Delta[Ids]]) -> StratumEpoch[Ids, Keys, Ranks]:
        return _DredEpoch(self, inputs)

    def rederivations(self, relation: str) -> Iterator[DeltaPlan]:
        """For each rule of a relation, the plan that finds which of given rows it derives."""
        members = frozenset(self.plan.relations)
        rules = {id(plan.rule): plan.rule for plan in (*self.plan.statics, *self.plan.deltas)}
        for number, rule in rules.items():
            if rule.head.relation == relation:
                if number not in self.backwards:
                    self.backwards[number] = rederivation(rule, members)
                yield self.backwards[number]


class _DredEpoch(StratumEpoch[Ids, Keys, Ranks]):
    stratum: DredStratum[Ids, Keys, Ranks]
    is_counted = False

    def take_out(self, name: str, keys: Keys) -> None:
        self.backend.table(name).change_flags(self.backend.table(name).find(keys), off=EXTERNAL)
        self._suspend(name, keys)

    def _drop(self, plan: DeltaPlan, keys: Keys, _ranks: Ranks) -> None:
        self._suspend(plan.rule.head.relation, keys)

    def _suspend(self, name: str, keys: Keys) -> None:
        table = self.backend.table(name)
        found = self.backend.distinct(self.backend.existing(table.find(keys, forbid=EXTERNAL)))
        # Rows on their way in may have lost what brought them: they are looked up again.
        waiting = table.with_flags(found, on=QUEUED)
        table.change_flags(waiting, off=QUEUED)
        self.put_back_from[name].append(waiting)
        present = table.with_flags(found, off=SUSPENDED)
        table.change_flags(present, on=SUSPENDED)
        self._note_lost(name, present)

    def _queue_derivable(self) -> None:
        def forbid(step: Join | Check) -> int:
            return HIDDEN if step.relation in self.members else GONE

        batches, self.put_back_from = self.put_back_from, {name: [] for name in self.members}
        for name, listed in batches.items():
            table = self.backend.table(name)
            rows = table.with_flags(self.backend.distinct(self.backend.concatenate(listed)), on=SUSPENDED, off=QUEUED)
            for plan in self.stratum.rederivations(name) if len(rows) else ():
                for keys, _ in self.backend.run(plan, rows, forbid):
                    back = table.with_flags(self.backend.distinct(table.find(keys)), off=QUEUED)
                    table.change_flags(back, on=QUEUED)
                    self._note_queued(name, back)

    def _ready(self, name: str, batch: Ids) -> Ids:
        return self.backend.table(name).with_flags(self.backend.distinct(batch), on=QUEUED)
