"""The derivations of a fact, found backwards: its rules with their heads bound to it, and the body looked up.

Every rule is prepared once: wildcards get names, so that an assignment tells which rows were used, and the body is ordered
for a search that starts from the head. What a body means is the reference's to say (`Solver`); this looks into a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from whence.lang.order import binds, is_ready, names_met
from whence.lang.program import (
    Aggregation,
    Apply,
    Atom,
    Comparison,
    Generator,
    Literal,
    Negation,
    Rule,
    Var,
)
from whence.lang.tree import walk
from whence.lang.types import Tuple, Value
from whence.plan.wildcards import name_wildcards
from whence.provenance.graph import Absence, Aggregated, Derivation, Fact
from whence.provenance.live import LiveState
from whence.provenance.patterns import pattern_of
from whence.provenance.show import show_fact
from whence.reference.solve import Environment, Solver, is_known
from whence.session import Session

EQREL = "eqrel"


class CannotExplain(ValueError):
    """A question about something that has no derivations to show, with the reason."""


class NotThere(CannotExplain):
    def __init__(self, fact: Fact) -> None:
        super().__init__(f"{show_fact(fact)} does not hold; `whence whynot` says what is missing")


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


class Deriver:
    """Finds derivations in the current state of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.program = session.program
        self.state = LiveState(session)
        self.solver = Solver(self.program, self.state.tables)
        self._stated: dict[str, dict[Tuple, Rule]] = {}
        # The solver knows atoms by their identity, so none may go and leave its number to another.
        self._kept: list[PreparedRule] = []
        self._met: dict[tuple[int, frozenset[str]], Atom] = {}
        self._prepared: dict[str, tuple[PreparedRule, ...]] = {}

    def holds(self, fact: Fact) -> bool:
        return self.state.holds(*fact)

    def is_base(self, fact: Fact) -> bool:
        """Whether the fact was put in from outside or stands in the program."""
        return self.state.is_external(*fact) or self.fact_rule(fact) is not None

    def fact_rule(self, fact: Fact) -> Rule | None:
        """The program's own statement of the fact."""
        stated = self._stated.get(fact.relation)
        if stated is None:
            rules = [rule for rule in self.program.rules_for(fact.relation) if rule.is_fact]
            stated = self._stated[fact.relation] = {row: rule for rule in rules for row in self.solver.heads(rule)}
        return stated.get(fact.tuple)

    def derivations(self, fact: Fact) -> Iterator[Derivation]:
        """Every firing that makes the fact, whether or not the fact holds; facts of the program text have none."""
        for prepared in self.prepared(fact.relation):
            for environment in self.environments(prepared, fact):
                yield from self._firings(prepared, fact, environment)
        if self.is_equivalence(fact.relation):
            yield from self._by_equivalence(fact)

    def firings(self, rule: Rule, fact: Fact) -> Iterator[Derivation]:
        """The firings of one rule, which need not be the program's, that make the fact."""
        prepared = self._prepare(rule)
        for environment in self.environments(prepared, fact):
            yield from self._firings(prepared, fact, environment)

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
            self._prepared[relation] = tuple(self._prepare(rule) for rule in rules)
        return self._prepared[relation]

    def _prepare(self, rule: Rule) -> PreparedRule:
        if any(isinstance(part, Apply) and part.functor == "autoinc" for part in walk(rule)):
            raise CannotExplain(f"rule {rule.name} has autoinc(): which row got which number cannot be retraced")
        named = replace(rule, body=name_wildcards(rule.body))
        columns: list[str] = []
        asked: list[Literal] = []
        for at, arg in enumerate(named.head.args):
            if isinstance(arg, Var) and arg.name not in columns:
                columns.append(arg.name)
            else:
                columns.append(f"#{at}")
                asked.append(Comparison("=", Var(f"#{at}", arg.kind), arg, rule.span))
        steps = tuple(self._ordered((*asked, *named.body), columns))
        prepared = PreparedRule(named, tuple(columns), steps)
        self._kept.append(prepared)
        return prepared

    def _ordered(self, body: tuple[Literal, ...], bound: Iterable[str]) -> Iterator[Literal]:
        """Tests as soon as they can be made, and next the atom that promises the fewest rows."""
        known: dict[str, Value] = dict.fromkeys(bound)
        waiting = list(body)
        while waiting:
            ready = [literal for literal in waiting if is_ready(literal, known.keys())]
            best = min(ready, key=lambda literal: self.promise(literal, known))
            yield best
            waiting.remove(best)
            known |= dict.fromkeys(binds(best))

    def promise(self, literal: Literal, known: Environment) -> float:
        """What to look at next, with these variables known: the less, the better."""
        if not isinstance(literal, Atom):
            # Searching a range or a group costs more than a test, but less than most relations.
            return 2.0 if isinstance(literal, Aggregation | Generator) else 0.0
        free = sum(not is_known(arg, known) for arg in literal.args)
        return 1.0 if free == 0 else 2.0 + float(len(self.state.tables[literal.relation]) ** (free / len(literal.args)))

    def _firings(self, prepared: PreparedRule, fact: Fact, environment: Environment) -> Iterator[Derivation]:
        rule = prepared.rule
        body = tuple(self.fact(atom, environment) for atom in prepared.atoms)
        absent = tuple(
            Absence(
                literal.atom.relation, tuple(pattern_of(arg, environment, self.solver) for arg in literal.atom.args)
            )
            for literal in rule.body
            if isinstance(literal, Negation)
        )
        groups = [literal for literal in rule.body if isinstance(literal, Aggregation)]
        for aggregates in product(*(self._aggregated(literal, environment) for literal in groups)):
            yield Derivation(rule.name, fact, body, absent, aggregates)

    def fact(self, atom: Atom, environment: Environment) -> Fact:
        return Fact(atom.relation, tuple(self.solver.value(arg, environment) for arg in atom.args))

    # -- aggregates

    def _aggregated(self, literal: Aggregation, environment: Environment) -> Iterator[Aggregated]:
        """The ways to account for an aggregate's value: all that contributed, or for `min` and `max` one witness each."""
        value = self.solver.value(literal.target, environment)
        outer = {name: environment[name] for name in literal.outer}
        contributions = [
            (solution, facts) for body in literal.bodies for solution, facts in self._solutions_with_facts(body, outer)
        ]
        if literal.op not in ("min", "max"):
            facts = tuple(sorted({fact for _, used in contributions for fact in used}, key=repr))
            yield Aggregated(literal.op, value, facts)
            return
        assert literal.value is not None
        for solution, used in contributions:
            if self.solver.value(literal.value, solution) == value:
                yield Aggregated(literal.op, value, used)

    def _solutions_with_facts(
        self, body: tuple[Literal, ...], environment: Environment
    ) -> Iterator[tuple[Environment, tuple[Fact, ...]]]:
        for solution in self.solver.solutions(body, environment):
            facts = [self.fact(literal, solution) for literal in body if isinstance(literal, Atom)]
            for literal in body:
                if isinstance(literal, Aggregation):
                    facts += next(self._aggregated(literal, solution)).facts
            yield solution, tuple(facts)

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
