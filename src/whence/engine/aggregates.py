"""Aggregates over strata that are complete: the groups that a change touches are aggregated again.

The cost of an epoch is the size of the groups that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from whence.engine.protocol import ADDED, BATCH, GONE, HIDDEN, QUEUED, SUSPENDED, Backend, Ids, Keys, Ranks
from whence.engine.stats import Stats
from whence.engine.support import Delta
from whence.plan.extract_aggregates import AggregateSpec
from whence.plan.steps import StratumPlan


@dataclass
class AggregateStratum(Generic[Ids, Keys, Ranks]):
    plan: StratumPlan
    spec: AggregateSpec
    backend: Backend[Ids, Keys, Ranks]
    stats: Stats

    def maintain(
        self,
        _removed: Mapping[str, Keys],
        _inserted: Mapping[str, Keys],
        inputs: Mapping[str, Delta[Ids]],
        *,
        first: bool,
    ) -> dict[str, Delta[Ids]]:
        with self.stats.phase("aggregate"):
            return self._maintain(inputs, first=first)

    def _maintain(self, inputs: Mapping[str, Delta[Ids]], *, first: bool) -> dict[str, Delta[Ids]]:
        (name,) = self.plan.relations
        table = self.backend.table(name)
        touched = self.backend.group_keys(
            self.spec, {source: (delta.added, delta.gone) for source, delta in inputs.items()}, first=first
        )
        if not len(touched):
            return {}
        self.stats.rounds += 1
        before = self.backend.under_keys(name, touched)
        after = self.backend.aggregate(self.spec, touched)
        stay = table.with_flags(self.backend.existing(table.find(after)), off=0)
        gone = self.backend.without(before, stay)
        added = self.backend.without(self._claim(name, after), stay)
        table.change_flags(added, on=ADDED, off=SUSPENDED | QUEUED | HIDDEN | BATCH)
        table.change_flags(gone, on=GONE)
        return {name: Delta(added, gone)} if len(added) or len(gone) else {}

    def _claim(self, name: str, rows: Keys) -> Ids:
        """The rows' numbers, made where they were not there."""
        table = self.backend.table(name)
        table.add_supports(rows, self.backend.unranked(rows))
        return table.find(rows)
