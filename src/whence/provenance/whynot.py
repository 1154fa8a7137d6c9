"""Why a fact does not hold: how close each rule comes to deriving it, and the smallest changes of base facts that would.

A rule is searched from its head as for a derivation, except that literals may fail at a cost; the assignments that fail least
are its closest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from whence.lang.order import is_ready
from whence.lang.program import Aggregation, Atom, Literal, Negation, Var
from whence.lang.types import Field, Tuple, Value
from whence.lang.undefined import Undefined
from whence.provenance.base import fact_of
from whence.provenance.derivations import CannotExplain
from whence.provenance.derive import Deriver, PreparedRule
from whence.provenance.firings import absence_of
from whence.provenance.graph import Absence, Fact
from whence.provenance.matching import FactPattern
from whence.provenance.repairs import Effort, Repair, Repairs, find_repairs
from whence.provenance.show import show_fact, show_value, shown, source_text
from whence.provenance.suppose import Supposition
from whence.provenance.winners import winners
from whence.reference.solve import Environment, is_known
from whence.session import Session

_STEPS = 20_000  # literals looked at for one rule


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


@dataclass(frozen=True)
class WhyNot:
    """`attempts` has the closest assignment of each rule; `beaten_by` the facts that keep a derived fact out of its relation.

    `bound` says what kept the search for repairs from going on; it is empty if there are no more of them.
    """

    fact: Fact
    attempts: tuple[Attempt, ...]
    repairs: tuple[Repair, ...]
    beaten_by: tuple[Fact, ...] = ()
    bound: str = ""


def whynot(
    session: Session,
    relation: str | tuple[str, Tuple],
    row: Tuple | None = None,
    *,
    repairs: int = 3,
    among: Collection[str] | None = None,
    effort: Effort = Effort(),  # noqa: B008 - immutable
) -> WhyNot:
    """What keeps a fact from holding, and the smallest `repairs`, `among` some base relations. Raises CannotExplain if it holds.

    >>> from whence import Session, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"), facts={"link": [("a", "b")]})
    >>> whynot(session, "reach", ("b", "c")).repairs[0].insertions
    (Fact(relation='link', tuple=('b', 'c')),)
    """
    fact = fact_of(session.program, relation, row)
    supposition = Supposition(session)
    deriver = supposition.deriver
    if deriver.holds(fact):
        raise CannotExplain(f"{show_fact(fact)} holds; `whence why` shows the proof")
    beaten_by = tuple(sorted(winners(deriver, fact), key=show_fact))
    attempts = tuple(min(each, key=_closeness(session)) for each in _attempts(deriver, fact).values() if each)
    found = find_repairs(supposition, fact, repairs, effort, among) if repairs else Repairs((), "")
    return WhyNot(fact, attempts, found.found, beaten_by, found.bound)


class Absent(NamedTuple):
    """Facts that fit a pattern and are not there, those that rules come closest to first. `is_all`: no other was left out."""

    facts: list[Fact]
    is_all: bool


def closest_absent(session: Session, pattern: FactPattern, most: int, seconds: float = 5.0) -> Absent:
    """Values for what is free come from the columns of base facts that have the same type.

    >>> from whence import Session, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"), facts={"link": [("a", "b")]})
    >>> closest_absent(session, FactPattern("reach", {0: "b"}, {}), 1).facts
    [Fact(relation='reach', tuple=('b', 'a'))]
    """
    deadline = time.monotonic() + seconds
    deriver, closeness = Deriver(session), _closeness(session)
    found: list[tuple[tuple[int, int, int, str], Fact]] = []
    none = (0, _STEPS, 0, "")  # no rule can make it
    for fact in _candidates(session, pattern):
        if deriver.holds(fact):
            continue
        attempts = (each for listed in _attempts(deriver, fact).values() for each in listed)
        found.append((min(map(closeness, attempts), default=none), fact))
        if time.monotonic() > deadline:
            break
    nearest = sorted(found, key=lambda each: (each[0], show_fact(each[1])))
    is_all = len(found) <= most and time.monotonic() <= deadline
    return Absent([fact for _, fact in nearest[:most]], is_all)


def _candidates(session: Session, pattern: FactPattern) -> Iterator[Fact]:
    fields = session.program.relations[pattern.relation].fields
    free = [at for at in range(len(fields)) if at not in pattern.known and at not in pattern.same]
    for chosen in product(*(_values(session, fields[at]) for at in free)):
        row = {**pattern.known, **dict(zip(free, chosen, strict=True))}
        row |= {at: row[first] for at, first in pattern.same.items()}
        yield Fact(pattern.relation, tuple(row[at] for at in range(len(fields))))


def _values(session: Session, field: Field) -> list[Value]:
    """What base facts have in columns of the same type, in columns of the same name first."""
    found: dict[Value, None] = {}
    columns = [
        (each.name != field.name, name, at)
        for name in session.program.base_relations
        for at, each in enumerate(session.program.relations[name].fields)
        if each.kind == field.kind
    ]
    for _, name, at in sorted(columns):
        found |= dict.fromkeys(sorted({row[at] for row in session.relation(name)}, key=show_value))
    return list(found)


def _closeness(session: Session) -> Callable[[Attempt], tuple[int, int, int, str]]:
    """Orders attempts: those that nothing but facts keeps from succeeding first, then by distance, base facts before others."""
    base = frozenset(session.program.base_relations)

    def closeness(attempt: Attempt) -> tuple[int, int, int, str]:
        needed = [*(each.relation for each in attempt.missing), *(each.relation for each in attempt.present)]
        derived = sum(name not in base for name in needed)
        return len(attempt.failed), attempt.distance, derived, shown((*attempt.missing, *attempt.present))

    return closeness


def _attempts(deriver: Deriver, fact: Fact) -> dict[str, list[Attempt]]:
    """Of each rule, the closest it comes; not of those that do derive the fact, which others keep out."""
    firing = {each.rule for each in deriver.derivations(fact)}
    return {
        prepared.rule.name: list(_NearMisses(deriver, prepared).search(fact))
        for prepared in deriver.prepared(fact.relation)
        if prepared.rule.name not in firing
    }


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
                with suppress(Undefined):  # a fact that has no values cannot be missing
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
        missing = tuple(
            absence_of(atom, environment, self.deriver.solver) for atom in failures if isinstance(atom, Atom)
        )
        blocked = [literal.atom for literal in failures if isinstance(literal, Negation)]
        present = tuple(fact for atom in blocked for fact in self._matches(atom, environment))
        others = [literal for literal in failures if not isinstance(literal, Atom | Negation)]
        failed = dict.fromkeys(self._text(each, environment) for each in others)
        return Attempt(self.prepared.rule.name, found, missing, present, tuple(failed))

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
