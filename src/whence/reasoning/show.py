"""Sums of queries as text: rules, with a minus in front of those whose derivations are taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from whence.lang.program import Const, Var
from whence.reasoning.forms import Sum, form_names
from whence.reasoning.queries import Conjunctive, Simple, substituted
from whence.semiring.tokens import show_token


def rules_of(each: Sum, relation: str) -> Iterator[str]:
    """A rule for each part; one that counts several times is there as often. Those with a minus come last."""
    for part, number in sorted(each.items(), key=lambda item: item[1] < 0):
        for _ in range(abs(number)):
            yield ("-" if number < 0 else "") + rule_of(part, relation)


def rule_of(part: Conjunctive, relation: str) -> str:
    part = _readable(part)
    body = [atom_of(name, args) for name, args in part.atoms]
    body += [f"{_term(left)} {op} {_term(right)}" for op, left, right in part.comparisons]
    head = atom_of(relation, part.head)
    return f"{head} :- {', '.join(body)}." if body else f"{head}."


def _readable(part: Conjunctive) -> Conjunctive:
    """The part with atoms in an order in which each goes on where the one before it ended, and names in that order."""
    left, atoms = list(part.atoms), list[tuple[str, tuple[Simple, ...]]]()
    last: tuple[Simple, ...] = part.head[:1]
    while left:
        shared = [len(set(last).intersection(args)) * 2 + (args[:1] == last[-1:]) for _, args in left]
        atoms.append(left.pop(shared.index(max(shared))))
        last = atoms[-1][1]
    ordered = replace(part, atoms=tuple(atoms))
    return substituted(
        ordered, {each: Var(name, each.kind) for each, name in zip(ordered.variables, form_names(), strict=False)}
    )


def atom_of(name: str, args: tuple[Simple, ...]) -> str:
    return f"{name}({', '.join(map(_term, args))})"


def _term(term: Simple) -> str:
    return show_token(("", (term.value,)))[1:-1] if isinstance(term, Const) else term.name
