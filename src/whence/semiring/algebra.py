"""Semirings: what an annotation is made of, and what may be done with it.

A semiring has an addition for alternatives and a multiplication for joint use. Its `Properties` are promises, checked by the
tests of `laws`; whatever evaluates annotations looks at them and at nothing else to decide what it may do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

V = TypeVar("V")


class Difference(StrEnum):
    """How a semiring takes annotations away."""

    NONE = "none"
    MONUS = "monus"  # a ⊖ b is the least c with a ≤ b ⊕ c
    INVERSE = "inverse"  # a ring: every value has a negative


@dataclass(frozen=True, kw_only=True)
class Properties:
    """What holds of a semiring beyond its laws.

    - `idempotent`: a ⊕ a = a. A derivation may be met twice without harm.
    - `absorptive`: 1 ⊕ a = 1. A derivation that uses more is never needed, so going round a cycle adds nothing.
    - `selective`: a ⊕ b is a or b. With absorption, the best value can be settled first, as Dijkstra does.
    - `lattice`: ⊕ and ⊗ are the join and meet of a distributive lattice.
    - `positive`: only zeros add or multiply to zero, so that "not zero" is the same as "there" and negation has a meaning.
    - `ordered`: a ≤ b, defined as a ⊕ c = b for some c, is a partial order, and `leq` decides it.
    - `continuous`: every countable sum has a value, so that recursion does.
    - `stable`: repeating equations over finitely many values comes to an end.
    """

    commutative: bool = True
    idempotent: bool = False
    absorptive: bool = False
    selective: bool = False
    lattice: bool = False
    positive: bool = False
    ordered: bool = True
    continuous: bool = False
    stable: bool = False
    difference: Difference = Difference.NONE

    def __post_init__(self) -> None:
        implied = (
            ("lattice", "absorptive"),
            ("selective", "idempotent"),
            ("absorptive", "idempotent"),
            ("absorptive", "stable"),
            ("idempotent", "ordered"),
            ("continuous", "ordered"),
        )
        for one, other in implied:
            if getattr(self, one) and not getattr(self, other):
                raise ValueError(f"a semiring that is {one} is also {other}: declare it")


class Semiring(ABC, Generic[V]):
    """`name` is what it is called on the command line; `zero` means "not there" and `one` "there, at no cost"."""

    name: str
    zero: V
    one: V
    properties: Properties

    @abstractmethod
    def plus(self, left: V, right: V, /) -> V:
        """Either of two derivations."""

    @abstractmethod
    def times(self, left: V, right: V, /) -> V:
        """Both together."""

    def leq(self, left: V, right: V, /) -> bool:
        """The natural order. Idempotent semirings get it from ⊕; others that have one define it."""
        if not self.properties.idempotent:
            raise self.refusal("has no natural order")
        return self.plus(left, right) == right

    def minus(self, left: V, right: V, /) -> V:
        if self.properties.selective and self.properties.difference is Difference.MONUS:
            return self.zero if self.leq(left, right) else left
        raise self.refusal("has no difference")

    def contains(self, value: object, /) -> bool:
        """Whether a value is one of this semiring's."""
        return type(value) is type(self.one)

    def variable(self, token: Hashable, /) -> V | None:
        """The annotation that stands for a base tuple itself, in semirings that tell tuples apart."""
        del token
        return None

    def base(self, token: Hashable, given: V | None) -> V:
        """The annotation of a base tuple: what was given, or itself where there are variables, or one."""
        if given is not None:
            return self.checked(given)
        variable = self.variable(token)
        return self.one if variable is None else variable

    def parse(self, text: str, /) -> V:
        """A value from text; raises ValueError with what was expected."""
        value = self.variable(text)
        if value is None:
            raise ValueError(f"values of {self.name} cannot be read from text")
        return value

    def format(self, value: V, /) -> str:
        return str(value)

    def checked(self, value: V) -> V:
        """The value, or ValueError if it is none of this semiring's."""
        if not self.contains(value):
            raise ValueError(f"{value!r} is not a value of {self.name}")
        return value

    def sum(self, values: list[V]) -> V:
        total = self.zero
        for value in values:
            total = self.plus(total, value)
        return total

    def product(self, values: list[V]) -> V:
        total = self.one
        for value in values:
            total = self.times(total, value)
        return total

    def multiple(self, count: int, value: V) -> V:
        """`value` added to itself."""
        return _repeat(self.plus, self.zero, value, min(count, 1) if self.properties.idempotent else count)

    def power(self, value: V, exponent: int) -> V:
        return _repeat(self.times, self.one, value, exponent)

    def refusal(self, reason: str) -> NotInThisSemiring:
        return NotInThisSemiring(f"{self.name} {reason}")

    def endless(self, example: str) -> NotInThisSemiring:
        """The refusal to sum up the infinitely many derivations of something."""
        reason = f"{example} has infinitely many derivations, because it depends on itself"
        if self.variable("x") is not None:
            return NotInThisSemiring(
                f"{reason}: {self.name} would need infinitely many terms\n"
                "  hint: series gives as many as are asked for; why and posbool are finite"
            )
        return NotInThisSemiring(
            f"{reason}: {self.name} has no value for that\n"
            "  hint: counting has ∞; in absorptive semirings, as tropical and posbool are, going round a cycle adds nothing"
        )

    def __repr__(self) -> str:
        return f"<semiring {self.name}>"


class NotInThisSemiring(Exception):
    """What was asked for has no meaning, or no finite value, in this semiring. The message says why."""


def _repeat(combine: Callable[[V, V], V], neutral: V, value: V, count: int) -> V:
    """`value` combined with itself, by doubling."""
    total = neutral
    while count:
        if count & 1:
            total = combine(total, value)
        value = combine(value, value)
        count >>= 1
    return total
