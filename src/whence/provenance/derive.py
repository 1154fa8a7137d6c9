"""The derivations of a fact in a session, found backwards: its rules with their heads bound to it, and the body looked up.

Every rule is prepared once: wildcards get names, so that an assignment tells which rows were used, and the body is ordered
for a search that starts from the head. What a body means is the reference's to say (`Solver`); this looks into a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from whence.lang.order import names_met
from whence.lang.program import (
    Atom,
    Comparison,
    Literal,
    Program,
    Rule,
    Var,
    counter_in,
)
from whence.lang.types import Tuple
from whence.lookup import ordered_for_search, promise
from whence.plan.wildcards import name_wildcards
from whence.provenance.derivations import CannotExplain, Derivations, LiveDerivations, Ranks
from whence.provenance.firings import fact_of, firings, stated_facts
from whence.provenance.graph import Derivation, Fact
from whence.provenance.live import LiveState
from whence.provenance.matching import FactPattern
from whence.reference.solve import Environment, Solver
from whence.session import Session

EQREL = "eqrel"


@dataclass(frozen=True, slots=True)
class PreparedRule:
    """A rule to be searched from its head.

    `rule` has no wildcards in positive atoms. The values of a fact go into the variables `columns`; `steps` is then the body,
    with what the head asks of them, in the order of the search.
    """

    rule: Rule
    columns: tuple[str, ...]
    steps: tuple[Literal, ...]

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return tuple(literal for literal in self.rule.body if isinstance(literal, Atom))


class Deriver(LiveDerivations):
    """Finds derivations in the current state of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.state = LiveState(session)
        self.solver = Solver(session.program, self.state.tables)
        self._base: dict[str, set[Tuple]] | None = None
        self._stated: dict[str, dict[Tuple, Rule]] = {}
        # The solver knows atoms by their identity, so none may go and leave its number to another.
        self._kept: list[PreparedRule] = []
        self._met: dict[tuple[int, frozenset[str]], Atom] = {}
        self._prepared: dict[str, tuple[PreparedRule, ...]] = {}

    @property
    def program(self) -> Program:
        return self.session.program

    @property
    def ranks(self) -> Ranks | None:
        return None if self.state.is_supposed else self.state

    def holds(self, fact: Fact) -> bool:
        return self.state.holds(*fact)

    def is_base(self, fact: Fact) -> bool:
        return self.state.is_external(*fact) or self.fact_rule(fact) is not None

    def base_facts(self, relation: str) -> Iterator[Fact]:
        if self._base is None:
            self._base = self.session.base()
        return (Fact(relation, row) for row in self._base[relation])

    def session_of(self, fact: Fact) -> Session:  # noqa: ARG002 - all of them are in it
        return self.session

    def matching(self, pattern: FactPattern) -> Iterator[Fact]:
        return pattern.among(self.state.tables[pattern.relation])

    def fact_rule(self, fact: Fact) -> Rule | None:
        """The program's own statement of the fact."""
        stated = self._stated.get(fact.relation)
        if stated is None:
            stated = self._stated[fact.relation] = stated_facts(self.program, fact.relation)
        return stated.get(fact.tuple)

    def derivations(self, fact: Fact) -> Iterator[Derivation]:
        """Those of facts that do not hold, too: what a choice did not take has derivations all the same."""
        for prepared in self.prepared(fact.relation):
            for environment in self.environments(prepared, fact):
                yield from firings(prepared.rule, fact, environment, self.solver)
        if self.is_equivalence(fact.relation):
            yield from self._by_equivalence(fact)

    def firings(self, rule: Rule, fact: Fact) -> Iterator[Derivation]:
        """The firings of one rule, which need not be the program's, that make the fact."""
        prepared = self.prepare(rule)
        for environment in self.environments(prepared, fact):
            yield from firings(prepared.rule, fact, environment, self.solver)

    def met_with(self, atom: Atom, environment: Environment) -> Atom:
        """The atom, for a search that may meet it with any of its variables known: how it is looked up depends on them."""
        known = frozenset(name for name in names_met(atom) if name in environment)
        return self._met.setdefault((id(atom), known), replace(atom))

    def forget(self) -> None:
        """To be called when the session has had an epoch or a trial."""
        self.state.forget()

    def is_equivalence(self, relation: str) -> bool:
        return self.program.relations[relation].equivalence

    def environments(self, prepared: PreparedRule, fact: Fact) -> Iterator[Environment]:
        """The assignments under which the rule makes the fact."""
        self.solver.rule = prepared.rule
        yield from self.solver.solutions(prepared.steps, dict(zip(prepared.columns, fact.tuple, strict=True)))

    # -- rules

    def prepared(self, relation: str) -> tuple[PreparedRule, ...]:
        if relation not in self._prepared:
            rules = (rule for rule in self.program.rules_for(relation) if not rule.is_fact)
            self._prepared[relation] = tuple(self.prepare(rule) for rule in rules)
        return self._prepared[relation]

    def prepare(self, rule: Rule) -> PreparedRule:
        """The rule, which need not be the program's, for a search."""
        if counter := counter_in(rule):
            raise CannotExplain(f"rule {rule.name} has {counter}(): which row got which number cannot be retraced")
        named = replace(rule, body=name_wildcards(rule.body))
        columns: list[str] = []
        asked: list[Literal] = []
        for at, arg in enumerate(named.head.args):
            if isinstance(arg, Var) and arg.name not in columns:
                columns.append(arg.name)
            else:
                columns.append(f"#{at}")
                asked.append(Comparison("=", Var(f"#{at}", arg.kind), arg, rule.span))
        steps = tuple(ordered_for_search((*asked, *named.body), columns, self._size))
        prepared = PreparedRule(named, tuple(columns), steps)
        self._kept.append(prepared)
        return prepared

    def promise(self, literal: Literal, known: Environment) -> float:
        """What to look at next, with these variables known: the less, the better."""
        return promise(literal, known, self._size)

    def _size(self, relation: str) -> int:
        return len(self.state.tables[relation])

    def fact(self, atom: Atom, environment: Environment) -> Fact:
        return fact_of(atom, environment, self.solver)

    # -- equivalence relations

    def _by_equivalence(self, fact: Fact) -> Iterator[Derivation]:
        """Steps of the closure: from the pair the other way round, over a third value, or to itself."""
        name, (left, right) = fact
        if left == right:
            for _, other in self.state.tables[name].lookup((0,), (left,)):
                if other != left:
                    yield Derivation(EQREL, fact, (Fact(name, (left, other)),))
            return
        yield Derivation(EQREL, fact, (Fact(name, (right, left)),))
        for _, middle in self.state.tables[name].lookup((0,), (left,)):
            if middle not in (left, right):
                yield Derivation(EQREL, fact, (Fact(name, (left, middle)), Fact(name, (middle, right))))


def derivations_of(subject: Session | Derivations) -> Derivations:
    """Whom to ask. For a session that is made anew with each question: rows may have moved since the one before."""
    return Deriver(subject) if isinstance(subject, Session) else subject
