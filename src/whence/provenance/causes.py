"""Single changes of base facts, one of which every repair of a missing fact has.

That a fact comes to hold takes a rule under some assignment. Of every assignment under which something fails, one failing
literal is looked into, since a repair that makes the rule fire so has to repair that one: a base fact is inserted, a derived fact
becomes a goal of its own, and of a fact that a negation forbids one proof has to break. A proof breaks where one of its base
facts goes, where something comes that one of its negations found missing, or where an aggregate changes. Goals that have been
looked into already need not be again: a proof of what holds in the end has no circles. Facts with wildcards are goals too: they
stand for any fact that fits and is not there yet.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from whence.lang.fit import fits as can_hold
from whence.lang.order import is_ready
from whence.lang.program import Aggregation, Atom, Comparison, Literal, Negation, Program, Rule, Var
from whence.lang.tables import Reference, bag_tables
from whence.lang.types import Tuple
from whence.lang.undefined import Undefined
from whence.provenance.copies import Rows
from whence.provenance.derivations import CannotExplain, nothing_derives
from whence.provenance.derive import EQREL, Deriver
from whence.provenance.expand import Bounds
from whence.provenance.fillings import Fillings
from whence.provenance.firings import absence_of
from whence.provenance.graph import ANY, Absence, Derivation, Fact
from whence.provenance.patterns import fits, has_wildcards
from whence.provenance.proofs import smallest_proof
from whence.provenance.show import show_fact
from whence.provenance.suppose import Change
from whence.provenance.winners import winners
from whence.reference.solve import Environment, is_known

_STEPS = 5_000  # literals looked at for one goal
_GOALS = 500  # facts and patterns looked into
_LOSSES = 50  # rows that an aggregate may have to lose
_PROOF = Bounds(facts=2_000)


@dataclass(frozen=True, slots=True)
class _Near:
    """An assignment under which a rule, or the body of an aggregate, would hold if it were not for the literals that fail.

    `waiting` are those that can only be looked at when these have values.
    """

    rule: Rule
    environment: Environment
    failures: tuple[Literal, ...]
    waiting: tuple[Literal, ...] = ()


class Causes:
    """Looks into the state that a deriver shows, so many seconds each time. `bound` tells what there was too much of to look at
    all of it, if there was.
    """

    def __init__(self, deriver: Deriver, fact: Fact, seconds: float) -> None:
        self.deriver = deriver
        self.fact = fact
        self.seconds = seconds
        self.bound = ""
        self._base = frozenset(deriver.program.base_relations)
        self._rows = Rows(deriver.program)
        self._companions = bag_tables(deriver.program)
        self.fillings = Fillings(deriver, fact)

    def changes(self) -> dict[Change, int]:
        """Every repair of the fact, which does not hold, has one of these. With each, how much of it is made up: nothing of a
        fact that goes, little of one whose values are all asked for, more with each value that may be another.
        """
        self._begin()
        self._want(Absence(self.fact.relation, self.fact.tuple))
        looked_into = 0
        while self._pending:
            looked_into += 1
            if looked_into > _GOALS or time.monotonic() > self._deadline:
                self.bound = self.bound or f"{looked_into - 1:,} facts that might come"
                break
            self._make(self._pending.pop(0))
        self._let_coincide()
        return self._found

    def insertions(self, goal: Absence) -> dict[Change, int]:
        """The base facts that would fit."""
        self._begin()
        self._insert(goal)
        return self._found

    def _begin(self) -> None:
        self._found: dict[Change, int] = {}
        self._goals: dict[Absence, None] = {}
        self._deadline = time.monotonic() + self.seconds
        self._wide: dict[str, list[Absence]] = {}
        self._broken: set[Fact] = set()
        self._open: dict[Absence, None] = {}
        self._missed: dict[str, dict[Absence, None]] = {}
        self._asking: list[tuple[_Near, Atom]] = []
        self._made: dict[str, dict[Absence, None]] = {}
        self._pending: list[Absence] = []
        self.fillings.begin()

    # -- facts that have to come

    def _want(self, goal: Absence) -> None:
        if nothing_derives(self.deriver.program, goal.relation):
            self._insert(goal)
        elif not self._is_wanted(goal):
            self._goals[goal] = None
            self._pending.append(goal)
            if any(map(has_wildcards, goal.pattern)):
                self._wide.setdefault(goal.relation, []).append(goal)

    def _is_wanted(self, goal: Absence) -> bool:
        return goal in self._goals or any(_covers(each, goal) for each in self._wide.get(goal.relation, ()))

    def _make(self, goal: Absence) -> None:
        """A fact that fits the goal and does not hold has to come to hold."""
        is_ground = not any(map(has_wildcards, goal.pattern))
        fact = Fact(goal.relation, goal.pattern) if is_ground else None  # type: ignore[arg-type]
        if fact is not None and self.deriver.holds(fact):
            return
        self._insert(goal)
        if self.deriver.is_equivalence(goal.relation):
            self._join_classes(goal)
        types = self.deriver.program.types
        for prepared in self.deriver.prepared(goal.relation):
            asked = zip(prepared.rule.head.args, goal.pattern, strict=True)
            if any(value is None and not can_hold(None, arg.kind, types) for arg, value in asked):
                continue
            start = {
                name: value
                for name, value in zip(prepared.columns, goal.pattern, strict=True)
                if not has_wildcards(value)
            }
            for near in self._near(prepared.rule, prepared.steps, start):  # type: ignore[arg-type]
                self._look_into(near)
                if not is_ground:
                    self._note_made(near)
        if fact is not None:
            for winner in sorted(winners(self.deriver, fact), key=show_fact):
                self._break(winner)

    def _insert(self, goal: Absence, near: _Near | None = None, atom: Atom | None = None) -> None:
        if goal.relation not in self._base:
            return
        if any(map(has_wildcards, goal.pattern)):
            self._open[goal] = None
        if near is None or atom is None:
            self._add(goal, self.fillings.facts(goal))
        else:
            facts = self.fillings.facts(goal, near.rule, near.environment, atom)
            self._add(goal, [fact for fact in facts if self._may_serve(fact, atom, near)])

    def _may_serve(self, fact: Fact, atom: Atom, near: _Near) -> bool:
        """Whether the comparisons that wait for the fact's values have nothing against them."""
        values = {arg.name: value for arg, value in zip(atom.args, fact.tuple, strict=True) if isinstance(arg, Var)}
        environment = near.environment | values
        return all(
            any(True for _ in self.deriver.solver.solutions((each,), environment))
            for each in near.waiting
            if isinstance(each, Comparison) and is_ready(each, environment.keys())
        )

    def _add(self, goal: Absence, facts: Iterable[Fact]) -> None:
        if self.fillings.is_cut:
            self.bound = self.bound or "the values that facts have"
        filled = sum(map(has_wildcards, goal.pattern))
        for fact in facts:
            change = self.copied("+", fact)
            if not self.deriver.holds(change.fact):
                made_up = 1 + filled + 3 * self.fillings.invented(fact)
                self._found[change] = min(made_up, self._found.get(change, made_up))

    def copied(self, op: str, fact: Fact) -> Change:
        """The change of a base fact. Of a table's equal rows the last copy goes, or one more comes."""
        row = self._rows.of(fact)
        companion = self._companions.get(row.relation)
        if companion is None:
            return Change(op, fact)
        others = self.deriver.state.tables[companion].lookup(tuple(range(len(row.tuple))), row.tuple)
        number = len(others) + self.deriver.holds(row) + (op == "+")
        return Change(op, row if number <= 1 else Fact(companion, (*row.tuple, number)))

    def _note_made(self, near: _Near) -> None:
        """What the rule would make."""
        with suppress(Undefined):
            head = absence_of(near.rule.head, near.environment, self.deriver.solver)
            self._made.setdefault(head.relation, {})[head] = None

    def _let_coincide(self) -> None:
        """One fact may be what two atoms miss: facts with wildcards take values from others of their relation."""
        self._miss_by_heads()
        for goal in self._open:
            for other in self._missed.get(goal.relation, ()):
                both = _both(goal, other)
                if both is not None and both != goal:
                    self._add(goal, self.fillings.facts(both))

    def _miss_by_heads(self) -> None:
        """What an atom misses may have values from a fact that another atom beside it misses, and that some rule would make."""
        asked = ((near, atom, head) for near, atom in self._asking for head in self._made.get(atom.relation, ()))
        for near, atom, head in asked:
            if time.monotonic() > self._deadline:
                self.bound = self.bound or "what rules might make"
                return
            environment = _values_of(atom, head) | near.environment
            for literal in near.failures:
                if isinstance(literal, Atom) and literal is not atom:
                    with suppress(Undefined):
                        self._miss(literal, environment)

    def _join_classes(self, goal: Absence) -> None:
        """A pair of an equivalence comes where some pair leads out of the class of one of its values."""
        value = next((each for each in goal.pattern if not has_wildcards(each)), ANY)
        if value is ANY:
            return
        rows = self.deriver.state.tables[goal.relation].lookup((0,), (value,))  # type: ignore[arg-type]
        for member in dict.fromkeys([value, *(row[1] for row in rows)]):
            self._want(Absence(goal.relation, (member, ANY)))
            self._want(Absence(goal.relation, (ANY, member)))

    def _look_into(self, near: _Near) -> None:
        """One of the literals that fail: the one that leaves the fewest ways to repair it."""
        options = [self._option(literal, near) for literal in near.failures]
        if any(option is None for option in options):
            return
        _, literal, goal = min((each for each in options if each is not None), key=lambda each: each[0])
        if isinstance(literal, Aggregation):
            self._change(literal, near)
        elif isinstance(goal, Fact):
            self._break(goal)
        elif isinstance(goal, Absence):
            assert isinstance(literal, Atom)
            if nothing_derives(self.deriver.program, goal.relation):
                self._insert(goal, near, literal)
            else:
                self._want(goal)

    def _option(self, literal: Literal, near: _Near) -> tuple[int, Literal, Absence | Fact | None] | None:
        """How much there is to look into if the literal is to hold, and what; None if it holds, or cannot."""
        if isinstance(literal, Aggregation):
            return 8, literal, None
        try:
            if isinstance(literal, Negation):
                fact = next(iter(self._matches(literal.atom, near.environment)), None)
                if fact is None:
                    return None
                cost = 0 if fact in self._broken else 2 if not self.deriver.prepared(fact.relation) else 5
                return cost, literal, fact
            assert isinstance(literal, Atom)
            goal = self._miss(literal, near.environment)
        except Undefined:
            return None
        derived = bool(self.deriver.prepared(goal.relation)) or self.deriver.is_equivalence(goal.relation)
        if any(map(has_wildcards, goal.pattern)):
            if derived:
                self._asking.append((near, literal))
            return (0 if self._is_wanted(goal) else 6 if derived else 9), literal, goal
        fact = Fact(goal.relation, goal.pattern)  # type: ignore[arg-type]
        if self.deriver.holds(fact):
            return None  # found, and not failed: another assignment has it so
        if not derived and goal.relation not in self._base:
            return None
        return (0 if self._is_wanted(goal) else 4 if derived else 1), literal, goal

    def _miss(self, atom: Atom, environment: Environment) -> Absence:
        goal = absence_of(atom, environment, self.deriver.solver)
        self._missed.setdefault(goal.relation, {})[goal] = None
        return goal

    def _matches(self, atom: Atom, environment: Environment) -> list[Fact]:
        known = [at for at, arg in enumerate(atom.args) if is_known(arg, environment)]
        key = tuple(self.deriver.solver.value(atom.args[at], environment) for at in known)
        pattern = absence_of(atom, environment, self.deriver.solver).pattern
        rows = self.deriver.state.tables[atom.relation].lookup(tuple(known), key)
        return sorted((Fact(atom.relation, row) for row in rows if all(map(fits, pattern, row))), key=show_fact)

    # -- assignments that fail

    def _near(self, rule: Rule, body: Sequence[Literal], start: Environment) -> list[_Near]:
        """Every way in which a body can fail, those with the fewest failures first."""
        self.deriver.solver.rule = rule
        self._steps = 0
        most = sum(isinstance(each, Atom | Negation | Aggregation) for each in body)
        return [
            _Near(rule, environment, failures, waiting)
            for failing in range(1, most + 1)
            for environment, failures, waiting in self._extended(start, list(body), (), failing)
        ]

    def _extended(
        self, environment: Environment, waiting: list[Literal], failures: tuple[Literal, ...], failing: int
    ) -> Iterator[tuple[Environment, tuple[Literal, ...], tuple[Literal, ...]]]:
        self._steps += 1
        if self._steps > _STEPS or (self._steps % 64 == 0 and time.monotonic() > self._deadline):
            self.bound = self.bound or "what rules might find"
            return
        ready = [literal for literal in waiting if is_ready(literal, environment.keys())]
        if not ready:
            if len(failures) == failing:
                yield environment, failures, tuple(waiting)
            return
        literal = min(ready, key=lambda each: self.deriver.promise(each, environment))
        rest = [each for each in waiting if each is not literal]
        met = self.deriver.met_with(literal, environment) if isinstance(literal, Atom) else literal
        holds = False
        for extended in self.deriver.solver.solutions((met,), environment):
            holds = True
            yield from self._extended(extended, rest, failures, failing)
        may_fail = isinstance(literal, Atom | Aggregation) or (isinstance(literal, Negation) and not holds)
        if may_fail and len(failures) < failing:
            yield from self._extended(environment, rest, (*failures, literal), failing)

    # -- facts that have to go

    def _break(self, fact: Fact) -> None:
        """A proof of the fact has to break."""
        if fact in self._broken:
            return
        self._broken.add(fact)
        try:
            proof, _ = smallest_proof(self.deriver, fact, _PROOF)
        except CannotExplain:
            self.bound = self.bound or "the facts that a proof may take"
            return
        for part in proof:
            if part.firing is None:
                if self.deriver.state.is_external(*part.fact):
                    self._found[self.copied("-", part.fact)] = 0
                continue
            for absence in part.firing.absent:
                self._want(absence)
            if part.firing.aggregates:
                self._change_used(part.firing)

    # -- aggregates that have to change

    def _change_used(self, firing: Derivation) -> None:
        """An aggregate of a proof has to come to something else."""
        if firing.rule == EQREL:
            return
        for prepared in self.deriver.prepared(firing.head.relation):
            if prepared.rule.name == firing.rule:
                for environment in self.deriver.environments(prepared, firing.head):
                    if tuple(self.deriver.fact(atom, environment) for atom in prepared.atoms) == firing.body:
                        for literal in prepared.rule.body:
                            if isinstance(literal, Aggregation):
                                self._change(literal, _Near(prepared.rule, environment, ()))

    def _change(self, literal: Aggregation, near: _Near) -> None:
        """An aggregate has to come to something else: it loses a row, or gets another."""
        if any(name not in near.environment for name in literal.outer):
            self.bound = self.bound or "what an aggregate is asked for"
            return
        outer = {name: near.environment[name] for name in literal.outer}
        for body in literal.bodies:
            for solution in islice(self.deriver.solver.solutions(body, outer), _LOSSES):
                for fact in self._facts(body, solution):
                    self._break(fact)
                for part in body:
                    if isinstance(part, Negation):
                        self._want(absence_of(part.atom, solution, self.deriver.solver))
            for each in self._near(near.rule, body, outer):
                self._look_into(each)

    def _facts(self, body: tuple[Literal, ...], solution: Environment) -> Iterator[Fact]:
        """The facts that a row of an aggregate is made of."""
        for part in body:
            if isinstance(part, Atom):
                yield from self._matches(part, solution)[:1]


def referred_to(row: Tuple, reference: Reference, program: Program) -> Absence:
    """What a row of a table refers to."""
    known = {key: row[at] for at, key in zip(reference.columns, reference.keys, strict=True)}
    arity = program.relations[reference.table].arity
    return Absence(reference.table, tuple(known.get(at, ANY) for at in range(arity)))


def _values_of(atom: Atom, head: Absence) -> Environment:
    """The values that variables of an atom have in a fact, as far as it has any."""
    pairs = zip(atom.args, head.pattern, strict=True)
    return {arg.name: value for arg, value in pairs if isinstance(arg, Var) and not has_wildcards(value)}  # type: ignore[misc]


def _both(one: Absence, other: Absence) -> Absence | None:
    """The facts that fit both, as far as wildcards stand for whole values; None if there is none."""
    pattern = []
    for mine, theirs in zip(one.pattern, other.pattern, strict=True):
        if mine is not ANY and theirs is not ANY and mine != theirs:
            return None
        pattern.append(theirs if mine is ANY else mine)
    return Absence(one.relation, tuple(pattern))


def _covers(wider: Absence, narrower: Absence) -> bool:
    """Whether every fact that fits the one fits the other: where they differ, the wider has a wildcard for all."""
    return wider.relation == narrower.relation and all(
        one is ANY or one == other for one, other in zip(wider.pattern, narrower.pattern, strict=True)
    )
