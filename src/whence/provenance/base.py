"""Base facts: those that the program states itself, and facts as people write them in questions."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches

from whence.io import parse_fields
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.provenance.graph import Fact
from whence.reference.solve import Solver

# Strings as in SQL, and wildcards, where a value begins; strings as in Datalog are passed over.
_ODD = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?<=[(,\[\s])\'(?P<single>(?:[^\'\\]|\\.)*)\'(?=\s*[,)\]])|(?<=[(,\[\s])(?P<any>_)(?=\s*[,)\]])'
)
_FACT = re.compile(r"\s*([\w.?]+)\s*(\(.*\))?\s*\.?\s*", re.DOTALL)


def free_facts(program: Program) -> tuple[Program, dict[str, list[Tuple]]]:
    """The program without the facts it states for base relations, and those facts.

    A session that is given them from outside can be asked what if they went.

    >>> from whence import load
    >>> program, facts = free_facts(load("link(1, 2). reach(x, y) :- link(x, y). .output reach"))
    >>> facts, [rule.name for rule in program.rules]
    ({'link': [(1, 2)]}, ['reach#1'])
    """
    base = set(program.base_relations)
    facts: dict[str, list[Tuple]] = {}
    solver = Solver(program, {})
    kept = []
    for rule in program.rules:
        if rule.is_fact and rule.head.relation in base:
            facts.setdefault(rule.head.relation, []).extend(solver.heads(rule))
        else:
            kept.append(rule)
    return replace(program, rules=tuple(kept)), facts


def parse_fact(text: str, program: Program) -> Fact:
    """A fact as in `reach("a", "f")`; single quotes do as well. Raises ValueError, saying what is wrong with it.

    >>> from whence import load
    >>> parse_fact('link("a", 2)', load(".decl link(x:symbol, y:number) .input link .output link"))
    Fact(relation='link', tuple=('a', 2))
    """
    match = _FACT.fullmatch(text)
    if match is None:
        raise ValueError(f'{text} is not a fact: write it as in the program, such as link("a", 1)')
    name, values = match[1], match[2] or "()"
    check_relation(name, program)
    relation = program.relations[name]
    try:
        return Fact(name, parse_fields(_ODD.sub(_plain, values), relation.fields, program.types))
    except ValueError as error:
        columns = ", ".join(f"{each.name}:{each.type}" for each in relation.fields)
        raise ValueError(f"{text} does not fit {name}({columns}): {error}") from None


def check_relation(name: str, program: Program) -> None:
    """Raises ValueError if there is no such relation."""
    if name not in program.relations:
        near = get_close_matches(name, program.relations, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(program.relations)}"
        raise ValueError(f"there is no relation {name}{hint}")


def _plain(part: re.Match[str]) -> str:
    if part["any"] is not None:
        raise ValueError("_ stands for any value, and this question is about one fact")
    if part["single"] is None:
        return part[0]
    escaped = part["single"].replace('"', '\\"')
    return f'"{escaped}"'
