"""Polynomials over a semiring: how a tuple was derived, from which base tuples, how often, in how many ways."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic

from whence.semiring.algebra import Difference, Properties, Semiring, V
from whence.semiring.numbers import INFINITY, Boolean, Counting, Integer, Natural
from whence.semiring.tokens import show_token

# Which variables, how often each: a bag. The empty one is 1.
Monomial = frozenset[tuple[Hashable, int]]
ONE: Monomial = frozenset()


def monomial(*variables: Hashable) -> Monomial:
    """
    >>> sorted(monomial("r", "s", "r"))
    [('r', 2), ('s', 1)]
    """
    return _bag((variable, 1) for variable in variables)


def degree(bag: Monomial) -> int:
    return sum(exponent for _, exponent in bag)


def multiply(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    return _bag((*left, *right))


def _bag(parts: Iterable[tuple[Hashable, int]]) -> Monomial:
    exponents: dict[Hashable, int] = {}
    for variable, exponent in parts:
        exponents[variable] = exponents.get(variable, 0) + exponent
    return frozenset(exponents.items())


@dataclass(frozen=True)
class Polynomial(Generic[V]):
    """`terms` pairs each monomial with its coefficient, none of which is zero."""

    terms: frozenset[tuple[Monomial, V]]

    def coefficient(self, bag: Monomial, otherwise: V) -> V:
        return dict(self.terms).get(bag, otherwise)

    def __str__(self) -> str:
        texts = [_show_term(bag, coefficient) for bag, coefficient in sorted(self.terms, key=_order)]
        return " + ".join(texts).replace("+ -", "- ") or "0"


def _order(term: tuple[Monomial, object]) -> tuple[int, str]:
    return degree(term[0]), show_monomial(term[0])


def _show_term(bag: Monomial, coefficient: object) -> str:
    if coefficient is True or coefficient == 1:
        return show_monomial(bag)
    number = "∞" if coefficient == INFINITY else str(coefficient)
    if coefficient == -1 and bag:
        return f"-{show_monomial(bag)}"
    return f"{number}*{show_monomial(bag)}" if bag else number


def show_monomial(bag: Monomial) -> str:
    """
    >>> show_monomial(monomial("r", "s", "r"))
    'r^2*s'
    """
    powers = sorted((show_token(variable), exponent) for variable, exponent in bag)
    return "*".join(name if exponent == 1 else f"{name}^{exponent}" for name, exponent in powers) or "1"


class Polynomials(Semiring[Polynomial[V]], Generic[V]):
    """Polynomials with coefficients in a semiring.

    Without `exponents`, a variable counts once however often it is used. With `keeps`, products outside of the monomials that
    it accepts are zero: if it accepts the divisors of what it accepts, what remains is exact as far as it goes.
    """

    def __init__(
        self,
        name: str,
        coefficients: Semiring[V],
        *,
        exponents: bool = True,
        keeps: Callable[[Monomial], bool] | None = None,
    ) -> None:
        self.name = name
        self.coefficients = coefficients
        self.exponents = exponents
        self.keeps = keeps
        self.zero: Polynomial[V] = Polynomial(frozenset())
        self.one = Polynomial(frozenset(((ONE, coefficients.one),)))
        of = coefficients.properties
        self.properties = Properties(
            idempotent=of.idempotent,
            positive=of.positive and keeps is None,
            ordered=of.ordered,
            continuous=of.continuous and keeps is not None,
            stable=of.stable and (keeps is not None or not exponents),
            difference=of.difference,
        )

    def plus(self, left: Polynomial[V], right: Polynomial[V], /) -> Polynomial[V]:
        terms = dict(left.terms)
        for bag, coefficient in right.terms:
            terms[bag] = self.coefficients.plus(terms.get(bag, self.coefficients.zero), coefficient)
        return self.of(terms)

    def times(self, left: Polynomial[V], right: Polynomial[V], /) -> Polynomial[V]:
        terms: dict[Monomial, V] = {}
        for one, coefficient in left.terms:
            for other, factor in right.terms:
                bag = self._reduced(multiply(one, other))
                product = self.coefficients.times(coefficient, factor)
                terms[bag] = self.coefficients.plus(terms.get(bag, self.coefficients.zero), product)
        return self.of(terms)

    def of(self, terms: Mapping[Monomial, V]) -> Polynomial[V]:
        """A polynomial from coefficients by monomial."""
        kept = (
            (bag, coefficient)
            for bag, coefficient in terms.items()
            if coefficient != self.coefficients.zero and (self.keeps is None or self.keeps(bag))
        )
        return Polynomial(frozenset(kept))

    def _reduced(self, bag: Monomial) -> Monomial:
        return bag if self.exponents else frozenset((variable, 1) for variable, _ in bag)

    def leq(self, left: Polynomial[V], right: Polynomial[V], /) -> bool:
        if not self.properties.ordered:
            return super().leq(left, right)
        zero, most = self.coefficients.zero, dict(right.terms)
        return all(self.coefficients.leq(coefficient, most.get(bag, zero)) for bag, coefficient in left.terms)

    def minus(self, left: Polynomial[V], right: Polynomial[V], /) -> Polynomial[V]:
        if self.properties.difference is Difference.NONE:
            return super().minus(left, right)
        zero, terms = self.coefficients.zero, dict(left.terms)
        for bag, coefficient in right.terms:
            terms[bag] = self.coefficients.minus(terms.get(bag, zero), coefficient)
        return self.of(terms)

    def contains(self, value: object, /) -> bool:
        return isinstance(value, Polynomial) and all(
            self.coefficients.contains(coefficient) and self._reduced(bag) == bag for bag, coefficient in value.terms
        )

    def variable(self, token: Hashable, /) -> Polynomial[V]:
        return self.of({monomial(token): self.coefficients.one})

    def constant(self, coefficient: V) -> Polynomial[V]:
        return self.of({ONE: coefficient})


NATURAL_POLYNOMIALS = Polynomials("polynomial", Natural())
BOOLEAN_POLYNOMIALS = Polynomials("boolean-polynomial", Boolean())
INTEGER_POLYNOMIALS = Polynomials("integer-polynomial", Integer())
TRIO = Polynomials("trio", Natural(), exponents=False)


class PowerSeries(Polynomials[int | float]):
    """Formal power series with coefficients that may be ∞, cut off: the provenance of recursive derivations.

    Only the monomials that `keeps` accepts are worked out; it has to accept their divisors too.
    """

    def __init__(self, keeps: Callable[[Monomial], bool]) -> None:
        super().__init__("series", Counting(), keeps=keeps)

    @classmethod
    def up_to(cls, max_degree: int) -> PowerSeries:
        return cls(lambda bag: degree(bag) <= max_degree)

    @classmethod
    def within(cls, most: Monomial) -> PowerSeries:
        """The divisors of a monomial."""
        exponents = dict(most)
        return cls(lambda bag: all(exponent <= exponents.get(variable, 0) for variable, exponent in bag))
