"""What a program means in a semiring: each tuple is the sum, over its derivations, of the products of what they use.

Written to be read: all ground instances of the rules are listed, then applied from zero until nothing changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import NamedTuple, TypeVar

from whence.lang.program import (
    Aggregation,
    Anything,
    Apply,
    Atom,
    Literal,
    Negation,
    Program,
    Rule,
    Subsumption,
    Var,
    counter_in,
)
from whence.lang.tree import walk
from whence.lang.types import Tuple
from whence.limits import Limits, OnRound, RunawayError
from whence.reference.evaluate import evaluate
from whence.reference.solve import Solver
from whence.reference.tables import TupleSet
from whence.semiring import INFINITY, Counting, NotInThisSemiring, Semiring
from whence.semiring.tokens import show_token

V = TypeVar("V")
Fact = tuple[str, Tuple]
Annotate = Callable[[str, Tuple], V | None]


class Instance(NamedTuple):
    """One firing of a rule."""

    rule: str
    head: Fact
    body: tuple[Fact, ...]


def evaluate_annotated(
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    semiring: Semiring[V],
    annotate: Annotate[V] = lambda _name, _row: None,
    *,
    rules: Mapping[str, V] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_round: OnRound | None = None,
) -> dict[str, dict[Tuple, V]]:
    """The tuples of every relation with their annotations, none of which is zero."""
    started = time.monotonic()
    check_annotatable(program, semiring)
    factors = rules or {}
    given = {
        (name, row): value
        for name, row in base_facts(program, facts)
        if (value := semiring.base((name, row), annotate(name, row))) != semiring.zero
    }
    present: dict[str, set[Tuple]] = {name: set() for name in program.relations}
    for name, row in given:
        present[name].add(row)
    program = without_base(program, semiring, factors)
    views = evaluate(program, present, limits=limits, on_round=on_round)
    facts_there = sum(len(rows) for rows in views.values())

    def look(number: int = 0) -> None:
        """Looks at the limits; rounds are those in which annotations change."""
        if on_round is not None and number:
            on_round("annotations", number, facts_there)
        if limits.max_rounds is not None and number > limits.max_rounds:
            raise RunawayError(f"stopped after {limits.max_rounds} rounds of annotating\n  hint: raise --max-rounds")
        if limits.timeout is not None and time.monotonic() - started > limits.timeout:
            raise RunawayError(f"stopped after {limits.timeout:g} s, while annotating\n  hint: raise --timeout")

    instances = list(instances_of(program, views, look))
    endless = _endless(instances, given, facts_there, look)
    if endless and not semiring.properties.stable:
        if not isinstance(semiring, Counting):
            raise semiring.endless(min(map(show_token, endless)))
        instances = [each for each in instances if each.head not in endless]
    values: dict[Fact, V] = {}
    for number in count(1):
        look(number)
        following = dict(given)
        for rule, head, body in instances:
            term = reduce(semiring.times, (values.get(each, semiring.zero) for each in body), semiring.one)
            scaled = semiring.times(factors.get(rule, semiring.one), term)
            following[head] = semiring.plus(following.get(head, semiring.zero), scaled)
        if following == values:
            break
        values = following
    if not semiring.properties.stable:
        values |= dict.fromkeys(endless, INFINITY)  # type: ignore[arg-type]
    result: dict[str, dict[Tuple, V]] = {name: {} for name in program.relations}
    for (name, row), value in values.items():
        if value != semiring.zero:
            result[name][row] = value
    return result


def without_base(program: Program, semiring: Semiring[V], factors: Mapping[str, V]) -> Program:
    """Only the rules that derive: not those that state facts, nor those that count as zero."""
    rules = (
        rule for rule in program.rules if not rule.is_fact and factors.get(rule.name, semiring.one) != semiring.zero
    )
    return replace(program, rules=tuple(rules))


def base_facts(program: Program, facts: Mapping[str, Iterable[Tuple]]) -> set[Fact]:
    """What is put in from outside, and what stands in the program."""
    solver = Solver(program, {name: TupleSet() for name in program.relations})
    stated = {(rule.head.relation, row) for rule in program.rules if rule.is_fact for row in solver.heads(rule)}
    return stated | {(name, row) for name, rows in facts.items() for row in rows}


def instances_of(
    program: Program, views: Mapping[str, Iterable[Tuple]], on_steps: Callable[[], None] = lambda: None
) -> Iterator[Instance]:
    """Every firing of every rule on complete relations."""
    solver = Solver(program, {name: TupleSet(rows) for name, rows in views.items()}, on_steps=on_steps)
    # All at once: the solver knows atoms by their identity, so they must not go while it is in use.
    for rule in [_name_wildcards(rule) for rule in program.rules]:
        solver.rule = rule
        atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
        for environment in solver.solutions(rule.body, {}):
            head, *body = (
                (atom.relation, tuple(solver.value(arg, environment) for arg in atom.args))
                for atom in (rule.head, *atoms)
            )
            yield Instance(rule.name, head, tuple(body))


def _name_wildcards(rule: Rule) -> Rule:
    """The rule with variables for the wildcards of its atoms: which tuple was met matters here."""
    body: list[Literal] = []
    for at, literal in enumerate(rule.body):
        if isinstance(literal, Atom):
            args = tuple(
                Var(f"_{at}.{column}", arg.kind) if isinstance(arg, Anything) else arg
                for column, arg in enumerate(literal.args)
            )
            body.append(replace(literal, args=args))
        else:
            body.append(literal)
    return replace(rule, body=tuple(body))


def _endless(instances: list[Instance], given: Iterable[Fact], facts: int, look: Callable[[], None]) -> set[Fact]:
    """The facts with infinitely many derivations: those with a derivation deeper than there are facts, for such a one
    repeats itself."""
    deep = set(given) | {each.head for each in instances}
    for _ in range(facts + 1):
        look()
        deep = {each.head for each in instances if not deep.isdisjoint(each.body)}
    return deep


def check_annotatable(program: Program, semiring: Semiring[V]) -> None:
    """Raises NotInThisSemiring for what has no meaning as sums of products, naming the place."""
    if not semiring.properties.commutative:
        raise semiring.refusal("has a ⊗ whose order matters, and the literals of a rule have none")
    for subsumption in program.subsumptions:
        raise _refusal(
            program, f"{subsumption.name} deletes tuples, which has no meaning for annotated tuples", subsumption
        )
    for name, relation in program.relations.items():
        if relation.equivalence or relation.choices or relation.limit is not None:
            kind = "an eqrel" if relation.equivalence else "bounded by choice-domain or .limitsize"
            raise NotInThisSemiring(f"{name} is {kind}, which has no meaning for annotated tuples")
    for stratum in program.strata:
        if stratum.stages:
            names = ", ".join(stratum.relations)
            raise NotInThisSemiring(f"{names}: negation inside recursion, by stages, is not supported with annotations")
    for rule in program.rules:
        for part in walk(rule):
            if isinstance(part, Aggregation):
                raise _refusal(
                    program,
                    f"rule {rule.name} has an aggregate, and aggregates of annotated tuples are not sums of products",
                    rule,
                )
            if isinstance(part, Apply) and (counter := counter_in(part)):
                reason = f"rule {rule.name} has {counter}(), which is not supported with annotations"
                raise _refusal(program, reason, rule)
            if isinstance(part, Negation) and not semiring.properties.positive:
                reason = f"rule {rule.name} has a negation, but in {semiring.name} tuples that are there can have annotation zero"
                raise _refusal(program, reason, rule)


def _refusal(program: Program, reason: str, at: Rule | Subsumption) -> NotInThisSemiring:
    place = program.source.place(at.span)
    return NotInThisSemiring(f"{place.file.name}:{place.line}: {reason}")
