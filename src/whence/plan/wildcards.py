"""Names for wildcards, so that an assignment tells which rows were used."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from whence.lang.program import Aggregation, Anything, Atom, Cons, Literal, Make, Term, Var


def name_wildcards(body: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """The body with a variable for every wildcard of its positive atoms, those inside aggregates included."""
    numbers = count()

    def term(each: Term) -> Term:
        match each:
            case Anything(kind=kind):
                return Var(f"?{next(numbers)}", kind)
            case Make(args=args):
                return replace(each, args=tuple(term(arg) for arg in args))
            case Cons(items=items, rest=rest):
                return replace(each, items=tuple(term(item) for item in items), rest=term(rest))
            case _:
                return each

    def literal(each: Literal) -> Literal:
        match each:
            case Atom(args=args):
                return replace(each, args=tuple(term(arg) for arg in args))
            case Aggregation(bodies=bodies):
                return replace(each, bodies=tuple(tuple(literal(part) for part in body) for body in bodies))
            case _:
                return each

    return tuple(literal(each) for each in body)
