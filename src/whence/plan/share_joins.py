"""Joins that go round and that several rules have are found once.

    triangle(x, y, z) :- e(x, y), e(y, z), e(z, x).
    red(x) :- e(x, y), e(y, z), e(z, x), r(x, y).

become

    e!shared(x, y, z) :- e(x, y), e(y, z), e(z, x).   (the name goes on with a digest of the body)
    triangle(x, y, z) :- e!shared(x, y, z).
    red(x) :- e!shared(x, y, z), r(x, y).

A helper takes time and memory for each of its rows, and looks at rows that a rule would never have come to. So two things are
asked of what is shared:

- It *goes round*: each variable stands in two atoms that have others, too, and no single variable holds the atoms together.
  Such a join looks at many rows and keeps few, unless nearly everything is related to everything: what is shared is the search,
  and what is written down is what it found. A path keeps all that it looks at, and to write that down takes longer than to
  find it again; a filter of one atom is found as quickly as its helper is read.
- It is the *whole body* of one of the rules. That rule has to find all of it anyway, whatever there is, so that the helper has
  no more rows than the rule has derivations. The others may have a constant, a test or a small relation that leaves hardly
  anything to look at; if all of them do, to find everything could take any number of times as long.

Bodies with more variables come first, and may have smaller ones in them. Of those with as many, the one with fewest literals
comes first: what the others have besides only tests its rows. Of the ways in which a body has a part (a triangle can be read from
each of its corners), the one is taken that needs no other columns, as far as there is one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from whence.lang.order import names_met
from whence.lang.program import Atom, Comparison, Literal, Negation, Program, Rule, Var
from whence.lang.rewrite import rebuild
from whence.lang.tree import NOWHERE, walk
from whence.plan.helpers import with_helpers
from whence.plan.project_early import is_plain, is_simple

# So many literals are tried when a part is looked for in a body: with many alike, a search could take any time. What is not
# found by then is not shared.
TRIES = 2_000


class _Shape(NamedTuple):
    """A literal and what it looks like: itself without names, and the names from left to right."""

    literal: Literal
    blank: Literal
    names: tuple[str, ...]


class _Use(NamedTuple):
    """Where a rule has a part: what its variables are called there, and its literals."""

    rule: int
    names: dict[str, str]
    literals: tuple[Literal, ...]


def share_joins(program: Program) -> Program:
    """The program with helpers for joins that go round and stand in several rules."""
    stratum_of = {name: stratum for stratum in program.strata for name in stratum.relations}
    rules = list(program.rules)
    # The bodies in which parts are looked for, as far as the rule's own recursion does not derive them.
    bodies: dict[int, list[_Shape]] = {}
    recursive: dict[int, frozenset[str]] = {}
    for at, rule in enumerate(rules):
        stratum = stratum_of[rule.head.relation]
        if is_plain(rule, stratum, program):
            recursive[at] = frozenset(stratum.relations if stratum.recursive else ())
            bodies[at] = _shapes(rule, recursive[at])
    made = []
    for at in sorted(bodies, key=lambda at: (-len(_variables(rules[at].body)), len(rules[at].body))):
        part = rules[at].body
        if len(bodies[at]) < len(part) or not _goes_round(part):
            continue
        columns, uses = _uses(bodies[at], rules, bodies)
        if len({use.rule for use in uses}) < 2:
            continue
        helper = _helper(bodies[at], columns)
        for use in uses:
            rules[use.rule] = _using(helper, rules[use.rule], use)
            bodies[use.rule] = _shapes(rules[use.rule], recursive[use.rule])
        recursive[len(rules)] = frozenset()
        bodies[len(rules)] = _shapes(helper, frozenset())
        rules.append(helper)
        made.append(helper)
    return with_helpers(program, rules, made) if made else program


def _goes_round(part: Sequence[Literal]) -> bool:
    """Whether each variable stands in two atoms that have others, and without any of them the atoms still hang together."""
    atoms = [literal for literal in part if isinstance(literal, Atom)]
    if not all(map(is_simple, atoms)):
        return False
    met = [set(names_met(atom)) for atom in atoms]
    joined = [names for names in met if len(names) > 1]
    variables = _variables(atoms)
    return (
        bool(joined)
        and all(sum(name in names for names in joined) > 1 for name in variables)
        and all(_hang_together([names - {name} for names in joined]) for name in variables)
    )


def _variables(part: Sequence[Literal]) -> set[str]:
    return {name for literal in part if isinstance(literal, Atom) for name in names_met(literal)}


def _hang_together(parts: list[set[str]]) -> bool:
    reached, *others = parts
    while near := [names for names in others if not names.isdisjoint(reached)]:
        others = [names for names in others if names.isdisjoint(reached)]
        reached = reached.union(*near)
    return not others


def _uses(
    part: list[_Shape], rules: Sequence[Rule], bodies: Mapping[int, list[_Shape]]
) -> tuple[tuple[Var, ...], list[_Use]]:
    """Where rules have the part, and the variables of it that they look at elsewhere."""
    alike = Counter(shape.blank for shape in part)
    needed: set[str] = set()
    uses = []
    for at, body in bodies.items():
        free = body
        while alike <= Counter(shape.blank for shape in free):
            ways = list(_ways(part, free, {}, iter(range(TRIES))))
            if not ways:
                break
            looked_at = [_looked_at(rules[at], names, literals) for names, literals in ways]
            best = min(range(len(ways)), key=lambda way: len(looked_at[way] - needed))
            names, literals = ways[best]
            needed |= looked_at[best]
            uses.append(_Use(at, names, literals))
            free = [shape for shape in free if not any(shape.literal is each for each in literals)]
    variables = {each.name: each for shape in part for each in walk(shape.literal) if isinstance(each, Var)}
    return tuple(each for name, each in variables.items() if name in needed), uses


def _shapes(rule: Rule, recursive: frozenset[str]) -> list[_Shape]:
    return [_shape(each) for each in rule.body if not (isinstance(each, Atom) and each.relation in recursive)]


def _shape(literal: Literal) -> _Shape:
    names: list[str] = []

    def blank(each: object) -> object:
        match each:
            case Var(name=name, kind=kind):
                names.append(name)
                return Var("", kind)
            case Atom() | Comparison() | Negation():
                return replace(each, span=NOWHERE)
            case _:
                return each

    looks = rebuild(literal, blank)
    return _Shape(literal, looks, tuple(names))


def _ways(
    part: list[_Shape], free: list[_Shape], names: dict[str, str], tries: Iterator[int]
) -> Iterator[tuple[dict[str, str], tuple[Literal, ...]]]:
    """The ways in which literals are those of the part with other names: these, and the literals."""
    if not part:
        yield names, ()
        return
    for shape in free:
        if next(tries, None) is None:
            return
        known = _named(part[0], shape, names)
        if known is not None:
            rest = [each for each in free if each is not shape]
            for whole, literals in _ways(part[1:], rest, known, tries):
                yield whole, (shape.literal, *literals)


def _named(one: _Shape, other: _Shape, names: dict[str, str]) -> dict[str, str] | None:
    """The names with those that make one literal the other; None if nothing does. Different ones stay different."""
    if one.blank != other.blank:
        return None
    known = dict(names)
    for name, new in zip(one.names, other.names, strict=True):
        if known.setdefault(name, new) != new:
            return None
    return known if len(set(known.values())) == len(known) else None


def _looked_at(rule: Rule, names: dict[str, str], literals: tuple[Literal, ...]) -> set[str]:
    """The variables of a part that the rest of a rule looks at."""
    rest = [each for each in rule.body if not any(each is literal for literal in literals)]
    outside = {name for literal in (rule.head, *rest) for name in names_met(literal)}
    return {name for name, new in names.items() if new in outside}


def _helper(part: list[_Shape], columns: tuple[Var, ...]) -> Rule:
    first = next(shape.literal for shape in part if isinstance(shape.literal, Atom))
    text = repr(([shape[1:] for shape in part], columns))
    relation = f"{first.relation}!shared:{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    body = tuple(shape.literal for shape in part)
    return Rule(f"{relation}#1", Atom(relation, columns, first.span), body, first.span)


def _using(helper: Rule, rule: Rule, use: _Use) -> Rule:
    """The rule with the helper in place of what it has of it."""
    columns = [replace(arg, name=use.names[arg.name]) for arg in helper.head.args if isinstance(arg, Var)]
    atom = Atom(helper.head.relation, tuple(columns), use.literals[0].span)
    rest = [each for each in rule.body if not any(each is literal for literal in use.literals)]
    return replace(rule, body=(atom, *rest))
