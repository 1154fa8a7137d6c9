"""Placed programs as text: what every node runs, and what is shipped where."""

from __future__ import annotations

from collections.abc import Iterator

from whence.lang.diagnostics import ProgramError
from whence.lang.program import Aggregation, Atom, Const, Negation, Program, Rule, Term, Var
from whence.lang.tree import walk
from whence.plan.localize import HERE, Placed, is_placed, localize


def describe_places(program: Program) -> list[str]:
    """For each rule, where it is evaluated, what it reads there, and where its heads go. Nothing for programs without places."""
    if not is_placed(program):
        return []
    try:
        placed = localize(program)
    except ProgramError as error:
        return [f"places: none, because {error.diagnostics[0].text}"]
    lines = ["places: every node runs these rules on the tuples it holds"]
    for rule in placed.program.rules:
        if not rule.is_fact:
            lines += _rule(rule, placed)
    everywhere = [name for name, relation in placed.program.relations.items() if relation.everywhere]
    return [*lines, f"  held by every node: {', '.join(everywhere)}"] if everywhere else lines


def _rule(rule: Rule, placed: Placed) -> Iterator[str]:
    site = placed.sites[rule.name]
    made_for = placed.helpers.get(rule.head.relation)
    for_whom = f", for rule {made_for}" if made_for is not None else ""
    yield f"  rule {rule.name}{for_whom}: at {'every node' if site is None else _say(site)}"
    reads = dict.fromkeys(text for literal in rule.body for text in _reads(literal))
    yield f"    reads {', '.join(reads) or 'nothing'}"
    head = placed.program.relations[rule.head.relation]
    if not placed.is_shipped(rule):
        yield f"    -> {rule.head.relation}, which stays there"
    elif head.everywhere:
        yield f"    -> {rule.head.relation}, shipped to every node"
    else:
        assert head.location is not None
        yield f"    -> {rule.head.relation}, shipped to {_say(rule.head.args[head.location])}"


def _reads(literal: object) -> Iterator[str]:
    match literal:
        case Atom(relation=relation) if relation != HERE:
            yield relation
        case Negation(atom=atom):
            yield f"!{atom.relation}"
        case Aggregation(op=op, bodies=bodies):
            yield from (f"{op} of {part.relation}" for part in walk(bodies) if isinstance(part, Atom))


def _say(place: Term) -> str:
    match place:
        case Var(name=name):
            return name.partition("#")[0]
        case Const(value=value):
            return str(value)
        case _:
            return "a computed place"
