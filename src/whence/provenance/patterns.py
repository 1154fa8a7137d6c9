"""Values of which only parts are known: what a negation asked for, or what a rule misses."""

from __future__ import annotations

from typing import Any

from whence.lang.program import Cons, Make, Term
from whence.lang.types import Value, Variant
from whence.provenance.graph import ANY, REST, Wildcard
from whence.reference.solve import Environment, Solver, is_known

Pattern = Value | Wildcard


def pattern_of(term: Term, environment: Environment, solver: Solver) -> Pattern:
    """What is known of a term's value: all of it, or with wildcards in it, or nothing."""
    if is_known(term, environment):
        return solver.value(term, environment)
    match term:
        case Make(args=args, branch=branch):
            parts: Any = tuple(pattern_of(arg, environment, solver) for arg in args)
            return parts if branch is None else Variant(branch, parts)
        case Cons(items=items, rest=rest):
            first: Any = tuple(pattern_of(item, environment, solver) for item in items)
            behind = pattern_of(rest, environment, solver)
            return (*first, *(behind if isinstance(behind, tuple) else (REST,)))
        case _:
            return ANY


def has_wildcards(pattern: Pattern) -> bool:
    match pattern:
        case Wildcard():
            return True
        case Variant(args=parts) | (tuple() as parts):
            return any(map(has_wildcards, parts))
        case _:
            return False


def fits(pattern: Pattern, value: Value) -> bool:
    """Whether the value is one of those that the pattern stands for."""
    return is_alike(pattern, value) and completed(pattern, value) == value


def is_alike(pattern: Pattern, value: Value) -> bool:
    """Whether the value has parts wherever the pattern has some."""
    match pattern, value:
        case Variant(branch, parts), Variant(other, others):
            return branch == other and all(map(is_alike, parts, others))
        case (*parts, Wildcard.REST), (*others,):
            return len(others) >= len(parts) and all(map(is_alike, parts, others))
        case (*parts,), (*others,):
            return len(others) == len(parts) and all(map(is_alike, parts, others))
        case ((Variant() | tuple()), _):
            return False
        case _:
            return True


def completed(pattern: Pattern, example: Value) -> Value:
    """The pattern with parts of a value that is alike for its wildcards.

    >>> completed((1, ANY, REST), (7, 8, 9))
    (1, 8, 9)
    """
    match pattern, example:
        case Wildcard(), _:
            return example
        case Variant(branch, parts), Variant(_, others):
            return Variant(branch, tuple(map(completed, parts, others)))
        case (*parts, Wildcard.REST), (*others,):
            return (*map(completed, parts, others), *others[len(parts) :])
        case (*parts,), (*others,):
            return tuple(map(completed, parts, others))
        case _:
            return pattern
