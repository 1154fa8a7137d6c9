"""Long joins of relations of one recursion are found in two steps, if that leaves out a variable.

    alias(x, y) :- flows(u, x), reaches(u, v), flows(v, y).

goes over all of x, u, v and y that hang together, although nobody looks at v once it is known which u lead to which y:

    alias(x, y) :- flows(u, x), reaches!by(u, y).
    reaches!by(u, y) :- reaches(u, v), flows(v, y).   (the name goes on with a digest of the body)

Both rules go over three variables instead of four, and all ways from u to y are written down as one. If there are few of each,
the helper's rows are derived in vain, which takes a multiple of the time that it takes to find them, but not more: where the last
atom changes, the rule finds all of them, too. An atom from below the recursion may be small, and hold back all the others; so
this is for bodies that have none.

A helper has no more columns than one of its atoms. Of several, the narrowest is made first, then the one whose atoms come last.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from whence.lang.order import names_met
from whence.lang.program import Atom, Program, Rule, Stratum, Var
from whence.plan.helpers import Helpers
from whence.plan.project_early import is_plain, is_simple

# With fewer atoms there is nothing to be left out in between.
FEWEST = 3


def meet_halfway(program: Program) -> Program:
    """The program with helpers for parts of joins inside recursions."""
    helpers, stratum_of = Helpers("by"), {name: each for each in program.strata for name in each.relations}
    rules = [_halved(rule, stratum_of[rule.head.relation], program, helpers) for rule in program.rules]
    return helpers.added_to(program, rules)


def _halved(rule: Rule, stratum: Stratum, program: Program, helpers: Helpers) -> Rule:
    atoms = [each for each in rule.body if isinstance(each, Atom) and is_simple(each)]
    is_inside = len(atoms) == len(rule.body) and all(each.relation in stratum.relations for each in atoms)
    if not is_inside or not is_plain(rule, stratum, program):
        return rule
    while len(atoms) >= FEWEST and (found := _pair(rule, atoms)) is not None:
        one, other, columns = found
        atoms[one] = helpers.atom(columns, (atoms[one], atoms[other]))
        del atoms[other]
    return replace(rule, body=tuple(atoms))


def _pair(rule: Rule, atoms: list[Atom]) -> tuple[int, int, list[Var]] | None:
    """The places of two atoms that share a variable which stands nowhere else, and the variables of theirs that do."""
    met, head = [set(names_met(each)) for each in atoms], set(names_met(rule.head))
    found: list[tuple[int, int, list[Var]]] = []
    for one, other in combinations(range(len(atoms)), 2):
        rest = head.union(*(each for at, each in enumerate(met) if at not in (one, other)))
        variables = {arg.name: arg for at in (one, other) for arg in atoms[at].args if isinstance(arg, Var)}
        columns = [arg for name, arg in variables.items() if name in rest]
        is_narrow = 0 < len(columns) <= max(len(met[one]), len(met[other]))
        if is_narrow and not met[one] & met[other] <= rest:
            found.append((one, other, columns))
    return min(reversed(found), key=lambda each: len(each[2]), default=None)
