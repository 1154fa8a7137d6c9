"""Base facts: those that the program states itself, and facts as people write them in questions."""

from __future__ import annotations

from dataclasses import replace

from whence.io.fact_text import check_relation, read_fact
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.provenance.graph import Fact
from whence.reference.solve import Solver

__all__ = ["check_relation", "fact_of", "free_facts", "parse_fact"]


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
    """A fact as in `reach("a", "f")`. Raises ValueError, saying what is wrong with it."""
    return Fact(*read_fact(text, program))


def fact_of(program: Program, given: str | tuple[str, Tuple], row: Tuple | None = None) -> Fact:
    """A fact as text, as a pair of relation and tuple, or as both apart.

    >>> from whence import load
    >>> program = load(".decl link(x:symbol, y:number) .input link .output link")
    >>> fact_of(program, 'link("a", 2)') == fact_of(program, ("link", ("a", 2))) == fact_of(program, "link", ("a", 2))
    True
    """
    if row is not None:
        assert isinstance(given, str)
        return Fact(given, row)
    return parse_fact(given, program) if isinstance(given, str) else Fact(*given)
