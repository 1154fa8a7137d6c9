"""Rules that others make superfluous."""

from __future__ import annotations

from dataclasses import dataclass

from whence.lang.program import Program, Rule
from whence.reasoning.answers import Mapped
from whence.reasoning.decide import adds_nothing
from whence.reasoning.queries import Conjunctive, NotConjunctive, Query, Unfolding, derived_relations


@dataclass(frozen=True)
class Superfluous:
    """A rule without which its relation stays the same. Without mappings, it derives nothing at all."""

    rule: Rule
    mappings: tuple[Mapped, ...]


def redundant_rules(program: Program, semiring: str, *, as_written: bool = False) -> list[Superfluous]:
    """Rules that can be dropped, all of them together. Raises NotInThisSemiring.

    Rules are compared as operators: recursive relations count as given, or all of them if rules are to be taken `as_written`, so
    what is equivalent derives the same in any case, though not the other way round. Rules that cannot be compared are left
    alone, and nothing rests on them.
    """
    given = (
        frozenset(program.relations)
        if as_written
        else frozenset(name for stratum in program.strata if stratum.recursive for name in stratum.relations)
    )
    superfluous: list[Superfluous] = []
    for relation in derived_relations(program):
        of = program.relations[relation]
        if of.equivalence or of.choices or of.limit is not None:
            continue  # which tuples are there depends on the order in which rules fire
        kept: dict[str, tuple[Conjunctive, ...]] = {}
        for rule in program.rules_for(relation):
            try:
                kept[rule.name] = Unfolding(program, given).parts_of_rule(rule)
            except NotConjunctive:
                continue
        for rule in reversed([each for each in program.rules_for(relation) if each.name in kept]):
            parts = kept.pop(rule.name)
            others = tuple(part for each in kept.values() for part in each)
            mappings = adds_nothing(Query(program, relation, parts), Query(program, relation, others), semiring)
            if mappings is None:
                kept[rule.name] = parts
            else:
                superfluous.append(Superfluous(rule, mappings))
    return sorted(superfluous, key=lambda each: each.rule.span.start)
