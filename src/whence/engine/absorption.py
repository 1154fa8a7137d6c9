"""Absorption provenance: one epoch of one stratum.

Each derived row keeps a positive Boolean formula, as a decision diagram, over variables that stand for the rows of the
stratum's inputs (and, under negation, for their absence). After every epoch a row is present iff its formula is true of the
inputs there are, whatever of them went since: a deletion sets variables to false and is done with, no row looks at another.
Insertions are propagated until no formula changes. There are finitely many formulas, so that ends; but they can be large, and
a cyclic view of a few dozen rows is about what is practical.

A row that comes back gets a fresh variable, and setting a variable to false leaves no trace of it: nothing that is gone can be
mistaken for something that is there. Deletions of an epoch come before its insertions, so no formula that is on its way can
name a variable that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple

from whence.engine.guard import Guard
from whence.engine.protocol import ADDED, EXTERNAL, GONE, Backend, Forbid, Ids, Keys, Ranks, Trace
from whence.engine.stats import Stats
from whence.engine.stratum import Delta, FlaggedStratum
from whence.lang.program import Atom, Negation
from whence.lang.types import Tuple
from whence.plan.steps import Check, DeltaPlan, Join, StratumPlan
from whence.semiring.bdd import FormulaDiagrams
from whence.semiring.depth_first import DepthFirstOrder
from whence.semiring.witnesses import Witnesses


class Variable(NamedTuple):
    """Stands for a tuple put in from outside or of an input; with `absent`, for there being no such tuple."""

    relation: str
    tuple: Tuple
    absent: bool = False


def _now(_: Join | Check) -> int:
    return GONE


def _before_propagation(step: Join | Check) -> int:
    """Of the stratum itself only what was there: what is new is propagated later, and would be met twice."""
    return GONE | ADDED if step.recursive else GONE


class AbsorptionStratum(FlaggedStratum[Ids, Keys, Ranks]):
    def __init__(self, plan: StratumPlan, backend: Backend[Ids, Keys, Ranks], guard: Guard, stats: Stats) -> None:
        self.plan = plan
        self.backend = backend
        self.guard = guard
        self.stats = stats
        self.diagrams: FormulaDiagrams[Variable] = FormulaDiagrams()
        self.order: DepthFirstOrder[Variable] = DepthFirstOrder()
        self.dealt = 0  # for how many variables levels were last dealt out
        self.formulas: dict[str, dict[int, Any]] = {name: {} for name in plan.relations}
        self.users: dict[Variable, set[tuple[str, int]]] = {}

    def maintain(
        self,
        removed: Mapping[str, Keys],
        inserted: Mapping[str, Keys],
        inputs: Mapping[str, Delta[Ids]],
        *,
        first: bool,
    ) -> dict[str, Delta[Ids]]:
        epoch = _AbsorptionEpoch(self)
        with self.stats.phase("take away"):
            for name, keys in removed.items():
                table = self.backend.table(name)
                table.change_flags(table.find(keys), off=EXTERNAL)
            epoch.set_false([*self._of_keys(removed), *self._of_inputs(inputs, gone=True)])
        with self.stats.phase("put back"):
            self.introduce([*self._of_keys(inserted), *self._of_inputs(inputs, gone=False)])
            for name, keys in inserted.items():
                epoch.put_in(name, keys)
            for plan in self.plan.statics if first else ():
                epoch.derive(plan, None, _before_propagation)
            for name, delta in inputs.items():
                for plan in self._plans(name):
                    epoch.derive(plan, delta.gone if plan.negated else delta.added, _before_propagation)
            epoch.propagate()
            return epoch.finish()

    def revise(self, *_: object) -> None:
        """Formulas are not taken apart by rules."""

    def witnesses(self, relation: str, row: Tuple) -> Witnesses:
        """The smallest sets of variables under which a row is there."""
        (number,) = self.backend.numbers(self.backend.table(relation).find(self.backend.encode(relation, [row])))
        return self.diagrams.witnesses(self.formulas[relation][number])

    def sizes(self) -> Iterator[int]:
        """How many nodes the formula of each row has."""
        return (self.diagrams.size(value) for of in self.formulas.values() for value in of.values())

    # -- variables

    def _of_keys(self, rows: Mapping[str, Keys]) -> Iterator[Variable]:
        for name, keys in rows.items():
            yield from (Variable(name, row) for row in self.backend.decode_keys(name, keys))

    def _of_inputs(self, inputs: Mapping[str, Delta[Ids]], *, gone: bool) -> Iterator[Variable]:
        """The variables of inputs that end, or begin, to be true."""
        for name, delta in inputs.items():
            plans = self._plans(name)
            if any(not plan.negated for plan in plans):
                rows = self.backend.decode(name, delta.gone if gone else delta.added)
                yield from (Variable(name, row) for row in rows)
            if any(plan.negated for plan in plans):
                rows = self.backend.decode(name, delta.added if gone else delta.gone)
                yield from (Variable(name, row, absent=True) for row in rows)

    def _plans(self, name: str) -> list[DeltaPlan]:
        return [plan for plan in self.plan.deltas if plan.scan is not None and plan.scan.relation == name]

    def introduce(self, variables: Iterable[Variable]) -> None:
        """Gives variables that are new their place."""
        new = [each for each in dict.fromkeys(variables) if each not in self.diagrams.levels]
        if not new:
            return
        for each in new:
            ends = (each.tuple[0], each.tuple[-1]) if each.tuple else ((), ())
            self.order.insert(each, *ends)
        order = self.order.edges()
        # Placing next to neighbours drifts away from the order: every so often all levels are dealt out anew.
        if len(order) < 2 * self.dealt and self.diagrams.place(order):
            return
        self.dealt = max(len(order), 8)
        rows = [(name, row) for name, of in self.formulas.items() for row in of]
        moved = self.diagrams.deal_out(order, [self.formulas[name][row] for name, row in rows])
        for (name, row), value in zip(rows, moved, strict=True):
            self.formulas[name][row] = value

    def forget(self, variables: list[Variable]) -> None:
        self.diagrams.forget(variables)
        for each in variables:
            self.order.delete(each)
            self.users.pop(each, None)


class _AbsorptionEpoch(Generic[Ids, Keys, Ranks]):
    def __init__(self, stratum: AbsorptionStratum[Ids, Keys, Ranks]) -> None:
        self.stratum = stratum
        self.backend = stratum.backend
        self.diagrams = stratum.diagrams
        self.changed: dict[str, set[int]] = {name: set() for name in stratum.plan.relations}
        self.gone: dict[str, set[int]] = {name: set() for name in stratum.plan.relations}
        self.added: dict[str, set[int]] = {name: set() for name in stratum.plan.relations}

    def set_false(self, variables: Iterable[Variable]) -> None:
        dead = [each for each in variables if each in self.diagrams.levels]
        affected = {row for each in dead for row in self.stratum.users.get(each, ())}
        for name, row in affected:
            formulas = self.stratum.formulas[name]
            if row not in formulas:
                continue  # it went before
            formulas[row] = self.diagrams.restrict(formulas[row], dead)
            if formulas[row].is_false():
                del formulas[row]
                self.gone[name].add(row)
        self.stratum.forget(dead)
        for name, rows in self.gone.items():
            self.backend.table(name).change_flags(self.backend.numbered(sorted(rows)), on=GONE)
            self.stratum.stats.suspended += len(rows)

    def put_in(self, name: str, keys: Keys) -> None:
        ids = self.backend.claim(name, keys)
        self.backend.table(name).change_flags(ids, on=EXTERNAL)
        for number, row in zip(self.backend.numbers(ids), self.backend.decode_keys(name, keys), strict=True):
            self._gain(name, number, self.diagrams.literal(Variable(name, row)))

    def derive(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> None:
        """Adds what a plan derives from changed rows."""
        head = plan.rule.head.relation
        for trace in self.backend.trace(plan, ids, forbid):
            if not len(trace.heads):
                continue
            self._introduce_absent(plan, trace)
            products = self._products(plan, trace)
            gained: dict[int, Any] = {}
            for row, value in zip(self.backend.numbers(self.backend.claim(head, trace.heads)), products, strict=True):
                gained[row] = value.l_or(gained[row]) if row in gained else value
            for row, value in gained.items():
                self._gain(head, row, value)

    def _products(self, plan: DeltaPlan, trace: Trace[Ids, Keys]) -> list[Any]:
        totals = [self.diagrams.one] * len(trace.heads)
        for position, ids in trace.rows.items():
            relation = _relation(plan, position)
            if relation in self.changed:
                own = self.stratum.formulas[relation]
                values = [own[row] for row in self.backend.numbers(ids)]
            else:
                absent = position == plan.position and plan.negated
                values = self._literals(relation, self.backend.decode(relation, ids), absent=absent)
            totals = [total.l_and(value) for total, value in zip(totals, values, strict=True)]
        for position, keys in trace.absent.items():
            relation = _relation(plan, position)
            values = self._literals(relation, self.backend.decode_keys(relation, keys), absent=True)
            totals = [total.l_and(value) for total, value in zip(totals, values, strict=True)]
        return totals

    def _literals(self, relation: str, rows: Iterable[Tuple], *, absent: bool) -> list[Any]:
        return [self.diagrams.literal(Variable(relation, row, absent)) for row in rows]

    def _introduce_absent(self, plan: DeltaPlan, trace: Trace[Ids, Keys]) -> None:
        for position, keys in trace.absent.items():
            relation = _relation(plan, position)
            self.stratum.introduce(Variable(relation, row, True) for row in self.backend.decode_keys(relation, keys))

    def _gain(self, name: str, row: int, value: Any) -> None:
        formulas = self.stratum.formulas[name]
        before = formulas.get(row)
        after = value if before is None else before.l_or(value)
        if after == before:
            return
        formulas[row] = after
        self.changed[name].add(row)
        for each in self.diagrams.support(after):
            self.stratum.users.setdefault(each, set()).add((name, row))
        if before is None:
            if row in self.gone[name]:
                self.gone[name].remove(row)
                self.backend.table(name).change_flags(self.backend.numbered([row]), off=GONE)
                self.stratum.stats.rederived += 1
            else:
                self.added[name].add(row)
                self.backend.table(name).change_flags(self.backend.numbered([row]), on=ADDED)

    def propagate(self) -> None:
        rounds = 0
        recursive = [plan for plan in self.stratum.plan.deltas if plan.scan is not None and plan.scan.recursive]
        while any(self.changed.values()):
            rounds += 1
            self.stratum.stats.rounds += 1
            self.stratum.guard.check(self.stratum.plan.relations, rounds, self.backend.tuples)
            batch, self.changed = self.changed, {name: set() for name in self.changed}
            for plan in recursive:
                assert plan.scan is not None
                if rows := batch[plan.scan.relation]:
                    self.derive(plan, self.backend.numbered(sorted(rows)), _now)

    def finish(self) -> dict[str, Delta[Ids]]:
        return {
            name: Delta(self.backend.numbered(sorted(self.added[name])), self.backend.numbered(sorted(self.gone[name])))
            for name in self.changed
            if self.added[name] or self.gone[name]
        }


def _relation(plan: DeltaPlan, position: int) -> str:
    literal = plan.rule.body[position]
    assert isinstance(literal, Atom | Negation)
    return literal.relation if isinstance(literal, Atom) else literal.atom.relation
