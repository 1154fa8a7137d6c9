"""An order in which a body can be evaluated from left to right.

A body is safe when such an order exists: every literal then meets its inputs already bound. Tests come as early as they can;
among atoms, the one with most arguments bound comes first, unless the caller picks another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import NamedTuple

from whence.lang.program import (
    Aggregation,
    Anything,
    Apply,
    Atom,
    Comparison,
    Cons,
    Const,
    Generator,
    Literal,
    Make,
    Negation,
    Term,
    Var,
)

_NOT_READY = -1
_TEST = 1_000_000


class Candidate(NamedTuple):
    """An atom that can come next, and which of its columns have a value by then."""

    atom: Atom
    bound: tuple[int, ...]


def order_body(
    literals: Sequence[Literal], bound: Set[str], pick: Callable[[Sequence[Candidate]], int] | None = None
) -> tuple[list[Literal], set[str]]:
    """The literals that can be placed, in order, and the variables bound after them. `pick` chooses among atoms."""
    known = set(bound)
    ordered: list[Literal] = []
    users: dict[str, list[int]] = {}
    for at, literal in enumerate(literals):
        for name in names_met(literal):
            users.setdefault(name, []).append(at)
    waiting = {at: _score(literal, known) for at, literal in enumerate(literals)}
    candidates: dict[int, Candidate] = {}  # as they are until one of their variables is bound
    while waiting:
        best = max(waiting, key=waiting.__getitem__)  # of several, the first
        if waiting[best] == _NOT_READY:
            break
        if pick is not None and waiting[best] != _TEST:
            ready = [at for at, score in waiting.items() if score != _NOT_READY]
            for at in ready:
                if at not in candidates:
                    candidates[at] = _candidate(literals[at], known)
            best = ready[pick([candidates[at] for at in ready])]
        del waiting[best]
        ordered.append(literals[best])
        new = {name for name in binds(literals[best]) if name not in known}
        known |= new
        for at in {at for name in new for at in users[name]}:
            if at in waiting:
                waiting[at] = _score(literals[at], known)
                candidates.pop(at, None)
    return ordered, known


def _score(literal: Literal, known: Set[str]) -> int:
    if not is_ready(literal, known):
        return _NOT_READY
    return sum(is_bound(arg, known) for arg in literal.args) if isinstance(literal, Atom) else _TEST


def _candidate(literal: Literal, known: Set[str]) -> Candidate:
    assert isinstance(literal, Atom)
    return Candidate(literal, tuple(at for at, arg in enumerate(literal.args) if is_bound(arg, known)))


def names_met(literal: Literal) -> Iterable[str]:
    """The variables that a literal meets at its place in the body."""
    match literal:
        case Atom(args=args):
            return (name for arg in args for name in names_in(arg))
        case Negation(atom=atom):
            return names_met(atom)
        case Comparison(left=left, right=right):
            return (*names_in(left), *names_in(right))
        case Generator(target=target, args=args):
            return (name for arg in (target, *args) for name in names_in(arg))
        case Aggregation(target=target, outer=outer):
            return (*names_in(target), *outer)


def is_ready(literal: Literal, known: Set[str]) -> bool:
    """Whether the literal can be evaluated with these variables bound."""
    match literal:
        case Atom(args=args):
            if all(isinstance(arg, Var | Anything | Const) for arg in args):
                return True
            inside = known | {name for arg in args for name in pattern_names(arg)}
            return all(can_match(arg, inside) for arg in args)
        case Negation(atom=atom):
            return all(
                is_bound(arg, known) or isinstance(arg, Anything) or _only_wildcards(arg, known) for arg in atom.args
            )
        case Comparison(op="=", left=left, right=right):
            return (is_bound(left, known) and can_match(right, known)) or (
                is_bound(right, known) and can_match(left, known)
            )
        case Comparison(left=left, right=right):
            return is_bound(left, known) and is_bound(right, known)
        case Generator(target=target, args=args):
            return all(is_bound(arg, known) for arg in args) and can_match(target, known)
        case Aggregation(target=target, outer=outer):
            return known >= set(outer) and can_match(target, known)


def binds(literal: Literal) -> Iterable[str]:
    """The variables that are bound once the literal holds."""
    match literal:
        case Atom(args=args):
            return (name for arg in args for name in names_in(arg))
        case Comparison(op="=", left=left, right=right):
            return (*names_in(left), *names_in(right))
        case Generator(target=target) | Aggregation(target=target):
            return names_in(target)
        case _:
            return ()


def pattern_names(term: Term) -> list[str]:
    """The variables that matching binds: those not inside a functor."""
    match term:
        case Var(name=name):
            return [name]
        case Make(args=args):
            return [name for arg in args for name in pattern_names(arg)]
        case Cons(items=items, rest=rest):
            return [name for part in (*items, rest) for name in pattern_names(part)]
        case _:
            return []


def names_in(term: Term) -> list[str]:
    match term:
        case Var(name=name):
            return [name]
        case Apply(args=args) | Make(args=args):
            return [name for arg in args for name in names_in(arg)]
        case Cons(items=items, rest=rest):
            return [name for part in (*items, rest) for name in names_in(part)]
        case _:
            return []


def is_bound(term: Term, known: Set[str]) -> bool:
    """Whether the term has a value: no wildcard in it, and every variable known."""
    match term:
        case Var(name=name):
            return name in known
        case Const():
            return True
        case Anything():
            return False
        case Apply(args=args) | Make(args=args):
            return all(is_bound(arg, known) for arg in args)
        case Cons(items=items, rest=rest):
            return all(is_bound(part, known) for part in (*items, rest))


def can_match(term: Term, known: Set[str]) -> bool:
    """Whether a value can be matched against the term: what is inside a functor must be bound."""
    match term:
        case Apply():
            return is_bound(term, known)
        case Make(args=args):
            return all(can_match(arg, known) for arg in args)
        case Cons(items=items, rest=rest):
            return all(can_match(part, known) for part in (*items, rest))
        case _:
            return True


def _only_wildcards(term: Term, known: Set[str]) -> bool:
    """A structure whose unbound parts are wildcards: it can be matched without binding anything."""
    return can_match(term, known) and known >= set(names_in(term))
