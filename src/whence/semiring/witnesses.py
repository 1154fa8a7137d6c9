"""Annotations made of sets of base tuples: which tuples, which combinations of them, which smallest combinations.

Tuples are told apart by tokens; anything hashable will do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Generic

from whence.semiring.algebra import Difference, Properties, Semiring, V
from whence.semiring.tokens import show_token

Tokens = frozenset[Hashable]
Witnesses = frozenset[Tokens]


class Nothing(Enum):
    """The lineage of what is not there, as opposed to that of what needs no base tuple."""

    NOTHING = "nothing"


NOTHING = Nothing.NOTHING


class Lineage(Semiring[Tokens | Nothing]):
    """Which base tuples contribute at all?"""

    name = "lineage"
    zero: Tokens | Nothing = NOTHING
    one: Tokens | Nothing = frozenset()
    properties = Properties(idempotent=True, positive=True, continuous=True, stable=True, difference=Difference.MONUS)

    def plus(self, left: Tokens | Nothing, right: Tokens | Nothing, /) -> Tokens | Nothing:
        if left is NOTHING or right is NOTHING:
            return right if left is NOTHING else left
        return left | right

    def times(self, left: Tokens | Nothing, right: Tokens | Nothing, /) -> Tokens | Nothing:
        return NOTHING if left is NOTHING or right is NOTHING else left | right

    def minus(self, left: Tokens | Nothing, right: Tokens | Nothing, /) -> Tokens | Nothing:
        if left is NOTHING or right is NOTHING:
            return left
        return left - right or NOTHING

    def contains(self, value: object, /) -> bool:
        return isinstance(value, frozenset | Nothing)

    def variable(self, token: Hashable, /) -> Tokens:
        return frozenset((token,))

    def format(self, value: Tokens | Nothing, /) -> str:
        return "nothing" if value is NOTHING else show_set(value)


class Why(Semiring[Witnesses]):
    """Which sets of base tuples, used together, give the tuple?"""

    name = "why"
    zero: Witnesses = frozenset()
    one: Witnesses = frozenset((frozenset(),))
    properties = Properties(idempotent=True, positive=True, continuous=True, stable=True, difference=Difference.MONUS)

    def plus(self, left: Witnesses, right: Witnesses, /) -> Witnesses:
        return left | right

    def times(self, left: Witnesses, right: Witnesses, /) -> Witnesses:
        return frozenset(one | other for one in left for other in right)

    def minus(self, left: Witnesses, right: Witnesses, /) -> Witnesses:
        return left - right

    def contains(self, value: object, /) -> bool:
        return isinstance(value, frozenset) and all(isinstance(each, frozenset) for each in value)

    def variable(self, token: Hashable, /) -> Witnesses:
        return frozenset((frozenset((token,)),))

    def format(self, value: Witnesses, /) -> str:
        return "{" + ", ".join(sorted((show_set(each) for each in value), key=lambda text: (len(text), text))) + "}"


class PosBool(Why):
    """Which smallest sets of base tuples are enough? Positive Boolean expressions, as their minimal witnesses."""

    name = "posbool"
    properties = Properties(
        idempotent=True,
        absorptive=True,
        lattice=True,
        positive=True,
        continuous=True,
        stable=True,
        difference=Difference.MONUS,
    )

    def plus(self, left: Witnesses, right: Witnesses, /) -> Witnesses:
        return minimal(left | right)

    def times(self, left: Witnesses, right: Witnesses, /) -> Witnesses:
        return minimal(frozenset(one | other for one in left for other in right))

    def minus(self, left: Witnesses, right: Witnesses, /) -> Witnesses:
        # Each minimal witness stays or goes as a whole: it is not a union of smaller alternatives.
        return frozenset(each for each in left if not any(other <= each for other in right))

    def contains(self, value: object, /) -> bool:
        return super().contains(value) and minimal(value) == value  # type: ignore[arg-type]

    def restrict(self, value: Witnesses, gone: Tokens) -> Witnesses:
        """What remains when some base tuples go."""
        return frozenset(each for each in value if not each & gone)


class Lattice(Semiring[V], Generic[V]):
    """Any distributive lattice with a bottom and a top."""

    properties = Properties(idempotent=True, absorptive=True, lattice=True, stable=True, continuous=True)

    def __init__(self, name: str, bottom: V, top: V, join: Callable[[V, V], V], meet: Callable[[V, V], V]) -> None:
        self.name, self.zero, self.one = name, bottom, top
        self.join, self.meet = join, meet

    def plus(self, left: V, right: V, /) -> V:
        return self.join(left, right)

    def times(self, left: V, right: V, /) -> V:
        return self.meet(left, right)


def events(worlds: Iterable[Hashable]) -> Lattice[Tokens]:
    """In which worlds? Sets of worlds: union for alternatives, intersection for joint use.

    Two events may exclude each other, so a product of things that are there may be zero.
    """
    return Lattice("events", frozenset(), frozenset(worlds), frozenset.union, frozenset.intersection)


def minimal(witnesses: Witnesses) -> Witnesses:
    """Without the sets that have another one of them inside."""
    kept: list[Tokens] = []
    for each in sorted(witnesses, key=len):
        if not any(other <= each for other in kept):
            kept.append(each)
    return frozenset(kept)


def show_set(tokens: Tokens) -> str:
    return "{" + ", ".join(sorted(show_token(token) for token in tokens)) + "}"
