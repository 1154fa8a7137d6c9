"""Whether a reformulation that is right for signed numbers is right for bags and for sets."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from whence.lang.program import Var
from whence.lang.types import Tuple
from whence.reasoning.answers import Verdict
from whence.reasoning.decide import contained
from whence.reasoning.forms import Sum
from whence.reasoning.queries import Conjunctive, Query


@dataclass(frozen=True)
class Transfer:
    holds: bool
    reason: str


def to_bags(query: Query) -> Transfer:
    """For bags, where a difference ends at none, evaluated with signed numbers on the way.

    Without differences a query means the same for bags and for signed numbers. With them, it does if what is taken away is
    always there.
    """
    if not query.minus:
        return Transfer(True, "the query takes nothing away")
    plus, minus = _sides(query)
    answer = contained(minus, plus, "natural")
    if answer.verdict is Verdict.YES:
        return Transfer(True, "what the query takes away is there in every database")
    return Transfer(False, f"bags take away what is there and no more, and it may not be: {answer.reason}")


def to_sets(query: Query, reformulation: Sum, facts: Mapping[str, Set[Tuple]] | None = None) -> Transfer:
    """For sets, on views without duplicates.

    `facts` are there to see that what is taken away is there, if base relations are subtracted from each other.
    """
    if not query.minus:
        if all(number > 0 for number in reformulation.values()):
            return Transfer(True, "nothing is taken away on either side, so it holds in every semiring")
        return Transfer(False, "it takes derivations away, so views have to be kept with their numbers of derivations")
    if len(query.parts) != 2 or not all(_is_base(part) for part in query.parts):
        return Transfer(
            False, "sets do not count what is taken away twice; only a difference of two base relations is safe"
        )
    (plus,), (minus,) = (each.parts for each in _sides(query))
    one, other = plus.atoms[0][0], minus.atoms[0][0]
    if facts is None:
        return Transfer(False, f"it is right where {other} is contained in {one}, which takes facts to see")
    if not facts[other] <= facts[one]:
        return Transfer(False, f"{other} is not contained in {one}: it has {min(facts[other] - facts[one])}")
    return Transfer(True, f"{other} is contained in {one} here")


def _sides(query: Query) -> tuple[Query, Query]:
    sides = [[replace(part, sign=1) for part in query.parts if part.sign == sign] for sign in (1, -1)]
    plus, minus = (replace(query, parts=tuple(each), minus=frozenset()) for each in sides)
    return plus, minus


def _is_base(part: Conjunctive) -> bool:
    """Whether it is a base relation as it is."""
    return (
        len(part.atoms) == 1
        and part.atoms[0][1] == part.head
        and len(set(part.head)) == len(part.head)
        and all(isinstance(each, Var) for each in part.head)
        and not part.comparisons
    )
