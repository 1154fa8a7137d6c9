"""Values that only have to exist are looked for once, not for each row of the rest of a body.

    far(x) :- a(x, y), b(y, z), c(z, w).

finds every path from x although one is enough. Nobody looks at w, and z matters to c alone once it is known which z have a w:

    far(x) :- a(x, y), b!for(y).
    b!for(y) :- b(y, z), c!for(z).   (names go on with a digest of the body)
    c!for(z) :- c(z, w).

What is taken out of a body is one atom with all tests of its variables that shares one variable with the rest. So a helper has
no more rows than that has values, and takes no longer than a look at each row of the atom's relation: these are the semi-joins of
Yannakakis' algorithm, from the leaves of a body to its root. With two variables in common, a helper would often be as large as
the relation. Bodies that have the same part share the helper. What is left has to have other variables, or nothing would be
asked for twice; and where sizes are known, the atom's relation must not be the large one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from whence.lang.order import names_met
from whence.lang.program import (
    Anything,
    Atom,
    Comparison,
    Const,
    Literal,
    Negation,
    Program,
    Rule,
    Stratum,
    Term,
    Var,
    counter_in,
)
from whence.plan.helpers import Helpers

# So many times as large as all else in a body may the relation of an atom be that is taken out of it.
SHARE = 4


def project_early(program: Program, sizes: Mapping[str, int]) -> Program:
    """The program with helpers for parts of bodies of which only one column matters. `sizes` tells how many rows relations
    have, as far as that is known."""
    stratum_of = {name: stratum for stratum in program.strata for name in stratum.relations}
    helpers = Helpers("for")
    rules = []
    for rule in program.rules:
        stratum = stratum_of[rule.head.relation]
        recursive = frozenset(stratum.relations if stratum.recursive else ())
        rules.append(_projected(rule, recursive, sizes, helpers) if is_plain(rule, stratum, program) else rule)
    return helpers.added_to(program, rules)


def is_plain(rule: Rule, stratum: Stratum, program: Program) -> bool:
    """Whether only the set of rows matters, and the body is of atoms and tests."""
    is_dominated = any(each.dominated.relation in stratum.relations for each in program.subsumptions)
    if stratum.stages or stratum.monotone or is_dominated or counter_in(rule):
        return False
    relation = program.relations[rule.head.relation]
    is_set = not (relation.equivalence or relation.choices or relation.limit is not None)
    return is_set and all(isinstance(literal, Atom | Negation | Comparison) for literal in rule.body)


def is_simple(atom: Atom) -> bool:
    """Whether it says nothing about values but where they stand."""
    return all(isinstance(arg, Var | Const | Anything) for arg in atom.args)


def _projected(rule: Rule, recursive: frozenset[str], sizes: Mapping[str, int], helpers: Helpers) -> Rule:
    """The rule with one part after the other taken out."""
    while (part := next(_parts(rule, recursive, sizes), None)) is not None:
        shared, literals = part
        atom = helpers.atom((shared,), literals)
        body = [atom if literal is literals[0] else literal for literal in rule.body]
        kept = tuple(literal for literal in body if not any(literal is each for each in literals))
        rule = replace(rule, body=kept)
    return rule


def _parts(rule: Rule, recursive: frozenset[str], sizes: Mapping[str, int]) -> Iterator[tuple[Var, list[Literal]]]:
    """Atoms with the tests of their variables that have variables of their own: the others, and all of them."""
    for atom in rule.body:
        if not isinstance(atom, Atom) or not is_simple(atom):
            continue
        met = set(names_met(atom))
        tests = [each for each in rule.body if each is not atom and _tests(each, met)]
        rest = [each for each in rule.body if each is not atom and not any(each is test for test in tests)]
        outside = {name for literal in (rule.head, *rest) for name in names_met(literal)}
        own = met - outside
        tests = [each for each in tests if not own.isdisjoint(names_met(each))]
        part: list[Literal] = [atom, *tests]
        others = [each for each in rule.body if isinstance(each, Atom) and not any(each is one for one in part)]
        shared = {arg for arg in atom.args if isinstance(arg, Var) and arg.name in outside}
        asks = bool(own) or any(isinstance(arg, Anything) for arg in atom.args)
        is_asked_again = any(set(names_met(each)) - met & outside for each in others)
        is_below = not any(isinstance(each, Atom) and each.relation in recursive for each in part)
        if asks and len(shared) == 1 and is_asked_again and is_below and not _is_large(atom, others, sizes):
            yield shared.pop(), part


def _tests(literal: Literal, met: set[str]) -> bool:
    """Whether a literal only tests variables of an atom, whatever the rows are: functors may have no value."""
    match literal:
        case Atom(args=args) | Negation(atom=Atom(args=args)):
            terms: tuple[Term, ...] = args
        case Comparison(left=left, right=right):
            terms = (left, right)
        case _:
            return False
    names = set(names_met(literal))
    return bool(names) and names <= met and all(isinstance(term, Var | Const | Anything) for term in terms)


def _is_large(atom: Atom, others: list[Atom], sizes: Mapping[str, int]) -> bool:
    known = [sizes[each.relation] for each in others if each.relation in sizes]
    return atom.relation in sizes and len(known) == len(others) and sizes[atom.relation] > SHARE * max(known)
