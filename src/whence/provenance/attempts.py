"""How close rules come to a fact that does not hold.

A rule is searched from its head as for a derivation, except that literals may fail at a cost; the assignments that fail least
are its closest. Rules of SQL are looked at as queries (`written_out`), and what is said of them names tables and views.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from whence.lang.fit import fits as can_hold
from whence.lang.order import is_ready
from whence.lang.program import Aggregation, Apply, Atom, Comparison, Const, Literal, Negation, Term, Var
from whence.lang.tree import Span
from whence.lang.undefined import Undefined
from whence.provenance.derivations import CannotExplain
from whence.provenance.derive import Deriver, PreparedRule
from whence.provenance.expand import Bounds
from whence.provenance.firings import absence_of
from whence.provenance.graph import Absence, Fact
from whence.provenance.patterns import has_wildcards
from whence.provenance.proofs import smallest_proof
from whence.provenance.show import show_value, shown, source_text
from whence.provenance.views import Folding, proof_of_views
from whence.provenance.written_out import WrittenOut
from whence.reference.solve import Environment, is_known

STEPS = 20_000  # literals looked at for one rule
_PROOF = Bounds(facts=2_000)
_IN_PARENTHESES = re.compile(r"\([^()]*\)")


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


class Attempts:
    """Looks for the attempts of a program's rules, in the state that a deriver shows."""

    def __init__(self, deriver: Deriver) -> None:
        self._deriver = deriver
        self._written_out = WrittenOut(deriver.program)
        self._prepared: dict[str, list[PreparedRule]] = {}
        self._base = frozenset(deriver.program.base_relations)
        self._folding = Folding(deriver.program)

    def of(self, fact: Fact) -> dict[str, list[Attempt]]:
        """Of each rule, the closest it comes; not of those that do derive the fact, which others keep out."""
        if fact.relation not in self._prepared:
            rules = self._written_out.rules(fact.relation)
            self._prepared[fact.relation] = [self._deriver.prepare(rule) for rule in rules]
        firing = {each.rule for each in self._deriver.derivations(fact)}
        found: dict[str, list[Attempt]] = {}
        queries: dict[Span, str] = {}  # one that became several rules is shown once
        for prepared in self._prepared[fact.relation]:
            rule = prepared.rule
            name = queries.setdefault(rule.span, rule.name) if rule.is_query else rule.name
            if rule.name not in firing:
                found.setdefault(name, []).extend(_NearMisses(self._deriver, prepared).search(fact))
        return found

    def closest(self, fact: Fact) -> tuple[Attempt, ...]:
        """The closest attempt of each rule, as it is shown."""
        return tuple(self._shown(min(each, key=self.closeness)) for each in self.of(fact).values() if each)

    def closeness(self, attempt: Attempt) -> tuple[int, int, int, int, str]:
        """Orders attempts: those that nothing but facts keeps from succeeding first, then by distance, base facts before others,
        and those that find more.
        """
        needed: list[Fact | Absence] = [*attempt.missing, *attempt.present]
        derived = sum(each.relation not in self._base and each.relation not in self._folding.helpers for each in needed)
        unlikely = len(attempt.failed) + sum(map(self._is_taken, attempt.missing))
        return unlikely, attempt.distance, derived, -len(attempt.found), shown(needed)

    def _is_taken(self, missing: Absence) -> bool:
        """Whether a row has the place of the missing one: it fits, and something else is wrong with it, or has the same key."""
        known = {at: value for at, value in enumerate(missing.pattern) if not has_wildcards(value)}
        table = self._deriver.program.relations[missing.relation].table
        keys = () if table is None else (key.columns for key in table.keys if known.keys() >= {*key.columns})
        for columns in (tuple(known), *map(sorted, keys)):
            values: Any = tuple(known[at] for at in columns)
            if (
                values
                and None not in values
                and self._deriver.state.tables[missing.relation].lookup(tuple(columns), values)
            ):
                return True
        return False

    def _shown(self, attempt: Attempt) -> Attempt:
        """Without helpers: what they were found to hold is there for facts of tables and views, which are shown."""
        found = (each for fact in attempt.found for each in self._meaning(fact))
        missing = map(self._folding.absence, attempt.missing)
        present = (each for fact in attempt.present for each in self._meaning(fact))
        return Attempt(
            attempt.rule,
            tuple(dict.fromkeys(found)),
            tuple(dict.fromkeys(missing)),
            tuple(dict.fromkeys(present)),
            attempt.failed,
        )

    def _meaning(self, fact: Fact) -> Iterator[Fact]:
        if not self._folding.is_folded(fact):
            yield self._folding.rows.of(self._folding.fact(fact))
            return
        with suppress(CannotExplain):  # too much to look through is left out
            proof, _ = smallest_proof(self._deriver, fact, _PROOF)
            yield from (each.fact for each in proof_of_views(proof, self._deriver.program).premises)


@dataclass
class _NearMisses:
    deriver: Deriver
    prepared: PreparedRule
    steps: int = 0

    def search(self, fact: Fact) -> Iterator[Attempt]:
        """The assignments with the fewest failures, as far as a bounded search finds them."""
        types = self.deriver.program.types
        head = zip(self.prepared.rule.head.args, fact.tuple, strict=True)
        if not all(can_hold(value, arg.kind, types) for arg, value in head):
            return  # as a nil, where another alternative has the rows with nils
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
        if self.steps > STEPS:
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
        rule, program = self.prepared.rule, self.deriver.program
        if literal.span == rule.span and not rule.is_query:  # what the head asks of the fact
            return f"the fact fits {source_text(program, rule.head.span)}"
        if isinstance(literal, Aggregation):
            text = source_text(program, literal.span)
            asked = replace(literal, target=Var("?value", literal.target.kind))
            for solution in self.deriver.solver.solutions((asked,), environment):
                return f"{text} (it is {show_value(solution['?value'])})"
            return f"{text} (there is none)"
        if rule.is_query and isinstance(literal, Comparison):
            return self._condition(literal, environment)
        return source_text(program, literal.span)

    def _condition(self, literal: Comparison, environment: Environment) -> str:
        """A comparison of a query: one that the user wrote, or one of what a column is with what is asked of it."""
        rule, program = self.prepared.rule, self.deriver.program
        asked = literal.left.name if isinstance(literal.left, Var) else ""
        if literal.span == rule.span and asked.startswith("#"):
            at = int(asked[1:])
            column = program.relations[rule.head.relation].fields[at].name
            is_there = self._value(literal.right, environment)
            return f"{column} = {show_value(environment[asked])}" + (f" (it is {is_there})" if is_there else "")
        text = source_text(program, literal.span) or "a value"
        if literal.op == "!=" and literal.right == Const(None, literal.right.kind):
            return text if "NULL" in text.upper() else f"{text} IS NOT NULL"
        if literal.op == "=" and "=" not in _IN_PARENTHESES.sub("", text):
            sides = [side for side in (literal.left, literal.right) if isinstance(side, Const | Apply)]
            if sides and (value := self._value(sides[0], environment)):
                return f"{text} (it is {value})"
        return text

    def _value(self, term: Term, environment: Environment) -> str:
        """What a term is, if it has a value."""
        if is_known(term, environment):
            with suppress(Undefined):
                return show_value(self.deriver.solver.value(term, environment))
        return ""
