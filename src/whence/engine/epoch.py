"""One epoch of one stratum, by support counting with ranks: what `support` says, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Generic

from whence.engine.aggregates import Aggregates
from whence.engine.protocol import (
    ADDED,
    BATCH,
    EXTERNAL,
    GONE,
    HIDDEN,
    QUEUED,
    SUSPENDED,
    BestRounds,
    Enough,
    Forbid,
    Ids,
    Keys,
    Ranks,
    Unsettled,
)
from whence.engine.stratum import Delta
from whence.plan.steps import Check, DeltaPlan, Join

if TYPE_CHECKING:
    from whence.engine.support import SupportStratum


def _now(_: Join | Check) -> int:
    """Sees the state after the epoch."""
    return GONE


class StratumEpoch(Generic[Ids, Keys, Ranks]):
    """One epoch of one stratum."""

    is_counted = True  # a row is lost with its last well-founded derivation, not with the first that goes
    is_stepped = False  # rows may be lost while others are put back, even where there are no groups

    def __init__(self, stratum: SupportStratum[Ids, Keys, Ranks], inputs: Mapping[str, Delta[Ids]]) -> None:
        self.stratum = stratum
        self.backend = stratum.backend
        self.plan = stratum.plan
        self.inputs = inputs
        self.members = frozenset(stratum.plan.relations)
        self.lost: dict[str, list[Ids]] = {name: [] for name in stratum.plan.relations}
        self.queue: dict[str, list[Ids]] = {name: [] for name in stratum.plan.relations}
        self.suspended: dict[str, list[Ids]] = {name: [] for name in stratum.plan.relations}
        self.aggregates = Aggregates(stratum.plan.aggregates, self.members, stratum.backend)
        self.put_back_from: dict[str, list[Ids]] = {name: [] for name in stratum.plan.relations}
        self.made: dict[str, list[Ids]] = {name: [] for name in stratum.plan.relations}
        self.offered: dict[
            str, list[Ids]
        ] = {}  # rows that groups may get their values from, where the backend has rounds of them
        self.rounds = 0
        self.unmet: Set[str] = frozenset()  # relations of which no row is derived that is there already
        # Which inputs have been propagated in the current phase: as positive and as negated literals.
        self.done: set[tuple[str, bool]] = set()
        self.is_settled = False  # all of them, in both phases
        self.is_first = False  # nothing was derived before
        self.fresh = {name for name, delta in inputs.items() if len(delta.added) == len(self.backend.table(name))}

    # -- from outside

    def take_out(self, name: str, keys: Keys) -> None:
        table = self.backend.table(name)
        table.change_flags(table.find(keys), off=EXTERNAL)
        self._note_lost(name, table.drop_supports(keys, self.backend.unranked(keys)))

    def put_in(self, name: str, keys: Keys) -> None:
        self._propagate_lost()  # if that was left to the rounds
        table = self.backend.table(name)
        self._note_queued(name, table.add_supports(keys, self.backend.unranked(keys)))
        table.change_flags(table.find(keys), on=EXTERNAL)

    def derive_statics(self) -> None:
        for plan in self.plan.statics:
            for keys, ranks in self.backend.run(plan, None, _now):
                self._add(plan, keys, ranks)

    def drop_supports(self, name: str, keys: Keys) -> None:
        self._note_lost(name, self.backend.table(name).drop_supports(keys, self.backend.unranked(keys)))

    def add_supports(self, name: str, keys: Keys) -> None:
        self._note_queued(name, self.backend.table(name).add_supports(keys, self.backend.unranked(keys)))

    # -- whole rules

    def drop_all(self, plan: DeltaPlan) -> None:
        """Takes away every derivation that a rule has from the rows that were there before the epoch."""
        for keys, ranks in self._derive_all(plan, ADDED):
            self._drop(plan, keys, ranks)

    def add_all(self, plan: DeltaPlan) -> None:
        """Adds every derivation that a rule has from the rows that are there now."""
        for keys, ranks in self._derive_all(plan, GONE):
            self._add(plan, keys, ranks)

    def _derive_all(self, plan: DeltaPlan, outside: int) -> Iterator[tuple[Keys, Ranks]]:
        def forbid(relation: str) -> int:
            return HIDDEN if relation in self.members else outside

        rows = None if plan.scan is None else self.backend.table(plan.scan.relation).ids(forbid(plan.scan.relation))
        return self.backend.run(plan, rows, lambda step: forbid(step.relation))

    # -- take away

    def take_away(self) -> None:
        self.done = set()
        for name, delta in self.inputs.items():
            self._propagate_input(name, delta.gone, negated=False, drop=True)
            self._propagate_input(name, delta.added, negated=True, drop=True)
            for groups in self.aggregates.over(name):
                if groups.spec.recursive and len(delta.gone):
                    self._remove(groups.spec.output, groups.unsupported(name, delta.gone, is_settled=False))
        if self._brings_nothing() and self._best_rounds() is not None:
            return  # the rounds begin with that
        self._propagate_lost()

    def _brings_nothing(self) -> bool:
        """Whether nothing follows from what came to the inputs and what is absent from them now."""
        return not any(len(delta.added) or self._plans(name, negated=True) for name, delta in self.inputs.items())

    def _propagate_lost(self) -> bool:
        """Takes away what followed from rows that lost their support; whether there were any."""
        any_lost = False
        while name := next((name for name, batches in self.lost.items() if batches), None):
            any_lost = True
            if not self._propagate_small_batches():
                self._propagate_batch(name)
        return any_lost

    def _propagate_small_batches(self) -> bool:
        """As many batches as the backend takes in one call; whether it took any."""
        plans = self.plan.onward
        if (best := self._best_rounds()) is not None:
            self._lose_best(best)
            return True
        if not plans or self.plan.aggregates:  # groups have a say after each batch
            return False
        seen = [(plan, self._seen_while_taking(plan)) for plan in plans]
        spread = self.backend.spread_loss(seen, self.lost, is_counted=self.is_counted)
        if spread is None or not spread.done:
            return False
        before = sum(len(batch) for batches in self.lost.values() for batch in batches)
        self.lost = {name: [spread.left[name]] if name in spread.left else [] for name in self.lost}
        for name, batch in spread.done.items():
            self._note_suspended(name, batch)
        found = sum(map(len, spread.done.values())) + sum(map(len, spread.left.values()))
        self.stratum.stats.suspended += found - before
        return True

    def _lose_best(self, best: BestRounds[Ids]) -> None:
        before = sum(len(batch) for batches in self.lost.values() for batch in batches)
        found = best.lose(self.lost, [self._seen_while_taking(plan) for plan in self.plan.onward])
        self.lost = {name: [] for name in self.lost}
        for name, batch in found.items():
            self._note_suspended(name, batch)
        self.stratum.stats.suspended += sum(map(len, found.values())) - before

    def _propagate_batch(self, name: str) -> None:
        batch = self.backend.concatenate(self.lost[name])
        self.lost[name] = []
        self._note_suspended(name, batch)
        table = self.backend.table(name)
        table.change_flags(batch, on=BATCH)
        for plan in self._plans(name, negated=False):
            for keys, ranks in self.backend.run(plan, batch, self._seen_while_taking(plan)):
                self._drop(plan, keys, ranks)
        table.change_flags(batch, on=HIDDEN, off=BATCH)
        for groups in self.aggregates.over(name):
            self._remove(groups.spec.output, groups.unsupported(name, batch, is_settled=self.is_settled))
        lost = self.aggregates.of(name)
        if lost is not None:
            lost.lose(batch)

    def _remove(self, name: str, rows: Keys) -> None:
        """Rows of groups that have no value any more, or another."""
        if len(rows):
            self.drop_supports(name, rows)

    def _seen_while_taking(self, plan: DeltaPlan) -> Forbid:
        assert plan.scan is not None
        driver = plan.scan.relation

        def forbid(step: Join | Check) -> int:
            if step.relation not in self.members:
                return self._input_view(step, plan, taking=True)
            if step.relation == driver and step.position < plan.position:
                return HIDDEN | BATCH
            return HIDDEN

        return forbid

    # -- put back and add

    def put_back(self) -> None:
        self.put_inputs()
        self.run_rounds()

    def put_inputs(self) -> None:
        self.done = set()
        for name, delta in self.inputs.items():
            self._propagate_input(name, delta.added, negated=False, drop=False)
            self._propagate_input(name, delta.gone, negated=True, drop=False)
            for groups in self.aggregates.over(name):
                groups.touch(name, delta.added, delta.gone)
        self.is_settled = True

    def run_rounds(self) -> None:
        if (best := self._best_rounds()) is not None:
            self._run_best(best)
            return
        self._queue_derivable()
        while any(self.queue.values()) or self.aggregates.is_pending:
            self._reconsider_tables()
            if not self._run_small_rounds():
                self._round()

    def _reconsider_tables(self) -> Mapping[str, Ids]:
        """Between rounds, all row numbers of this stratum that anybody holds are listed here, and rows may get others."""
        found: dict[str, Ids] = {}
        for name in () if self.is_stepped else self.plan.relations:  # in steps, those who are told of effects hold some
            moved = self.backend.table(name).reconsider()
            if moved is not None:
                found[name] = moved
                for batches in (self.lost, self.queue, self.suspended, self.put_back_from, self.made, self.offered):
                    if name in batches:
                        batches[name] = [self.backend.renumbered(batch, moved) for batch in batches[name]]
                self._renew_sample(name)
        return found

    def _renew_sample(self, name: str) -> None:
        guard, queued = self.stratum.guard, self.queue[name]
        if guard.rule is not None and guard.rule.head.relation == name:
            guard.sample = (lambda: self.backend.last(name, queued[-1])) if queued else None

    def _run_small_rounds(self) -> bool:
        """As many rounds as the backend takes in one call; whether it took any."""
        plans = self.plan.onward
        if not plans or self.plan.aggregates:  # groups have a say after each round
            return False
        backend = self.backend
        seen = [(plan, self._seen_while_adding(plan)) for plan in plans]
        queued, self.queue = self.queue, {name: [] for name in self.queue}
        gain = backend.spread_gain(seen, queued, self.stratum.rank, self._enough(), self._reconsider_tables)
        if gain is None or not gain.rounds:
            self.queue = queued
            return False
        self.queue = {name: [gain.left[name]] if name in gain.left else [] for name in self.queue}
        for name, batch in gain.done.items():
            self.made[name].append(batch)
        self._note_rounds(gain.rounds, self.stratum.rank + gain.rounds)
        if gain.last is not None:
            relation = gain.last.rule.head.relation
            self._tell_guard(gain.last, (gain.left if relation in gain.left else gain.done)[relation])
        self.stratum.guard.check(self.plan.relations, self.rounds, backend.tuples)
        return True

    def _enough(self) -> Enough:
        """How much may be done before the guard has to look."""
        guard, enough = self.stratum.guard, Enough.everything()
        limits, tuples = guard.limits, self.backend.tuples
        if limits.max_rounds is not None:
            enough = enough._replace(rounds=limits.max_rounds - self.rounds)
        if limits.max_tuples is not None:
            enough = enough._replace(rows=limits.max_tuples - tuples() + 1)
        if (most := guard.rows_before_look(self.plan.relations, tuples)) is not None:
            enough = enough._replace(rows=min(enough.rows, most))
        return enough

    def _note_rounds(self, count: int, rank: int) -> None:
        self.stratum.rank = rank
        self.stratum.stats.rounds += count
        self.rounds += count

    def _best_rounds(self) -> BestRounds[Ids] | None:
        """If all groups are of numbers, the backend goes through the rounds."""
        if not self.plan.aggregates or not self.is_counted or self.is_stepped:
            return None
        return self.backend.best_rounds(self.plan.onward, tuple(self.lost), self.plan.aggregates)

    def _run_best(self, best: BestRounds[Ids]) -> None:
        plans = self.plan.onward
        taking, adding = ([each(plan) for plan in plans] for each in (self._seen_while_taking, self._seen_while_adding))
        while self._is_unsettled():
            self._reconsider_tables()
            unsettled = Unsettled(self.queue, self.put_back_from, self.lost, self.offered)
            rounds, rows = self._enough()
            settled = best.settle(unsettled, (taking, adding), self.stratum.rank, Enough(rounds + 1, rows))
            left = settled.left
            for batches, rest in ((self.queue, left.queued), (self.put_back_from, left.lost), (self.lost, left.losing)):
                for name in batches:
                    batches[name] = list(rest[name]) if name in rest else []
            self.offered = {name: list(batches) for name, batches in left.offered.items()}
            for batches, found in ((self.made, settled.made), (self.suspended, settled.lost)):
                for name, batch in found.items():  # `finish` tells which of them came in this epoch
                    batches[name].append(batch)
            self.stratum.stats.suspended += settled.suspended
            self._note_rounds(settled.rounds, settled.rank)
            if settled.last is not None:
                self._tell_guard(*settled.last)
            self.stratum.guard.check(self.plan.relations, self.rounds, self.backend.tuples)

    def _is_unsettled(self) -> bool:
        return bool(self.offered) or any(any(each.values()) for each in (self.queue, self.put_back_from, self.lost))

    def _queue_derivable(self) -> None:
        """Rows that were suspended and still have derivations come back."""
        for name, batches in self.put_back_from.items():
            if batches:
                self._note_queued(name, self.backend.table(name).queue_derivable(self.backend.concatenate(batches)))
                self.put_back_from[name] = []

    def _round(self) -> None:
        self.stratum.rank += 1
        self.stratum.stats.rounds += 1
        self.rounds += 1
        self.stratum.guard.check(self.plan.relations, self.rounds, self.backend.tuples)
        frontier = self._frontier()
        for name, batch in frontier.items():
            self._make_present(name, batch)
        for name, batch in frontier.items():
            for plan in self._plans(name, negated=False):
                for keys, ranks in self.backend.run_adding(plan, batch, self._seen_while_adding(plan)):
                    self._add(plan, keys, ranks)
            if self.plan.joins_members:
                self.backend.table(name).change_flags(batch, off=BATCH)
            for groups in self.aggregates.over(name):
                groups.grow(name, batch)

    def _frontier(self) -> dict[str, Ids]:
        """The rows that become present next."""
        if self.aggregates.is_pending:
            with self.stratum.stats.phase("aggregate"):
                self.aggregates.settle(not any(self.queue.values()), self._remove, self._propagate_lost, self._insert)
            self._queue_derivable()
        return self._next_batches()

    def _next_batches(self) -> dict[str, Ids]:
        frontier = {name: self.backend.concatenate(batches) for name, batches in self.queue.items() if batches}
        self.queue = {name: [] for name in self.queue}
        if not (self.plan.aggregates or self.is_stepped):
            return frontier
        for name, queued in frontier.items():
            batch, later = self.aggregates.best_first(name, queued)
            if later is not None:
                self.queue[name].append(later)
            # A value that went may have taken away the only derivation of a row that was waiting.
            frontier[name] = ready = self._ready(name, batch)
            self.backend.table(name).change_flags(batch, off=QUEUED)
            if len(ready) < len(batch):
                self.suspended[name].append(self.backend.without(batch, ready))
        return frontier

    def _ready(self, name: str, batch: Ids) -> Ids:
        """Rows that may become present: those that still have a derivation."""
        return self.backend.table(name).derivable(batch)

    def _insert(self, name: str, rows: Keys) -> None:
        """New rows of groups."""
        self.add_supports(name, rows)

    def _seen_while_adding(self, plan: DeltaPlan) -> Forbid:
        assert plan.scan is not None
        driver = plan.scan.relation

        def forbid(step: Join | Check) -> int:
            if step.relation not in self.members:
                return self._input_view(step, plan, taking=False)
            if step.relation == driver and step.position < plan.position:
                return HIDDEN
            return HIDDEN | BATCH

        return forbid

    # -- inputs

    def _propagate_input(self, name: str, ids: Ids, *, negated: bool, drop: bool) -> None:
        if len(ids):
            for plan in self._plans(name, negated=negated):
                seen = self._seen_by_input(plan, taking=drop)
                if not self._sees_nothing(plan, seen):
                    for keys, ranks in self.backend.run(plan, ids, seen):
                        (self._drop if drop else self._add)(plan, keys, ranks)
        self.done.add((name, negated))

    def _sees_nothing(self, plan: DeltaPlan, seen: Forbid) -> bool:
        """Whether a literal must not see the rows of this epoch, and there are no others: so it is at first. Or it is one of the
        stratum's own, of which none is present yet.
        """
        return any(
            (step.relation in self.fresh and seen(step) & ADDED) or (self.is_first and step.relation in self.members)
            for step in plan.steps
            if isinstance(step, Join) or (isinstance(step, Check) and step.present)
        )

    def _seen_by_input(self, plan: DeltaPlan, *, taking: bool) -> Forbid:
        def forbid(step: Join | Check) -> int:
            if step.relation in self.members:
                return HIDDEN
            return self._input_view(step, plan, taking=taking)

        return forbid

    def _input_view(self, step: Join | Check, plan: DeltaPlan, *, taking: bool) -> int:
        """Which rows of an input a literal must not see: it stands before or after its own change, step by step.

        A positive literal goes from the old rows over those that stay to the new ones; a negated one from the old rows over
        old and new together to the new ones.
        """
        if step.relation not in self.inputs:
            return 0
        if self.is_settled:
            return GONE
        negated = isinstance(step, Check) and not step.present
        assert plan.scan is not None
        if step.relation == plan.scan.relation and negated == plan.negated:
            after = step.position < plan.position
        else:
            after = (step.relation, negated) in self.done
        between = 0 if negated else ADDED | GONE
        if taking:
            return between if after else ADDED
        return GONE if after else between

    # -- supports

    def _plans(self, name: str, *, negated: bool) -> Sequence[DeltaPlan]:
        return self.plan.readers.get((name, negated), ())

    def _add(self, plan: DeltaPlan, keys: Keys, ranks: Ranks) -> None:
        relation = plan.rule.head.relation
        table = self.backend.table(relation)
        queued = table.add_new(keys, ranks) if relation in self.unmet else table.add_supports(keys, ranks)
        if len(queued):
            self._tell_guard(plan, queued)
            self._note_queued(relation, queued)
            self.stratum.guard.derived(len(queued), self.backend.tuples)

    def _tell_guard(self, plan: DeltaPlan, rows: Ids) -> None:
        """Of rows that a plan derived last."""
        guard, relation = self.stratum.guard, plan.rule.head.relation
        guard.rule, guard.sample = plan.rule, lambda: self.backend.last(relation, rows)

    def _drop(self, plan: DeltaPlan, keys: Keys, ranks: Ranks) -> None:
        relation = plan.rule.head.relation
        self._note_lost(relation, self.backend.table(relation).drop_supports(keys, ranks))

    def _make_present(self, name: str, batch: Ids) -> None:
        table = self.backend.table(name)
        self.made[name].append(table.activate(batch, self.stratum.rank, is_batch=self.plan.joins_members))

    def _note_suspended(self, name: str, batch: Ids) -> None:
        """Rows that were present: what followed from them is taken away now."""
        self.suspended[name].append(batch)
        self.put_back_from[name].append(batch)

    def _note_lost(self, name: str, ids: Ids) -> None:
        if len(ids):
            self.lost[name].append(ids)
            self.stratum.stats.suspended += len(ids)

    def _note_queued(self, name: str, ids: Ids) -> None:
        if len(ids):
            self.queue[name].append(ids)

    # -- the end

    def finish(self) -> dict[str, Delta[Ids]]:
        """The net changes. Rows that went stay, flagged, until the epoch is over: the strata above ask for the old state."""
        changes = {}
        for name in self.plan.relations:
            table = self.backend.table(name)
            lost, added = self.backend.concatenate(self.suspended[name]), self.backend.concatenate(self.made[name])
            if (self.plan.aggregates or self.is_stepped) and len(lost):  # rows may have come and gone several times
                added, lost, passing = table.net(added, lost)
                table.erase(passing)
            went = table.with_flags(lost, on=SUSPENDED)
            self.stratum.stats.rederived += len(lost) - len(went)
            table.change_flags(went, on=GONE, off=SUSPENDED | HIDDEN)
            if len(went) or len(added):
                changes[name] = Delta(added, went)
        return changes
