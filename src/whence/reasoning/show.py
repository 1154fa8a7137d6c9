"""Sums of queries as text: rules, with a minus in front of those whose derivations are taken away."""

from __future__ import annotations

from collections.abc import Iterator

from whence.lang.program import Const
from whence.reasoning.forms import Sum
from whence.reasoning.queries import Conjunctive, Simple
from whence.semiring.tokens import show_token


def rules_of(each: Sum, relation: str) -> Iterator[str]:
    """A rule for each part; one that counts several times is there as often. Those with a minus come last."""
    for part, number in sorted(each.items(), key=lambda item: item[1] < 0):
        for _ in range(abs(number)):
            yield ("-" if number < 0 else "") + rule_of(part, relation)


def rule_of(part: Conjunctive, relation: str) -> str:
    body = [_atom(name, args) for name, args in part.atoms]
    body += [f"{_term(left)} {op} {_term(right)}" for op, left, right in part.comparisons]
    head = _atom(relation, part.head)
    return f"{head} :- {', '.join(body)}." if body else f"{head}."


def _atom(name: str, args: tuple[Simple, ...]) -> str:
    return f"{name}({', '.join(map(_term, args))})"


def _term(term: Simple) -> str:
    return show_token(("", (term.value,)))[1:-1] if isinstance(term, Const) else term.name
