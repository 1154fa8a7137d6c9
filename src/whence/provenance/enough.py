"""Aggregates inside a recursion that come to enough before they are complete.

With a sum above a threshold, as in company control, a fact may follow from part of a group while the rest of the group follows
from the fact: companies that own shares of each other. All that is in the group cannot prove the fact then without going in a
circle. What has a proof already can, if it is enough: that is how the fact came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from whence.lang.program import Aggregation, Atom, Negation, Program, Rule
from whence.lang.tree import walk
from whence.lang.types import Value
from whence.lang.undefined import Undefined
from whence.provenance.graph import Aggregated, Derivation, DerivationGraph, Fact
from whence.provenance.heights import smallest_choices
from whence.provenance.replay import contributions_of, may_fire, premises_of, replayed
from whence.reference.solve import Solver


def with_enough(graph: DerivationGraph, program: Program) -> DerivationGraph:
    """The graph, and where it has no proof of a fact, firings over so much of their groups as has proofs and is enough."""
    rules = {
        name: list(_rules_with_groups(program, name, stratum.relations))
        for stratum in program.strata
        if stratum.monotone
        for name in stratum.relations
    }
    if not any(rules.get(fact.relation) for fact in graph.derivations):
        return graph
    while True:
        proven = smallest_choices(graph)
        found: dict[Fact, tuple[Derivation, ...]] = {}
        for fact, firings in graph.derivations.items():
            if fact not in proven:
                parts = (_part(each, proven, rules.get(fact.relation, ()), program) for each in firings)
                if more := tuple(part for part in parts if part is not None):
                    found[fact] = (*firings, *more)
        if not found:
            return graph
        graph = replace(graph, derivations={**graph.derivations, **found})


def _rules_with_groups(program: Program, relation: str, members: tuple[str, ...]) -> Iterator[Rule]:
    """Those that aggregate rows of their own recursion. What a group must not have is not told by the facts of a firing."""
    for rule in program.rules_for(relation):
        groups = [literal for literal in rule.body if isinstance(literal, Aggregation)]
        inside = [part for group in groups for part in walk(group)]
        is_recursive = any(isinstance(part, Atom) and part.relation in members for part in inside)
        if is_recursive and not any(isinstance(part, Negation) for part in inside):
            yield rule


def _part(
    firing: Derivation, proven: Mapping[Fact, object], rules: Sequence[Rule], program: Program
) -> Derivation | None:
    """The firing over those facts of its groups that have proofs, if they are enough."""
    if not firing.aggregates or any(fact not in proven for fact in firing.body):
        return None
    groups = [replace(each, facts=tuple(filter(proven.__contains__, each.facts))) for each in firing.aggregates]
    for rule in rules:
        if (
            rule.name == firing.rule
            and may_fire(rule, firing)
            and (values := _values(rule, firing, groups, program)) is not None
        ):
            made = zip(groups, values, strict=True)
            return replace(firing, aggregates=tuple(replace(each, value=value) for each, value in made))
    return None


def _values(rule: Rule, firing: Derivation, groups: Sequence[Aggregated], program: Program) -> list[Value] | None:
    """What the groups come to, if the rule makes the fact from nothing else. What is absent is so with any groups."""
    over = [literal for literal in rule.body if isinstance(literal, Aggregation)]
    tables = premises_of(firing)
    for at, each in enumerate(groups):
        tables |= contributions_of(at, each, program)
    body = replayed(rule, range(len(groups))).body
    solver = Solver(program, tables)
    solver.rule = rule
    for environment in solver.solutions(tuple(each for each in body if not isinstance(each, Negation)), {}):
        try:
            if tuple(solver.value(arg, environment) for arg in rule.head.args) == firing.head.tuple:
                return [solver.value(each.target, environment) for each in over]
        except Undefined:
            continue
    return None
