"""Rows of a recursion that few of its rules' partners ask for are kept by themselves, where rules join them.

    points(v, o) :- load(v, w), points(w, p), heap(p, o).

joins two relations of the recursion, so both need an index, which takes longer to keep than the rows. But of `points` it is only
the variables that something is loaded from that matter, and those may be few:

    points(v, o) :- load(v, w), points!near(w, p), heap(p, o).
    points!near(w, p) :- points(w, p), load(v, w).   (the name goes on with a digest of the body)

A helper has no more rows than the relation, and has the index instead of it. So it is worth its while where sizes are known and
the relation that asks is small beside what the recursion is made from. Rules and atoms that ask for the same share a helper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from whence.lang.order import names_met
from whence.lang.program import Atom, Literal, Program, Rule, Stratum, Var
from whence.plan.helpers import Helpers
from whence.plan.project_early import is_plain, is_simple

# A relation is small if one that the recursion reads has so many times as many rows, and more than so many.
SHARE, FEW = 8, 1_000


def narrow(program: Program, sizes: Mapping[str, int]) -> Program:
    """The program with helpers for rows of recursions. `sizes` tells how many rows relations have, as far as that is known."""
    helpers, stratum_of = Helpers("near"), {name: each for each in program.strata for name in each.relations}
    recursive = [each for each in program.strata if each.recursive]
    most = {each.relations: max(_read(program, each, sizes), default=0) for each in recursive}
    rules = []
    for rule in program.rules:
        stratum = stratum_of[rule.head.relation]
        if most.get(stratum.relations, 0) > FEW and is_plain(rule, stratum, program):
            small = {name for name, size in sizes.items() if SHARE * size <= most[stratum.relations]}.difference(
                stratum.relations
            )
            rules.append(replace(rule, body=tuple(_narrowed(rule, stratum, small, helpers))))
        else:
            rules.append(rule)
    return helpers.added_to(program, rules)


def _read(program: Program, stratum: Stratum, sizes: Mapping[str, int]) -> Iterator[int]:
    """The sizes of what a recursion is made from."""
    for rule in program.rules:
        if rule.head.relation in stratum.relations:
            yield from (sizes.get(each.relation, 0) for each in rule.body if isinstance(each, Atom))


def _narrowed(rule: Rule, stratum: Stratum, small: set[str], helpers: Helpers) -> Iterator[Literal]:
    atoms = [each for each in rule.body if isinstance(each, Atom)]
    is_joined = sum(each.relation in stratum.relations for each in atoms) > 1
    for literal in rule.body:
        asking = None
        if is_joined and isinstance(literal, Atom) and literal.relation in stratum.relations:
            asking = _asking(literal, [each for each in atoms if each.relation in small])
        if isinstance(literal, Atom) and asking is not None:
            columns = dict.fromkeys(arg for arg in literal.args if isinstance(arg, Var))
            yield helpers.atom(tuple(columns), (literal, asking))
        else:
            yield literal


def _asking(atom: Atom, others: Sequence[Atom]) -> Atom | None:
    """One that has a variable of an atom."""
    if not is_simple(atom):
        return None
    names = set(names_met(atom))
    return next((each for each in others if is_simple(each) and not names.isdisjoint(names_met(each))), None)
