"""Columns that nobody looks at are not derived.

    path(x, y) :- edge(x, y).
    path(x, z) :- edge(x, y), path(y, z).
    leads(x) :- path(x, _).

derives where every path ends, which nobody asks. Without the column, rows that differ in it alone are one:

    path!only0(x) :- edge(x, y).
    path!only0(x) :- edge(x, y), path!only0(y).
    leads(x) :- path!only0(x).

A column goes if every atom has a wildcard there, or a variable that is met nowhere else but in columns of heads that go as well.
Relations that anybody looks at keep theirs, and so do those of which more than the set of rows matters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from whence.lang.order import names_in
from whence.lang.program import Aggregation, Anything, Atom, Const, Negation, Program, Rule, Term, Var, counter_in
from whence.lang.rewrite import rebuild
from whence.lang.tree import walk
from whence.plan.helpers import rewritten

Column = tuple[str, int]


def drop_columns(program: Program, wanted: frozenset[str]) -> Program:
    """The program without columns of relations that are not wanted which make no difference for those that are."""
    going = {(name, at) for name in _candidates(program, wanted) for at in range(program.relations[name].arity)}
    while going:
        needed = {column for rule in program.rules for column in _needed(rule, going)}
        if not needed:
            return _without(program, going)
        going -= needed
    return program


def _candidates(program: Program, wanted: frozenset[str]) -> Iterator[str]:
    kept = wanted.union(program.base_relations)
    kept |= {part.relation for each in program.subsumptions for part in walk(each.body) if isinstance(part, Atom)}
    for rule in program.rules:
        groups = [literal for literal in rule.body if isinstance(literal, Aggregation)]
        kept |= {part.relation for part in walk(tuple(groups)) if isinstance(part, Atom)}
        if counter_in(rule):
            kept |= {rule.head.relation}
    for stratum in program.strata:
        for name in stratum.relations:
            relation = program.relations[name]
            is_plain = not (relation.equivalence or relation.choices or relation.limit is not None)
            if name not in kept and is_plain and not stratum.stages and not stratum.monotone:
                yield name


def _needed(rule: Rule, going: set[Column]) -> Iterator[Column]:
    """The columns that a rule needs although they were to go."""
    met: Counter[str] = Counter()
    for literal in rule.body:
        met.update(part.name for part in walk(literal) if isinstance(part, Var))
        if isinstance(literal, Aggregation):
            met.update(literal.outer)
    head = rule.head
    for at, arg in enumerate(head.args):
        if (head.relation, at) not in going:
            met.update(names_in(arg))
        elif not isinstance(arg, Var | Const):
            yield head.relation, at  # without a value, it would derive nothing
    for literal in rule.body:
        atom = literal.atom if isinstance(literal, Negation) else literal
        if isinstance(atom, Atom):
            for at, arg in enumerate(atom.args):
                if (atom.relation, at) in going and not _is_free(arg, met):
                    yield atom.relation, at


def _is_free(arg: Term, met: Counter[str]) -> bool:
    return isinstance(arg, Anything) or (isinstance(arg, Var) and met[arg.name] == 1)


def _without(program: Program, going: set[Column]) -> Program:
    kept = {
        name: tuple(at for at in range(program.relations[name].arity) if (name, at) not in going)
        for name in {name for name, _ in going}
    }
    names = {name: f"{name}!only{','.join(map(str, columns))}" for name, columns in kept.items()}

    def narrowed(part: object) -> object:
        if isinstance(part, Atom) and part.relation in kept:
            args = tuple(part.args[at] for at in kept[part.relation])
            return Atom(names[part.relation], args, part.span)
        return part

    rules = [rebuild(rule, narrowed) for rule in program.rules]
    # What would derive a row from itself derives nothing.
    rules = [rule for rule in rules if not any(_says_the_same(rule.head, each) for each in rule.body)]
    relations = {}
    for name, relation in program.relations.items():
        if name in kept:
            fields = tuple(relation.fields[at] for at in kept[name])
            relations[names[name]] = replace(relation, name=names[name], fields=fields, location=None)
        else:
            relations[name] = relation
    return rewritten(program, relations, rules)


def _says_the_same(head: Atom, literal: object) -> bool:
    return isinstance(literal, Atom) and (literal.relation, literal.args) == (head.relation, head.args)
