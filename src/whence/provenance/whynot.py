"""Why a fact does not hold: how close each rule comes to deriving it, and the smallest changes of base facts that would.

A rule is searched from its head as for a derivation, except that literals may fail at a cost; the assignments that fail least
are its closest. From what they miss, repairs follow: a missing base fact is inserted, a missing derived fact is a question of
its own, a fact that a negation forbids has to lose all its proofs. Every repair is tried out before it is shown.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from whence.io.changes import Update
from whence.lang.order import is_ready
from whence.lang.program import Aggregation, Atom, Literal, Negation, Rule, Var
from whence.lang.types import Tuple, Value
from whence.provenance.derivations import CannotExplain
from whence.provenance.derive import Deriver, PreparedRule
from whence.provenance.expand import Bounds, derivation_graph
from whence.provenance.graph import Absence, Fact, Wildcard
from whence.provenance.patterns import completed, has_wildcards, is_alike, pattern_of
from whence.provenance.proofs import assemble, smallest_choices
from whence.provenance.show import show_fact, show_value, source_text
from whence.reference.solve import Environment, is_known
from whence.session import Session

_STEPS = 20_000  # literals looked at for one rule
_ATTEMPTS = 40  # of a rule, that repairs are built from
_STATES = 3_000  # partial repairs looked at
_LARGEST = 4  # changes in a repair


@dataclass(frozen=True, slots=True)
class Attempt:
    """A rule with an assignment under which it comes close to a fact.

    `missing` are the facts it would need, `present` those that it must not find, and `failed` the other literals that do not
    hold, as the user wrote them. `found` are the facts that are there.
    """

    rule: str
    found: tuple[Fact, ...]
    missing: tuple[Absence, ...]
    present: tuple[Fact, ...]
    failed: tuple[str, ...]

    @property
    def distance(self) -> int:
        return len(self.missing) + len(self.present) + len(self.failed)


class Repair(NamedTuple):
    """Base facts to insert and to delete, as a whole known to make the fact true."""

    insertions: tuple[Fact, ...]
    deletions: tuple[Fact, ...]

    def __len__(self) -> int:
        return len(self.insertions) + len(self.deletions)


@dataclass(frozen=True)
class WhyNot:
    """`attempts` has the closest assignment of each rule; `beaten_by` the facts that keep a derived fact out of its relation."""

    fact: Fact
    attempts: tuple[Attempt, ...]
    repairs: tuple[Repair, ...]
    beaten_by: tuple[Fact, ...] = ()


def whynot(session: Session, relation: str, row: Tuple, *, repairs: int = 3) -> WhyNot:
    """What keeps a fact from holding. Raises CannotExplain if it holds.

    >>> from whence import Session, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"), facts={"link": [("a", "b")]})
    >>> whynot(session, "reach", ("b", "c")).repairs[0].insertions
    (Fact(relation='link', tuple=('b', 'c')),)
    """
    fact = Fact(relation, row)
    deriver = Deriver(session)
    if deriver.holds(fact):
        raise CannotExplain(f"{show_fact(fact)} holds; `whence why` shows the proof")
    beaten_by = tuple(sorted(_winners(deriver, fact), key=repr))
    attempts = tuple(min(each, key=_closeness(session)) for each in _attempts(deriver, fact).values() if each)
    found = _Repairs(deriver, fact, repairs).search() if repairs else []
    return WhyNot(fact, attempts, tuple(found), beaten_by)


def _closeness(session: Session) -> Callable[[Attempt], tuple[int, int, int, str]]:
    """Orders attempts: those that nothing but facts keeps from succeeding first, then by distance, base facts before others."""
    base = frozenset(session.program.base_relations)

    def closeness(attempt: Attempt) -> tuple[int, int, int, str]:
        needed = [*(each.relation for each in attempt.missing), *(each.relation for each in attempt.present)]
        derived = sum(name not in base for name in needed)
        return len(attempt.failed), attempt.distance, derived, repr((attempt.missing, attempt.present))

    return closeness


def _attempts(deriver: Deriver, fact: Fact) -> dict[str, list[Attempt]]:
    """Of each rule, the closest it comes; not of those that do derive the fact, which others keep out."""
    firing = {each.rule for each in deriver.derivations(fact)}
    return {
        prepared.rule.name: list(_NearMisses(deriver, prepared).search(fact))
        for prepared in deriver.prepared(fact.relation)
        if prepared.rule.name not in firing
    }


def _winners(deriver: Deriver, fact: Fact) -> Iterator[Fact]:
    """The facts that a choice preferred, or that dominate: a derived fact that is not there has lost to them."""
    if next(iter(deriver.derivations(fact)), None) is None:
        return
    relation = deriver.program.relations[fact.relation]
    for keys in relation.choices:
        rows = deriver.state.tables[fact.relation].lookup(keys, tuple(fact.tuple[key] for key in keys))
        yield from (Fact(fact.relation, row) for row in rows)
    for each in deriver.program.subsumptions:
        if each.dominated.relation == fact.relation:
            rest = tuple(literal for literal in each.body if literal != each.dominated)
            rule = Rule(each.name, each.dominated, rest, each.span)
            for firing in deriver.firings(rule, fact):
                yield from (used for used in firing.body if used.relation == fact.relation)


# -- near misses


@dataclass
class _NearMisses:
    deriver: Deriver
    prepared: PreparedRule
    steps: int = 0

    def search(self, fact: Fact) -> Iterator[Attempt]:
        """The assignments with the fewest failures, as far as a bounded search finds them."""
        start = dict(zip(self.prepared.columns, fact.tuple, strict=True))
        for allowed in range(1, len(self.prepared.steps) + 1):
            self.steps = 0
            found = dict.fromkeys(self._extend(start, list(self.prepared.steps), [], allowed))
            if found:
                yield from found
                return

    def _extend(
        self, environment: Environment, waiting: list[Literal], failures: list[Literal], allowed: int
    ) -> Iterator[Attempt]:
        self.steps += 1
        if self.steps > _STEPS:
            return
        ready = [literal for literal in waiting if is_ready(literal, environment.keys())]
        if not ready:
            if failures:
                yield self._attempt(environment, failures, waiting)
            return
        literal = min(ready, key=lambda each: self.deriver.promise(each, environment))
        rest = [each for each in waiting if each is not literal]
        for extended in self._satisfy(literal, environment):
            yield from self._extend(extended, rest, failures, allowed)
        if len(failures) < allowed and (isinstance(literal, Atom) or not self._holds(literal, environment)):
            yield from self._extend(environment, rest, [*failures, literal], allowed)

    def _holds(self, literal: Literal, environment: Environment) -> bool:
        return next(iter(self._satisfy(literal, environment)), None) is not None

    def _satisfy(self, literal: Literal, environment: Environment) -> Iterable[Environment]:
        if isinstance(literal, Atom):
            literal = self.deriver.met_with(literal, environment)
        return self.deriver.solver.solutions((literal,), environment)

    def _attempt(self, environment: Environment, failures: list[Literal], waiting: list[Literal]) -> Attempt:
        # As in the rule, whatever order the search took.
        places = {id(literal): at for at, literal in enumerate(self.prepared.rule.body)}
        failures = sorted(failures, key=lambda literal: places.get(id(literal), -1))
        without = {id(literal) for literal in (*failures, *waiting)}
        found = tuple(self.deriver.fact(atom, environment) for atom in self.prepared.atoms if id(atom) not in without)
        missing = tuple(self._pattern(atom, environment) for atom in failures if isinstance(atom, Atom))
        blocked = [literal.atom for literal in failures if isinstance(literal, Negation)]
        present = tuple(fact for atom in blocked for fact in self._matches(atom, environment))
        others = [literal for literal in failures if not isinstance(literal, Atom | Negation)]
        failed = dict.fromkeys(self._text(each, environment) for each in others)
        return Attempt(self.prepared.rule.name, found, missing, present, tuple(failed))

    def _pattern(self, atom: Atom, environment: Environment) -> Absence:
        return Absence(atom.relation, tuple(pattern_of(arg, environment, self.deriver.solver) for arg in atom.args))

    def _matches(self, atom: Atom, environment: Environment) -> Iterator[Fact]:
        known = [at for at, arg in enumerate(atom.args) if is_known(arg, environment)]
        key = tuple(self.deriver.solver.value(atom.args[at], environment) for at in known)
        rows = self.deriver.state.tables[atom.relation].lookup(tuple(known), key)
        return (Fact(atom.relation, row) for row in rows)

    def _text(self, literal: Literal, environment: Environment) -> str:
        rule = self.prepared.rule
        if literal.span == rule.span:  # what the head asks of the fact
            return f"the fact fits {source_text(self.deriver.program, rule.head.span)}"
        text = source_text(self.deriver.program, literal.span)
        if isinstance(literal, Aggregation):
            asked = replace(literal, target=Var("?value", literal.target.kind))
            for solution in self.deriver.solver.solutions((asked,), environment):
                return f"{text} (it is {show_value(solution['?value'])})"
            return f"{text} (there is none)"
        return text


# -- repairs


class _Change(NamedTuple):
    op: str
    fact: Fact


class _Goal(NamedTuple):
    """A fact that has to be there, or has to go; `depth` rules above a base fact at most."""

    fact: Fact
    wanted: bool
    depth: int


@dataclass
class _Repairs:
    deriver: Deriver
    fact: Fact
    number: int
    examples: dict[tuple[str, int, Value | Wildcard], Tuple | None] = field(default_factory=dict)

    def search(self) -> list[Repair]:
        """The smallest sets of changes that make the fact true, smallest first, none containing another."""
        base = set(self.deriver.program.base_relations)
        serial = count()
        found: list[frozenset[_Change]] = []
        start: tuple[int, int, frozenset[_Change], tuple[_Goal, ...]] = (
            1,
            next(serial),
            frozenset(),
            (_Goal(self.fact, True, _LARGEST),),
        )
        heap = [start]
        seen: set[tuple[frozenset[_Change], tuple[_Goal, ...]]] = set()
        for _ in range(_STATES):
            if not heap or len(found) >= self.number:
                break
            _, _, changes, goals = heapq.heappop(heap)
            if any(smaller <= changes for smaller in found):
                continue
            if not goals:
                if changes and self._works(changes):
                    found.append(changes)
                continue
            for more, following in self._options(goals[0], base):
                state = (changes | more, following + goals[1:])
                if state not in seen and len(state[0]) <= _LARGEST:
                    seen.add(state)
                    heapq.heappush(heap, (len(state[0]) + len(state[1]), next(serial), *state))
        return [self._repair(changes) for changes in found]

    def _options(self, goal: _Goal, base: set[str]) -> Iterator[tuple[frozenset[_Change], tuple[_Goal, ...]]]:
        if not goal.wanted:
            yield from ((changes, ()) for changes in self._removals(goal.fact))
            return
        if self.deriver.holds(goal.fact):
            yield frozenset(), ()
            return
        if goal.fact.relation in base:
            yield frozenset([_Change("+", goal.fact)]), ()
        if goal.depth == 0:
            return
        for attempts in _attempts(self.deriver, goal.fact).values():
            repairable = [each for each in attempts if not each.failed]
            repairable.sort(key=_closeness(self.deriver.session))
            for attempt in repairable[:_ATTEMPTS]:
                missing = [self._filled(each) for each in attempt.missing]
                if None not in missing:
                    wanted = tuple(_Goal(each, True, goal.depth - 1) for each in missing if each is not None)
                    yield frozenset(), (*wanted, *(_Goal(each, False, 0) for each in attempt.present))

    def _filled(self, pattern: Absence) -> Fact | None:
        """A fact that fits; what may be anything is taken from a fact that is there. None if there is none."""
        values: list[Value] = []
        for at, value in enumerate(pattern.pattern):
            if not has_wildcards(value):
                values.append(value)  # type: ignore[arg-type]
                continue
            known = pattern.relation, at, value
            if known not in self.examples:
                rows = self.deriver.state.tables[pattern.relation].lookup((), ())
                alike = (row for row in rows if is_alike(value, row[at]))
                self.examples[known] = min(alike, key=repr, default=None)
            example = self.examples[known]
            if example is None:
                return None
            values.append(completed(value, example[at]))
        return Fact(pattern.relation, tuple(values))

    def _removals(self, fact: Fact) -> Iterator[frozenset[_Change]]:
        """Sets of base facts without which a fact has no proof left: one fact of each proof, smallest sets first."""
        graph = derivation_graph(self.deriver, [fact], Bounds(facts=2_000))
        if graph.cut is not None:
            return
        level: list[frozenset[Fact]] = [frozenset()]
        found: list[frozenset[Fact]] = []
        for _ in range(_LARGEST):
            following: dict[frozenset[Fact], None] = {}
            for gone in level:
                choices = smallest_choices(replace(graph, base=graph.base - gone))
                if fact not in choices:
                    found.append(gone)
                    continue
                proof = assemble(fact, {each: firing for each, (_, firing) in choices.items()})
                leaves = [part.fact for part in proof if part.firing is None]
                following |= dict.fromkeys(gone | {leaf} for leaf in leaves)
            level = [gone for gone in following if not any(smaller <= gone for smaller in found)][:_STATES]
        for gone in found:
            if all(self.deriver.state.is_external(*each) for each in gone):
                yield frozenset(_Change("-", each) for each in gone)

    def _works(self, changes: frozenset[_Change]) -> bool:
        updates = [Update(op, *fact) for op, fact in sorted(changes, key=repr)]
        inserted = self.deriver.session.trial(updates).inserted
        self.deriver.forget()
        return self.fact.tuple in inserted.get(self.fact.relation, ())

    def _repair(self, changes: frozenset[_Change]) -> Repair:
        def chosen(op: str) -> tuple[Fact, ...]:
            return tuple(sorted((each.fact for each in changes if each.op == op), key=repr))

        return Repair(chosen("+"), chosen("-"))
