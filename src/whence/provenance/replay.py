"""A rule run over what one firing of it used, and nothing else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from whence.lang.program import Aggregation, Atom, Literal, Program, Rule
from whence.provenance.graph import Aggregated, Derivation
from whence.reference.tables import TupleSet


def may_fire(rule: Rule, firing: Derivation) -> bool:
    """Whether the firing has a premise for each atom of the rule, and a group for each aggregate."""
    atoms = [literal.relation for literal in rule.body if isinstance(literal, Atom)]
    groups = sum(isinstance(literal, Aggregation) for literal in rule.body)
    return atoms == [fact.relation for fact in firing.body] and groups == len(firing.aggregates)


def replayed(rule: Rule, groups: Collection[int]) -> Rule:
    """The rule over its premises, one relation for each atom, and over the contributions to some of its aggregates."""
    body: list[Literal] = []
    at = number = 0
    for literal in rule.body:
        if isinstance(literal, Atom):
            body.append(replace(literal, relation=f"premise {at}"))
            at += 1
        elif isinstance(literal, Aggregation):
            body.append(_over(literal, f"contribution {number} ") if number in groups else literal)
            number += 1
        else:
            body.append(literal)
    return replace(rule, body=tuple(body))


def premises_of(firing: Derivation) -> dict[str, TupleSet]:
    """A relation for each atom."""
    return {f"premise {at}": TupleSet([fact.tuple]) for at, fact in enumerate(firing.body)}


def contributions_of(at: int, aggregated: Aggregated, program: Program) -> dict[str, TupleSet]:
    """The facts that contributed to an aggregate, as relations of their own."""
    return {
        f"contribution {at} {name}": TupleSet({fact.tuple for fact in aggregated.facts if fact.relation == name})
        for name in program.relations
    }


def _over(group: Aggregation, prefix: str) -> Aggregation:
    return replace(group, bodies=tuple(_prefixed(each, prefix) for each in group.bodies))


def _prefixed(body: tuple[Literal, ...], prefix: str) -> tuple[Literal, ...]:
    renamed: list[Literal] = []
    for literal in body:
        match literal:
            case Atom(relation=relation):
                renamed.append(replace(literal, relation=f"{prefix}{relation}"))
            case Aggregation():
                renamed.append(_over(literal, prefix))
            case _:
                renamed.append(literal)
    return tuple(renamed)
