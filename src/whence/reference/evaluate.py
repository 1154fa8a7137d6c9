"""What a program means: its strata evaluated one after the other.

How a stratum reaches its fixpoint depends on what is in it:

- *plain*: apply all rules to what is there and add what they derive, until nothing is new (after the first round, a rule
  is applied only to combinations that hold a new tuple: the others were seen);
- *converging* (recursive aggregates, subsumption): apply all rules to what is there and keep only what they derive, until
  that is what was there. Starting from nothing, monotone aggregates only improve, and a value that was improved on
  supports nothing any more;
- *staged* (negation inside recursion, ordered by a stage argument): complete the smallest stage, then the next.

An `eqrel` relation is closed after each application; a relation with `choice-domain` takes a tuple only if its keys are free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import count

from whence.lang.compare import order_key
from whence.lang.program import Atom, Program, Relation, Rule, Stratum, counter_in
from whence.lang.sizes import TooLarge
from whence.lang.types import Tuple, Value
from whence.limits import Limits, OnRound
from whence.reference.guard import EvaluationGuard
from whence.reference.solve import Solver
from whence.reference.tables import TupleSet

# For each relation the tuples, each with a rule that derives it.
Derived = defaultdict[str, dict[Tuple, Rule]]


def evaluate(
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    *,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_round: OnRound | None = None,
) -> dict[str, set[Tuple]]:
    """Every relation of the program, given the facts of its base relations.

    >>> from whence.lang import load
    >>> program = load("r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z). .decl e(x:number, y:number) .input e .output r")
    >>> sorted(evaluate(program, {"e": [(1, 2), (2, 3)]})["r"])
    [(1, 2), (1, 3), (2, 3)]
    """
    evaluator = StratumEvaluator(program, limits, on_round)
    for name, rows in facts.items():
        evaluator.tables[name] = TupleSet(rows)
    evaluator.guard.restart()
    for stratum in program.strata:
        evaluator.evaluate(stratum)
    return {name: table.rows for name, table in evaluator.tables.items()}


class StratumEvaluator:
    """Evaluates strata one at a time over tables that live on.

    Numbers that `autoinc()` gave out stay the same from one evaluation to the next.
    """

    def __init__(
        self,
        program: Program,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        on_round: OnRound | None = None,
    ) -> None:
        self.program = program
        self.tables = {name: TupleSet() for name in program.relations}
        self.solver = Solver(program, self.tables)
        self.guard = EvaluationGuard(program, self.solver, limits, on_round)
        self.rules: dict[str, list[Rule]] = {name: [] for name in program.relations}
        for rule in program.rules:
            self.rules[rule.head.relation].append(rule)

    def evaluate(self, stratum: Stratum) -> None:
        """Completes the stratum's tables, which hold what was put in from outside."""
        rules = [rule for name in stratum.relations for rule in self.rules[name]]
        subsumed = any(each.dominated.relation in stratum.relations for each in self.program.subsumptions)
        self.guard.begin(stratum)
        is_converging = not stratum.stages and (stratum.monotone or subsumed)
        self.solver.converging = frozenset(stratum.relations if is_converging else ())
        complete = self._staged if stratum.stages else self._converging if is_converging else self._plain
        try:
            complete(stratum, rules)
        except TooLarge as error:
            raise self.guard.too_large(error) from None

    def _derive(self, rules: list[Rule], new: Mapping[str, TupleSet] | None = None) -> Derived:
        """What the rules derive, all of them from the current state."""
        derived: Derived = defaultdict(dict)
        for rule in rules:
            rows = derived[rule.head.relation]
            for row in self.solver.heads(rule, new):
                rows.setdefault(row, rule)
                self.guard.derive(rule, row, len(rows))
        return derived

    # -- plain

    def _plain(self, stratum: Stratum, rules: list[Rule]) -> None:
        new: Mapping[str, TupleSet] | None = None
        first = 1
        if stratum.recursive and any(map(counter_in, rules)):
            # Rounds are counted from the one that follows what is there without recursion.
            self._add(stratum, self._derive([rule for rule in rules if not _reads(rule, stratum)]))
            new, first = {name: self.tables[name] for name in stratum.relations if self.tables[name]}, 2
        for number in count(first):
            self.guard.round(stratum, number)
            self.solver.round = number - 1
            # A rule instance without a tuple of the last round was there before: only the others need looking at.
            new = self._add(stratum, self._derive(rules, new))
            if not (new and stratum.recursive) or self._is_full(stratum):
                return

    def _add(self, stratum: Stratum, derived: Derived) -> dict[str, TupleSet]:
        """Adds tuples to their relations, as far as these take them; what is new, where anything is."""
        new: dict[str, TupleSet] = {}
        for name in stratum.relations:
            relation, table, rows, added = self.program.relations[name], self.tables[name], derived[name], TupleSet()
            for row in sorted(rows, key=self._choice_order) if relation.choices else rows:
                if self._is_free(relation, row) and table.add(row):
                    added.add(row)
                    self.guard.last = (rows[row], row)
            if relation.equivalence:
                added = TupleSet(added.rows | self._close(table))
            if added:
                new[name] = added
        return new

    @cached_property
    def _written(self) -> dict[Value, int]:
        return {value: at for at, value in enumerate(self.program.written)}

    def _choice_order(self, row: Tuple) -> list[tuple[object, ...]]:
        """Which tuple a choice prefers: values written in the program first, in the order they are written, then by value."""
        return [(self._written.get(value, len(self._written)), order_key((value,))) for value in row]

    def _is_full(self, stratum: Stratum) -> bool:
        """Whether a relation has reached the size at which `.limitsize` ends the recursion."""
        limits = ((name, self.program.relations[name].limit) for name in stratum.relations)
        return any(limit is not None and len(self.tables[name]) >= limit for name, limit in limits)

    def _is_free(self, relation: Relation, row: Tuple) -> bool:
        """Whether the choice domains of the relation have room for the row."""
        table = self.tables[relation.name]
        return all(not table.lookup(keys, tuple(row[key] for key in keys)) for keys in relation.choices)

    def _close(self, table: TupleSet) -> set[Tuple]:
        """Makes an equivalence relation reflexive, symmetric and transitive; what that added."""
        class_of: dict[Value, set[Value]] = {}
        for left, right in table.rows:
            one, other = class_of.setdefault(left, {left}), class_of.setdefault(right, {right})
            if one is not other:
                one |= other
                class_of |= dict.fromkeys(other, one)
        closed: set[Tuple] = {(left, right) for left, members in class_of.items() for right in members}
        added = closed - table.rows
        table.replace(closed)
        return added

    # -- converging

    def _converging(self, stratum: Stratum, rules: list[Rule]) -> None:
        base = {name: self.tables[name].rows for name in stratum.relations}
        # A state that comes back tells that there is no end: one earlier state is kept, of the last round whose number is
        # a power of two (Brent).
        before, earlier = base, None
        for number in count(1):
            self.guard.round(stratum, number)
            derived = self._derive(rules)
            for name in stratum.relations:
                self.tables[name].replace(base[name] | derived[name].keys())
            for name in stratum.relations:
                if self.program.relations[name].equivalence:
                    self._close(self.tables[name])
                self._subsume(name)
            after = {name: self.tables[name].rows for name in stratum.relations}
            if after == before or self._is_full(stratum):
                break
            if after == earlier:
                self.guard.stop("because the recursion does not settle")
            if number & (number - 1) == 0:
                earlier = after
            before = after

    def _subsume(self, name: str) -> None:
        """Removes every tuple that a subsumption rule finds dominated by another one."""
        dominated: set[Tuple] = set()
        for each in self.program.subsumptions:
            if each.dominated.relation == name:
                self.solver.rule = each
                for environment in self.solver.solutions(each.body, {}):
                    row, other = (
                        tuple(self.solver.value(arg, environment) for arg in atom.args)
                        for atom in (each.dominated, each.dominating)
                    )
                    if row != other:
                        dominated.add(row)
        if dominated:
            self.tables[name].replace(self.tables[name].rows - dominated)

    # -- staged

    def _staged(self, stratum: Stratum, rules: list[Rule]) -> None:
        """Stage by stage: what a stage negates is complete before it is asked."""
        rounds = count(1)
        done: set[Value] = set()
        while True:
            derived = self._derive(rules)
            pending = {
                row[column]
                for name, column in stratum.stages.items()
                for row in (*derived[name], *self.tables[name].rows)
            } - done
            if not pending:
                return
            stage = min(pending)  # type: ignore[type-var]
            done.add(stage)
            for group in stratum.groups:
                members = [rule for rule in rules if rule.head.relation in group]
                changed = True
                while changed:
                    self.guard.round(stratum, next(rounds))
                    derived = self._derive(members)
                    for name, column in stratum.stages.items():
                        derived[name] = {row: rule for row, rule in derived[name].items() if row[column] == stage}
                    changed = bool(self._add(stratum, derived))


def _reads(rule: Rule, stratum: Stratum) -> bool:
    return any(isinstance(literal, Atom) and literal.relation in stratum.relations for literal in rule.body)
