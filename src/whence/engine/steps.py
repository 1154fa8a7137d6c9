"""An epoch in steps, for a stratum whose rows have support from elsewhere too.

A *support* from a sender is one derivation more, of which only the rank is known. It is counted beside the derivations made
here, and it is well-founded if its rank is below that of the row: `support` says why nothing can hold itself up then, and it
holds across senders because ranks are never given out below one that was heard of. What makes one epoch of several engines is
the order of the steps:

1. *Take away*, here and wherever what goes has been sent to, until nothing more is suspended anywhere.
2. *Put back*, here and wherever what comes is sent to. Rows that were suspended come back with what supports are left.

Where a group gets another value, putting back has to take away the old one: it stops there, and goes on after another first step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple

from whence.engine.epoch import StratumEpoch
from whence.engine.maintain import Maintainer
from whence.engine.protocol import Ids, Keys, Ranks
from whence.engine.stratum import Delta, MaintainedStratum
from whence.engine.support import SupportStratum


class Effect(NamedTuple, Generic[Ids]):
    """Rows that became present with a rank, or, if it is None, that were suspended."""

    relation: str
    ids: Ids
    rank: int | None


class SupportBatch(NamedTuple, Generic[Keys, Ranks]):
    """Supports for rows of one relation, one a line; `highest` is the largest of the ranks."""

    keys: Keys
    ranks: Ranks
    highest: int


class _SteppedEpoch(StratumEpoch[Ids, Keys, Ranks]):
    """One epoch of one stratum. Steps may be asked for again and again, as long as supports come and go."""

    is_stepped = True

    def __init__(
        self, stratum: SupportStratum[Ids, Keys, Ranks], inputs: Mapping[str, Delta[Ids]], *, first: bool
    ) -> None:
        super().__init__(stratum, inputs)
        self.first = first
        self.is_taken = first  # before the first epoch nothing was derived
        self.is_put = False
        self.effects: list[Effect[Ids]] = []

    def step_away(self, removed: Mapping[str, Keys], withdrawn: Mapping[str, SupportBatch[Keys, Ranks]]) -> None:
        for name, keys in removed.items():
            self.take_out(name, keys)
        for name, batch in withdrawn.items():
            self._note_lost(name, self.backend.table(name).drop_supports(batch.keys, batch.ranks))
        if self.is_taken:
            self._propagate_lost()
        else:
            self.is_taken = True
            self.take_away()

    def step_back(self, inserted: Mapping[str, Keys], given: Mapping[str, SupportBatch[Keys, Ranks]]) -> None:
        for name, keys in inserted.items():
            self.put_in(name, keys)
        for name, batch in given.items():
            self.stratum.rank = max(self.stratum.rank, batch.highest)
            self._note_queued(name, self.backend.table(name).add_supports(batch.keys, batch.ranks))
        if not self.is_put:
            self.is_put = True
            if self.first:
                self.derive_statics()
                self.aggregates.begin()
            self.put_inputs()
        self._queue_derivable()
        while self._has_more:
            if self.aggregates.is_pending and not self._settle_groups():
                return
            if any(self.queue.values()):
                self._round()

    @property
    def is_pending(self) -> bool:
        # What was suspended by a later step, when nothing else was left to do, may still have derivations.
        return self._has_more or any(self.put_back_from.values())

    @property
    def _has_more(self) -> bool:
        return self.aggregates.is_pending or any(self.queue.values())

    def _settle_groups(self) -> bool:
        with self.stratum.stats.phase("aggregate"):
            is_idle = not any(self.queue.values())
            if self.aggregates.settle_in_steps(is_idle, self._remove, self._insert):
                return True
            self._propagate_lost()
            return False

    def _frontier(self) -> dict[str, Ids]:
        return self._next_batches()

    def _make_present(self, name: str, batch: Ids) -> None:
        super()._make_present(name, batch)
        self._tell(name, batch, self.stratum.rank)

    def _note_suspended(self, name: str, batch: Ids) -> None:
        super()._note_suspended(name, batch)
        self._tell(name, batch, None)

    def _tell(self, name: str, batch: Ids, rank: int | None) -> None:
        if len(batch):
            self.effects.append(Effect(name, batch, rank))


class SteppedEpoch(Generic[Ids, Keys, Ranks]):
    """One epoch of a maintainer, one stratum after the other, each in steps. The maintainer's `settle` ends it.

    Strata that are evaluated anew are so in one step: they take no supports, and what they derive has rank 0.
    """

    def __init__(
        self, maintainer: Maintainer[Ids, Keys, Ranks], removed: Mapping[str, Keys], inserted: Mapping[str, Keys]
    ) -> None:
        self.maintainer = maintainer
        self.changes: dict[str, Delta[Ids]] = {}
        self.at = 0
        self._removed, self._inserted = removed, inserted
        self._epoch: _SteppedEpoch[Ids, Keys, Ranks] | None = None
        self._is_evaluated = False
        maintainer.guard.restart()

    @property
    def stratum(self) -> MaintainedStratum[Ids, Keys, Ranks] | None:
        """The stratum that steps are about; None after the last."""
        strata = self.maintainer.strata
        return strata[self.at] if self.at < len(strata) else None

    @property
    def is_pending(self) -> bool:
        """Whether `put_back` has something left to do by itself."""
        if self.stratum is None:
            return False
        if not self.stratum.plan.native:
            return not self._is_evaluated and self._is_touched
        return self._is_touched if self._epoch is None else self._epoch.is_pending or not self._epoch.is_put

    def take_away(self, withdrawn: Mapping[str, SupportBatch[Keys, Ranks]]) -> list[Effect[Ids]]:
        with self.maintainer.stats.phase("take away"):
            if withdrawn or self._is_touched:
                epoch = self._opened()
                if epoch is not None:
                    epoch.step_away({} if epoch.is_taken else self._own(self._removed), withdrawn)
            return self._told()

    def put_back(self, given: Mapping[str, SupportBatch[Keys, Ranks]]) -> list[Effect[Ids]]:
        if self.stratum is not None and not self.stratum.plan.native:
            return self._evaluated(self.stratum)
        with self.maintainer.stats.phase("put back"):
            if given or self._epoch is not None or self._is_touched:
                epoch = self._opened()
                if epoch is not None:
                    epoch.step_back({} if epoch.is_put else self._own(self._inserted), given)
            return self._told()

    def close(self) -> None:
        """Ends the stratum: those above see what it changed."""
        if self._epoch is not None:
            self._epoch.stratum.ranked_epochs += self._epoch.rounds > 0
            self.changes |= self._epoch.finish()
        self._epoch, self._is_evaluated = None, False
        self.at += 1
        if self.stratum is None:
            self.maintainer.started = True
            self.maintainer.stats.derivations = self.maintainer.backend.enumerated

    def _evaluated(self, stratum: MaintainedStratum[Ids, Keys, Ranks]) -> list[Effect[Ids]]:
        if self._is_evaluated or not self._is_touched:
            return []
        self._is_evaluated = True
        changes = stratum.maintain(
            self._own(self._removed), self._own(self._inserted), self._inputs, first=not self.maintainer.started
        )
        self.changes |= changes
        told: list[Effect[Ids]] = []
        for name, delta in changes.items():
            told += [Effect(name, ids, rank) for ids, rank in ((delta.gone, None), (delta.added, 0)) if len(ids)]
        return told

    @property
    def _is_touched(self) -> bool:
        """Whether something has changed for this stratum, here."""
        if self.stratum is None:
            return False
        is_given = any(name in side for side in (self._removed, self._inserted) for name in self.stratum.plan.relations)
        return is_given or bool(self._inputs) or not self.maintainer.started

    @property
    def _inputs(self) -> dict[str, Delta[Ids]]:
        assert self.stratum is not None
        return {name: self.changes[name] for name in self.stratum.plan.inputs if name in self.changes}

    def _own(self, rows: Mapping[str, Keys]) -> dict[str, Keys]:
        assert self.stratum is not None
        return {name: rows[name] for name in self.stratum.plan.relations if name in rows}

    def _opened(self) -> _SteppedEpoch[Ids, Keys, Ranks] | None:
        stratum = self.stratum
        if self._epoch is None and isinstance(stratum, SupportStratum):
            self._epoch = _SteppedEpoch(stratum, self._inputs, first=not self.maintainer.started)
        return self._epoch

    def _told(self) -> list[Effect[Ids]]:
        if self._epoch is None:
            return []
        told, self._epoch.effects = self._epoch.effects, []
        return told
