"""A rule and values of its variables as a derivation: the facts used, what was found missing, what aggregates ran over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from whence.lang.program import Aggregation, Atom, Literal, Negation, Program, Rule
from whence.lang.types import Tuple, Value
from whence.lang.undefined import Undefined
from whence.provenance.graph import Absence, Aggregated, Derivation, Fact
from whence.provenance.patterns import pattern_of
from whence.provenance.show import show_fact
from whence.reference.solve import Environment, Solver


def firings(rule: Rule, head: Fact, environment: Environment, solver: Solver) -> Iterator[Derivation]:
    """The firings of a rule without wildcards under one assignment: several where `min` or `max` has several witnesses."""
    body = tuple(fact_of(literal, environment, solver) for literal in rule.body if isinstance(literal, Atom))
    absent = tuple(
        absence_of(literal.atom, environment, solver) for literal in rule.body if isinstance(literal, Negation)
    )
    groups = [literal for literal in rule.body if isinstance(literal, Aggregation)]
    for aggregates in product(*(_aggregated(literal, environment, solver) for literal in groups)):
        yield Derivation(rule.name, head, body, absent, aggregates)


def stated_facts(program: Program, relation: str) -> dict[Tuple, Rule]:
    """The facts of a relation that stand in the program text."""
    solver = Solver(program, {})
    return {row: rule for rule in program.rules_for(relation) if rule.is_fact for row in solver.heads(rule)}


def fact_of(atom: Atom, environment: Environment, solver: Solver) -> Fact:
    return Fact(atom.relation, tuple(solver.value(arg, environment) for arg in atom.args))


def absence_of(atom: Atom, environment: Environment, solver: Solver) -> Absence:
    return Absence(atom.relation, tuple(pattern_of(arg, environment, solver) for arg in atom.args))


def _aggregated(literal: Aggregation, environment: Environment, solver: Solver) -> Iterator[Aggregated]:
    """The ways to account for an aggregate's value: all that contributed, or for `min` and `max` one witness each."""
    value = solver.value(literal.target, environment)
    outer = {name: environment[name] for name in literal.outer}
    contributions = [each for body in literal.bodies for each in _contributions(literal, body, outer, solver)]
    if literal.op not in ("min", "max"):
        facts = tuple(sorted({fact for _, used in contributions for fact in used}, key=show_fact))
        yield Aggregated(literal.op, value, facts)
        return
    for contributed, used in contributions:
        if contributed == value:
            yield Aggregated(literal.op, value, used)


def _contributions(
    literal: Aggregation, body: tuple[Literal, ...], outer: Environment, solver: Solver
) -> Iterator[tuple[Value, tuple[Fact, ...]]]:
    """The values that an aggregate is made of, each with its facts. Rows without one, as 0 is for `10 / x`, do not count."""
    for solution, facts in _solutions_with_facts(body, outer, solver):
        try:
            value = None if literal.value is None else solver.value(literal.value, solution)
        except Undefined:
            continue
        yield value, facts


def _solutions_with_facts(
    body: tuple[Literal, ...], environment: Environment, solver: Solver
) -> Iterator[tuple[Environment, tuple[Fact, ...]]]:
    for solution in solver.solutions(body, environment):
        facts = [fact_of(literal, solution, solver) for literal in body if isinstance(literal, Atom)]
        for literal in body:
            if isinstance(literal, Aggregation):
                facts += next(_aggregated(literal, solution, solver)).facts
        yield solution, tuple(facts)
