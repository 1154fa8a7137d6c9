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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from whence.lang.program import Atom, Const, Program, Relation, Rule, Stratum
from whence.lang.tree import walk
from whence.lang.types import Tuple, Value, Variant
from whence.reference.limits import Guard, Limits, OnRound
from whence.reference.solve import Solver
from whence.reference.tables import Table

Derived = tuple[Rule, Tuple]


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
    tables = {name: Table() for name in program.relations}
    for name, rows in facts.items():
        tables[name] = Table(rows)
    solver = Solver(program, tables)
    run = _Run(program, solver, Guard(program, solver, limits, on_round))
    for stratum in program.strata:
        run.stratum(stratum)
    return {name: table.rows for name, table in tables.items()}


@dataclass
class _Run:
    program: Program
    solver: Solver
    guard: Guard

    @cached_property
    def written(self) -> dict[Value, int]:
        constants = (part.value for rule in self.program.rules for part in walk(rule) if isinstance(part, Const))
        return {value: at for at, value in enumerate(dict.fromkeys(constants))}

    @cached_property
    def rules(self) -> dict[str, list[Rule]]:
        rules: dict[str, list[Rule]] = {name: [] for name in self.program.relations}
        for rule in self.program.rules:
            rules[rule.head.relation].append(rule)
        return rules

    def stratum(self, stratum: Stratum) -> None:
        members = set(stratum.relations)
        rules = [rule for name in stratum.relations for rule in self.rules[name]]
        self.guard.begin(stratum)
        if stratum.stages:
            self._staged(stratum, rules)
        elif stratum.monotone or any(each.dominated.relation in members for each in self.program.subsumptions):
            self._converging(stratum, rules)
        else:
            self._plain(stratum, rules)

    # -- plain

    def _plain(self, stratum: Stratum, rules: list[Rule]) -> None:
        self.guard.round(stratum, 1)
        new = self._add(self._derive(rules), stratum)
        number = 1
        while stratum.recursive and any(new.values()) and not self._is_full(stratum):
            number += 1
            self.guard.round(stratum, number)
            # A rule instance without a tuple of the last round was there before: only the others need looking at.
            derived = [
                pair
                for rule in rules
                for atom in rule.body
                if isinstance(atom, Atom) and new.get(atom.relation)
                for pair in self._derive([rule], atom, new[atom.relation])
            ]
            new = self._add(derived, stratum)

    def _derive(self, rules: list[Rule], new_atom: Atom | None = None, new_rows: Iterable[Tuple] = ()) -> list[Derived]:
        """What the rules derive from the current state, all of them from the same one."""
        self.solver.new_atom, self.solver.new_rows = new_atom, Table(new_rows)
        derived: dict[tuple[str, Tuple], Rule] = {}
        for rule in rules:
            for row in self.solver.heads(rule):
                derived.setdefault((rule.head.relation, row), rule)
                self.guard.derive(rule, row, len(derived))
        self.solver.new_atom = None
        return [(rule, row) for (_, row), rule in derived.items()]

    def _add(self, derived: list[Derived], stratum: Stratum) -> dict[str, set[Tuple]]:
        """Adds tuples to their relations, as far as these take them; what is new in each relation."""
        new: dict[str, set[Tuple]] = {name: set() for name in stratum.relations}
        if any(self.program.relations[name].choices for name in stratum.relations):
            derived = sorted(derived, key=self._choice_order)
        for rule, row in derived:
            relation = self.program.relations[rule.head.relation]
            if self._is_free(relation, row) and self.solver.tables[relation.name].add(row):
                new[relation.name].add(row)
                self.guard.last = (rule, row)
        for name in stratum.relations:
            new[name] |= self._close(self.program.relations[name])
        return new

    def _choice_order(self, derived: Derived) -> list[tuple[object, ...]]:
        """Which tuple a choice prefers: values written in the program first, in the order they are written, then by value."""
        return [(self.written.get(value, len(self.written)), _ordered(value)) for value in derived[1]]

    def _is_full(self, stratum: Stratum) -> bool:
        """Whether a relation has reached the size at which `.limitsize` ends the recursion."""
        limits = ((name, self.program.relations[name].limit) for name in stratum.relations)
        return any(limit is not None and len(self.solver.tables[name]) >= limit for name, limit in limits)

    def _is_free(self, relation: Relation, row: Tuple) -> bool:
        """Whether the choice domains of the relation have room for the row."""
        table = self.solver.tables[relation.name]
        return all(not table.lookup(keys, tuple(row[key] for key in keys)) for keys in relation.choices)

    def _close(self, relation: Relation) -> set[Tuple]:
        """Makes an equivalence relation reflexive, symmetric and transitive; what that added."""
        if not relation.equivalence:
            return set()
        table = self.solver.tables[relation.name]
        class_of: dict[Value, set[Value]] = {}
        for left, right in table.rows:
            one, other = class_of.setdefault(left, {left}), class_of.setdefault(right, {right})
            if one is not other:
                one |= other
                for member in other:
                    class_of[member] = one
        closed: set[Tuple] = {(left, right) for left, members in class_of.items() for right in members}
        added = closed - table.rows
        table.replace(closed)
        return added

    # -- converging

    def _converging(self, stratum: Stratum, rules: list[Rule]) -> None:
        base = {name: set(self.solver.tables[name].rows) for name in stratum.relations}
        # A state that comes back tells that there is no end: one earlier state is kept, of the last round whose number is
        # a power of two (Brent).
        earlier: dict[str, set[Tuple]] | None = None
        self.solver.non_negative_sums = True
        number = 0
        while True:
            number += 1
            self.guard.round(stratum, number)
            following = {name: set(rows) for name, rows in base.items()}
            for rule in rules:
                for row in self.solver.heads(rule):
                    following[rule.head.relation].add(row)
                    self.guard.derive(rule, row, len(following[rule.head.relation]))
            before = {name: self.solver.tables[name].rows for name in stratum.relations}
            for name, rows in following.items():
                self.solver.tables[name].replace(rows)
            for name in stratum.relations:
                self._close(self.program.relations[name])
                self._subsume(name)
            after = {name: self.solver.tables[name].rows for name in stratum.relations}
            if after == before or self._is_full(stratum):
                break
            if after == earlier:
                self.guard.stop("because the recursion does not settle")
            if number & (number - 1) == 0:
                earlier = after
        self.solver.non_negative_sums = False

    def _subsume(self, name: str) -> None:
        """Removes every tuple that a subsumption rule finds dominated by another one."""
        table = self.solver.tables[name]
        dominated: set[Tuple] = set()
        for each in self.program.subsumptions:
            if each.dominated.relation != name:
                continue
            self.solver.rule = each
            for environment in self.solver.solutions(each.body, {}):
                row = tuple(self.solver.value(arg, environment) for arg in each.dominated.args)
                if row != tuple(self.solver.value(arg, environment) for arg in each.dominating.args):
                    dominated.add(row)
        if dominated:
            table.replace(table.rows - dominated)

    # -- staged

    def _staged(self, stratum: Stratum, rules: list[Rule]) -> None:
        """Stage by stage: what a stage negates is complete before it is asked."""

        def stage_of(rule: Rule, row: Tuple) -> int:
            return row[stratum.stages[rule.head.relation]]  # type: ignore[return-value]

        number = 0
        stages = [row[column] for name, column in stratum.stages.items() for row in self.solver.tables[name].rows]
        done: int | None = None
        while True:
            pending = {stage_of(rule, row) for rule in rules for row in self.solver.heads(rule)} | set(stages)
            pending = {stage for stage in pending if done is None or stage > done}  # type: ignore[operator]
            if not pending:
                return
            stage = min(pending)  # type: ignore[type-var]
            for group in stratum.groups:
                members = [rule for rule in rules if rule.head.relation in group]
                changed = True
                while changed:
                    number += 1
                    self.guard.round(stratum, number)
                    derived = [pair for pair in self._derive(members) if stage_of(*pair) == stage]
                    changed = any(self._add(derived, stratum).values())
            done = stage  # type: ignore[assignment]


class StratumEvaluator:
    """Evaluates strata one at a time over tables that live on: what a maintained program does with strata it recomputes.

    Numbers that `autoinc()` gave out stay the same from one evaluation to the next.
    """

    def __init__(self, program: Program, limits: Limits = Limits()) -> None:  # noqa: B008 - immutable
        self.program = program
        self.limits = limits
        self.tables = {name: Table() for name in program.relations}
        self.solver = Solver(program, self.tables)

    def evaluate(self, stratum: Stratum) -> None:
        """Completes the stratum's tables, which hold what was put in from outside."""
        _Run(self.program, self.solver, Guard(self.program, self.solver, self.limits, None)).stratum(stratum)


def _ordered(value: Value) -> tuple[object, ...]:
    """Something to compare values of one kind by."""
    match value:
        case tuple():
            return (1, *(_ordered(item) for item in value))
        case Variant(branch=branch, args=args):
            return (1, branch, *(_ordered(item) for item in args))
        case None:
            return (0,)
        case _:
            return (1, value)
