"""Rules and joins that others make superfluous, left out of a plan.

What may go depends on what is asked of rows: for sets, whatever changes no row; where derivations are told apart, less or
nothing. Rules are compared as they are written, all relations given: what is left derives each row from facts that the dropped
rule used, too, so ranks stay what they were. Explanations go by the program, not by the plan: they miss nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace

from whence.lang.program import Atom, Program, Rule, Var
from whence.reasoning.decide import adds_nothing
from whence.reasoning.queries import Conjunctive, NotConjunctive, Query, Unfolding
from whence.reasoning.redundant import redundant_rules
from whence.reasoning.show import atom_of


def simplify(program: Program, semiring: str = "boolean") -> tuple[Program, tuple[str, ...]]:
    """The program without rules and atoms that make no difference in the semiring, and what was left out."""
    # One that derives nothing at all may be the only one that its relation has: it stays.
    superfluous = [each for each in redundant_rules(program, semiring, as_written=True) if each.mappings]
    gone = {each.rule.name for each in superfluous}
    done = [
        f"rule {each.rule.name} is left out: {' and '.join(sorted({one.source for one in each.mappings}))} derives as much"
        for each in superfluous
    ]
    rules = []
    for rule in program.rules:
        if rule.name not in gone:
            smaller, left_out = _without_atoms(rule, program, semiring)
            rules.append(smaller)
            done += [f"rule {rule.name} is planned without {each}" for each in left_out]
    return replace(program, rules=tuple(rules)), tuple(done)


def _without_atoms(rule: Rule, program: Program, semiring: str) -> tuple[Rule, list[str]]:
    left_out: list[str] = []
    while (part := _part_of(rule, program)) is not None:
        at = next((at for at in range(len(part.atoms)) if _can_go(part, at, rule, program, semiring)), None)
        if at is None:
            break
        atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
        left_out.append(re.sub(r"\b_\d+", "_", atom_of(*part.atoms[at])))
        rule = replace(rule, body=tuple(literal for literal in rule.body if literal is not atoms[at]))
    return rule, left_out


def _part_of(rule: Rule, program: Program) -> Conjunctive | None:
    try:
        parts = Unfolding(program, frozenset(program.relations)).parts_of_rule(rule)
    except NotConjunctive:
        return None
    return parts[0] if parts else None


def _can_go(part: Conjunctive, at: int, rule: Rule, program: Program, semiring: str) -> bool:
    """Whether the rule derives the same, by as much as the semiring tells, without one of its atoms."""
    smaller = replace(part, atoms=part.atoms[:at] + part.atoms[at + 1 :])
    if part.atoms[at][0] not in (name for name, _ in smaller.atoms):
        return False
    bound = {term for _, args in smaller.atoms for term in args}
    needed = {*part.head, *(term for _, *sides in part.comparisons for term in sides)}
    if not all(term in bound for term in needed if isinstance(term, Var)):
        return False
    whole, less = (Query(program, rule.head.relation, (each,)) for each in (part, smaller))
    return adds_nothing(less, whole, semiring) is not None and adds_nothing(whole, less, semiring) is not None
