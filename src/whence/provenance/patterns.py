"""Values of which only parts are known: what a negation asked for, or what a rule misses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whence.lang.deep import Steps, compound, without_recursion
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
    pending = [pattern]
    while pending:
        match pending.pop():
            case Wildcard():
                return True
            case Variant(args=parts) | (tuple() as parts):
                pending += parts
    return False


def fits(pattern: Pattern, value: Value) -> bool:
    """Whether the value is one of those that the pattern stands for."""
    return is_alike(pattern, value) and completed(pattern, value) == value


def is_alike(pattern: Pattern, value: Value) -> bool:
    """Whether the value has parts wherever the pattern has some."""
    pending: list[tuple[Pattern, Value]] = [(pattern, value)]
    while pending:
        match pending.pop():
            case Variant(branch, parts), Variant(other, others):
                if branch != other:
                    return False
                pending += zip(parts, others, strict=True)
            case (*parts, Wildcard.REST), (*others,):
                if len(others) < len(parts):
                    return False
                pending += zip(parts, others, strict=False)
            case (*parts,), (*others,):
                if len(others) != len(parts):
                    return False
                pending += zip(parts, others, strict=True)
            case ((Variant() | tuple()), _):
                return False
    return True


def completed(pattern: Pattern, example: Value) -> Value:
    """The pattern with parts of a value that is alike for its wildcards.

    >>> completed((1, ANY, REST), (7, 8, 9))
    (1, 8, 9)
    """
    return without_recursion(_completed(pattern, example))


def _completed(pattern: Pattern, example: Value) -> Steps[Value]:
    match pattern, example:
        case Wildcard(), _:
            return example
        case Variant(branch, parts), Variant(_, others):
            return Variant(branch, compound((yield from _all_completed(parts, others))))
        case (*parts, Wildcard.REST), (*others,):
            return compound((*(yield from _all_completed(parts, others)), *others[len(parts) :]))
        case (*parts,), (*others,):
            return compound((yield from _all_completed(parts, others)))
        case _:
            return pattern


def _all_completed(parts: Iterable[Pattern], others: Iterable[Value]) -> Steps[list[Value]]:
    made = []
    for part, other in zip(parts, others, strict=False):
        made.append((yield _completed(part, other)))
    return made
