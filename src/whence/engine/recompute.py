"""Strata that are evaluated anew when one of their inputs changes, and compared with what they were.

The answer is the reference evaluator's, so it covers the whole language; the cost is that of evaluating the stratum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic

from whence.engine.protocol import ADDED, BATCH, EXTERNAL, GONE, HIDDEN, QUEUED, SUSPENDED, Backend, Ids, Keys, Ranks
from whence.engine.stats import Stats
from whence.engine.stratum import Delta, Ranking
from whence.lang.program import Stratum
from whence.lang.types import Tuple
from whence.plan.steps import StratumPlan
from whence.reference.evaluate import StratumEvaluator


@dataclass
class RecomputedStratum(Generic[Ids, Keys, Ranks]):
    """`evaluator` holds the tables of all recomputed strata and of what they read."""

    plan: StratumPlan
    stratum: Stratum
    backend: Backend[Ids, Keys, Ranks]
    evaluator: StratumEvaluator
    stats: Stats
    given: dict[str, set[Tuple]] = field(
        default_factory=dict
    )  # from outside; a choice may leave some of it out of the tables

    @property
    def ranking(self) -> Ranking:
        return Ranking.NONE

    def are_outside(self, name: str, keys: Keys) -> list[bool]:
        given = self.given.get(name, set())
        return [row in given for row in self.backend.decode_keys(name, keys)]

    def outside(self, name: str) -> Keys:
        return self.backend.encode(name, list(self.given.get(name, ())))

    def revise(self, *_: object) -> None:
        """There are no derivations to go by."""

    def maintain(
        self,
        removed: Mapping[str, Keys],
        inserted: Mapping[str, Keys],
        inputs: Mapping[str, Delta[Ids]],
        *,
        first: bool,
    ) -> dict[str, Delta[Ids]]:
        with self.stats.phase("recompute"):
            return self._maintain(removed, inserted, inputs, first=first)

    def _maintain(
        self,
        removed: Mapping[str, Keys],
        inserted: Mapping[str, Keys],
        inputs: Mapping[str, Delta[Ids]],
        *,
        first: bool,
    ) -> dict[str, Delta[Ids]]:
        for name, delta in inputs.items():
            rows = self.evaluator.tables[name].rows - set(self.backend.decode(name, delta.gone))
            self.evaluator.tables[name].replace(rows | set(self.backend.decode(name, delta.added)))
        for name, keys in removed.items():
            self.given.setdefault(name, set()).difference_update(self.backend.decode_keys(name, keys))
        for name, keys in inserted.items():
            self.given.setdefault(name, set()).update(self.backend.decode_keys(name, keys))
        if not (first or removed or inserted or inputs):
            return {}
        before = {name: self.evaluator.tables[name].rows for name in self.plan.relations}
        for name in self.plan.relations:
            self.evaluator.tables[name].replace(set(self.given.get(name, ())))
        self.evaluator.guard.restart()
        self.evaluator.evaluate(self.stratum)
        self.stats.rounds += 1
        return self._publish(before, removed, inserted)

    def _publish(
        self, before: Mapping[str, set[Tuple]], removed: Mapping[str, Keys], inserted: Mapping[str, Keys]
    ) -> dict[str, Delta[Ids]]:
        """Brings the backend's tables in line, leaving the rows that went until the epoch is over."""
        changes = {}
        for name in self.plan.relations:
            table = self.backend.table(name)
            rows = self.evaluator.tables[name].rows
            came, went = list(rows - before[name]), list(before[name] - rows)
            keys = self.backend.encode(name, came)
            added = table.add_supports(keys, self.backend.unranked(keys))
            table.change_flags(added, on=ADDED, off=SUSPENDED | QUEUED | HIDDEN | BATCH)
            gone = table.find(self.backend.encode(name, went))
            table.change_flags(gone, on=GONE)
            if name in removed:
                table.change_flags(self.backend.existing(table.find(removed[name])), off=EXTERNAL)
            if name in inserted:
                table.change_flags(self.backend.existing(table.find(inserted[name])), on=EXTERNAL)
            if len(added) or len(gone):
                changes[name] = Delta(added, gone)
        return changes
