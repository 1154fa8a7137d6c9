"""Parts of a body that have nothing to do with the rest of it are evaluated once, not for each row of the rest.

    a(x) :- b(x), c(y), d(y).

becomes

    a(x) :- b(x), c!some().
    c!some() :- c(y), d(y).   (the name goes on with a digest of the body)

so that a row of `b` has one derivation, not one for each y. The helper relation holds the empty row or nothing. As ⊗ distributes
over ⊕, annotations stay what they are in every semiring. Parts that the head's own recursion derives stay where they are: the
helper is complete before the rule asks for it, so that ranks and supports stay what they are, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from whence.lang.order import names_in, names_met
from whence.lang.program import (
    Aggregation,
    Atom,
    Comparison,
    Generator,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Stratum,
    Var,
)
from whence.lang.rewrite import rebuild
from whence.lang.tree import NOWHERE, walk


def set_apart(program: Program, left_alone: Mapping[str, object]) -> Program:
    """The program with a relation of its own for each part of a body that shares no variable with the head and the rest of the
    body. Rules of relations that are `left_alone` stay as they are."""
    stratum_of = {name: frozenset(stratum.relations) for stratum in program.strata for name in stratum.relations}
    made: dict[tuple[Literal, ...], Rule] = {}
    used_by: dict[str, list[str]] = {}
    rules = []
    for rule in program.rules:
        name = rule.head.relation
        parts = [] if name in left_alone else list(_apart(rule, stratum_of[name]))
        body = list(rule.body)
        for part in parts:
            helper = _helper(part, made)
            if helper.head.relation not in used_by.get(name, ()):
                used_by.setdefault(name, []).append(helper.head.relation)
            first = next(at for at, literal in enumerate(body) if literal is part[0])
            body[first] = replace(helper.head, span=rule.span)
            body = [literal for literal in body if not any(literal is each for each in part)]
        rules.append(replace(rule, body=tuple(body)) if parts else rule)
    if not made:
        return program
    helpers = {rule.head.relation: Relation(rule.head.relation, (), rule.span) for rule in made.values()}
    return replace(
        program,
        relations={**program.relations, **helpers},
        rules=(*rules, *made.values()),
        strata=tuple(_placed(program.strata, used_by)),
    )


def _apart(rule: Rule, recursive: frozenset[str]) -> Iterator[list[Literal]]:
    """The parts of the body that can be evaluated by themselves."""
    parts = _connected(rule.body)
    if len(parts) < 2:
        return
    told = {name for arg in rule.head.args for name in names_in(arg)}
    for names, part in parts:
        finds = any(isinstance(literal, Atom | Generator) for literal in part)
        is_below = not any(isinstance(each, Atom) and each.relation in recursive for each in walk(tuple(part)))
        if names and told.isdisjoint(names) and finds and is_below and not _is_group(part):
            yield part


def _is_group(part: list[Literal]) -> bool:
    return any(isinstance(literal, Aggregation) for literal in part)


def _connected(body: tuple[Literal, ...]) -> list[tuple[set[str], list[Literal]]]:
    """The body in parts that share no variables, each with its variables."""
    parts: list[tuple[set[str], list[Literal]]] = []
    for literal in body:
        names = set(names_met(literal))
        touched = [part for part in parts if not part[0].isdisjoint(names)]
        parts = [part for part in parts if part[0].isdisjoint(names)]
        joined = [each for _, literals in touched for each in literals] + [literal]
        parts.append((names.union(*(known for known, _ in touched)), joined))
    places = {id(literal): at for at, literal in enumerate(body)}
    return [(names, sorted(literals, key=lambda each: places[id(each)])) for names, literals in parts]


def _helper(part: list[Literal], made: dict[tuple[Literal, ...], Rule]) -> Rule:
    """The rule that derives the empty row if the part holds: one for all parts that are the same but for names."""
    names: dict[str, str] = {}

    def plain(each: object) -> object:
        match each:
            case Var(name=name, kind=kind):
                return Var(names.setdefault(name, f"v{len(names)}"), kind)
            case Atom() | Comparison() | Generator() | Negation():
                return replace(each, span=NOWHERE)
            case _:
                return each

    alike = rebuild(tuple(part), plain)
    if alike not in made:
        first = next(literal for literal in part if isinstance(literal, Atom | Generator))
        # The name tells parts apart, also from those of the program as it will be when rules have changed.
        digest = hashlib.sha256(repr(alike).encode()).hexdigest()[:6]
        relation = f"{first.relation if isinstance(first, Atom) else 'range'}!some:{digest}"
        span = first.span
        made[alike] = Rule(f"{relation}#1", Atom(relation, (), span), tuple(part), span)
    return made[alike]


def _placed(strata: tuple[Stratum, ...], used_by: Mapping[str, list[str]]) -> Iterator[Stratum]:
    """Each helper before the first stratum that asks for it, when all that it reads is complete."""
    placed: set[str] = set()
    for stratum in strata:
        for name in stratum.relations:
            for helper in used_by.get(name, ()):
                if helper not in placed:
                    placed.add(helper)
                    yield Stratum((helper,))
        yield stratum
