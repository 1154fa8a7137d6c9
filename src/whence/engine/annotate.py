"""Annotations for the rows of a stratum that is complete, and whose inputs have theirs.

Two ways:

- *improve*: start from what needs no recursion, and propagate every row whose annotation changed until none does. For
  semirings in which a derivation met twice adds nothing and improving comes to an end.
- *settle*: a row is final once all its derivations are in; each is met when the last row that it uses becomes final. That is
  exact in any semiring and adds up every derivation once. What is left depends on itself and is solved as equations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Protocol

from whence.engine.guard import Guard
from whence.engine.protocol import BATCH, HIDDEN, Backend, Forbid, Ids, Keys, Ranks, Trace
from whence.plan.steps import Check, DeltaPlan, Join, StratumPlan


class Ledger(Protocol[Ids, Keys]):
    """The annotation of every row."""

    def add(self, plan: DeltaPlan, trace: Trace[Ids, Keys]) -> Ids:
        """Adds the products of derivations to their heads; the heads whose annotation changed."""

    def annotated(self, relation: str) -> Ids:
        """The rows whose annotation is not zero."""

    def distinct(self, batches: Sequence[Ids]) -> Ids: ...


class SettlingLedger(Ledger[Ids, Keys], Protocol[Ids, Keys]):
    """Also counts the derivations of each row that are still to come."""

    def expect(self, plan: DeltaPlan, trace: Trace[Ids, Keys]) -> None: ...
    def settle(self, plan: DeltaPlan, trace: Trace[Ids, Keys]) -> Ids:
        """Adds derivations that were expected; their heads."""

    def complete(self, relation: str, ids: Ids) -> Ids:
        """Those of the rows that no derivation is still to come for."""

    def decide(self, left: Mapping[str, Ids]) -> bool:
        """Gives rows that depend on themselves their annotations, if that takes no equations; whether it did."""

    def keep_equation(self, plan: DeltaPlan, trace: Trace[Ids, Keys]) -> None: ...
    def solve_equations(self) -> None: ...


def _everything(_: Join | Check) -> int:
    return 0


class _Annotator(Generic[Ids, Keys, Ranks]):
    def __init__(self, plan: StratumPlan, backend: Backend[Ids, Keys, Ranks], guard: Guard) -> None:
        self.plan = plan
        self.backend = backend
        self.guard = guard
        positive = [plan for plan in plan.deltas if not plan.negated]
        # One plan for each rule is enough to find all its derivations.
        self.drivers = [*{id(plan.rule): plan for plan in reversed(positive)}.values(), *plan.statics]
        self.recursive = [plan for plan in positive if plan.scan is not None and plan.scan.recursive]
        self.in_recursion = {id(plan.rule) for plan in self.recursive}
        self.rounds = 0

    def add_inputs(self, ledger: Ledger[Ids, Keys]) -> None:
        """What the rules derive that do not use the stratum itself."""
        for plan in self.drivers:
            if id(plan.rule) not in self.in_recursion:
                for trace in self.all_of(plan):
                    ledger.add(plan, trace)

    def all_of(self, plan: DeltaPlan) -> Iterator[Trace[Ids, Keys]]:
        ids = None if plan.scan is None else self.backend.table(plan.scan.relation).ids()
        return self.backend.trace(plan, ids, _everything)

    def next_round(self) -> None:
        self.rounds += 1
        self.guard.check(self.plan.relations, self.rounds, self.backend.tuples)


class Improve(_Annotator[Ids, Keys, Ranks]):
    def annotate(self, ledger: Ledger[Ids, Keys]) -> None:
        self.add_inputs(ledger)
        if not self.recursive:
            return
        changed = {name: ledger.annotated(name) for name in self.plan.relations}
        while any(len(ids) for ids in changed.values()):
            self.next_round()
            found: dict[str, list[Ids]] = {name: [] for name in self.plan.relations}
            for plan in self.recursive:
                assert plan.scan is not None
                for trace in self.backend.trace(plan, changed[plan.scan.relation], _everything):
                    found[plan.rule.head.relation].append(ledger.add(plan, trace))
            changed = {name: ledger.distinct(batches) for name, batches in found.items()}


class Settle(_Annotator[Ids, Keys, Ranks]):
    """Rows that are not final are hidden, those that became final last are the batch."""

    def annotate(self, ledger: SettlingLedger[Ids, Keys]) -> None:
        self.add_inputs(ledger)
        if not self.recursive:
            return
        everything = {name: self.backend.table(name).ids() for name in self.plan.relations}
        for plan in self.drivers:
            if id(plan.rule) in self.in_recursion:
                for trace in self.all_of(plan):
                    ledger.expect(plan, trace)
        for name, ids in everything.items():
            self.backend.table(name).change_flags(ids, on=HIDDEN)
        batch = {name: ledger.complete(name, ids) for name, ids in everything.items()}
        while any(len(ids) for ids in batch.values()):
            self.next_round()
            batch = self._make_final(batch, ledger)
        left = {name: self.backend.table(name).with_flags(ids, on=HIDDEN) for name, ids in everything.items()}
        if not ledger.decide(left):
            for plan in self.recursive:
                assert plan.scan is not None
                for trace in self.backend.trace(plan, left[plan.scan.relation], _final_before(plan)):
                    ledger.keep_equation(plan, trace)
            ledger.solve_equations()
        for name, ids in everything.items():
            self.backend.table(name).change_flags(ids, off=HIDDEN)

    def _make_final(self, batch: Mapping[str, Ids], ledger: SettlingLedger[Ids, Keys]) -> dict[str, Ids]:
        """Rows become final; those that this completes."""
        for name, ids in batch.items():
            self.backend.table(name).change_flags(ids, on=BATCH, off=HIDDEN)
        found: dict[str, list[Ids]] = {name: [] for name in self.plan.relations}
        for name, ids in batch.items():
            for plan in self.recursive:
                if plan.scan is not None and plan.scan.relation == name:
                    for trace in self.backend.trace(plan, ids, _final(plan)):
                        found[plan.rule.head.relation].append(ledger.settle(plan, trace))
            self.backend.table(name).change_flags(ids, off=BATCH)
        return {name: ledger.complete(name, ledger.distinct(heads)) for name, heads in found.items()}


def _final(plan: DeltaPlan) -> Forbid:
    """Literals before the changed one see the batch, those behind it do not: each derivation is met once."""
    assert plan.scan is not None
    driver = plan.scan.relation

    def forbid(step: Join | Check) -> int:
        if not step.recursive:
            return 0
        return HIDDEN if step.relation == driver and step.position < plan.position else HIDDEN | BATCH

    return forbid


def _final_before(plan: DeltaPlan) -> Forbid:
    """Of the rows that are not final, the changed literal's is the first: each derivation is met once."""

    def forbid(step: Join | Check) -> int:
        return HIDDEN if step.recursive and step.position < plan.position else 0

    return forbid
