"""Maps between semirings that keep ⊕, ⊗, 0 and 1, so that it makes no difference whether they are applied before or after.

From the most telling to the least:

    N[X] -> B[X], Trio -> Why -> Lineage, PosBool -> B

and from N[X] to any commutative semiring by giving its variables values (`specialize`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from whence.semiring.algebra import Semiring, V
from whence.semiring.numbers import Boolean
from whence.semiring.polynomials import BOOLEAN_POLYNOMIALS, NATURAL_POLYNOMIALS, TRIO, Monomial, Polynomial
from whence.semiring.witnesses import NOTHING, Lineage, Nothing, PosBool, Tokens, Why, Witnesses, minimal

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Homomorphism(Generic[S, T]):
    source: Semiring[S]
    target: Semiring[T]
    apply: Callable[[S], T]

    def __call__(self, value: S) -> T:
        return self.apply(value)


def specialize(semiring: Semiring[V], value_of: Callable[[Hashable], V]) -> Homomorphism[Polynomial[int], V]:
    """Polynomials evaluated in a semiring, their variables replaced by values."""

    def evaluate(polynomial: Polynomial[int]) -> V:
        return semiring.sum(
            [
                semiring.multiple(
                    coefficient, semiring.product([semiring.power(value_of(name), count) for name, count in bag])
                )
                for bag, coefficient in polynomial.terms
            ]
        )

    return Homomorphism(NATURAL_POLYNOMIALS, semiring, evaluate)


def presence(semiring: Semiring[V]) -> Homomorphism[V, bool]:
    """Whether a value is not zero: a homomorphism where the semiring is positive."""
    if not semiring.properties.positive:
        raise semiring.refusal("is not positive: values that are there may cancel out")
    return Homomorphism(semiring, Boolean(), lambda value: value != semiring.zero)


def _drop_coefficients(polynomial: Polynomial[int]) -> Polynomial[bool]:
    return BOOLEAN_POLYNOMIALS.of({bag: True for bag, _ in polynomial.terms})


def _drop_exponents(polynomial: Polynomial[int]) -> Polynomial[int]:
    terms: dict[Monomial, int] = {}
    for bag, coefficient in polynomial.terms:
        flat = frozenset((variable, 1) for variable, _ in bag)
        terms[flat] = terms.get(flat, 0) + coefficient
    return TRIO.of(terms)


def _witnesses(polynomial: Polynomial[Any]) -> Witnesses:
    return frozenset(frozenset(variable for variable, _ in bag) for bag, _ in polynomial.terms)


def _contributors(witnesses: Witnesses) -> Tokens | Nothing:
    return frozenset().union(*witnesses) if witnesses else NOTHING


TO_BOOLEAN_POLYNOMIAL = Homomorphism(NATURAL_POLYNOMIALS, BOOLEAN_POLYNOMIALS, _drop_coefficients)
TO_TRIO = Homomorphism(NATURAL_POLYNOMIALS, TRIO, _drop_exponents)
BOOLEAN_POLYNOMIAL_TO_WHY = Homomorphism(BOOLEAN_POLYNOMIALS, Why(), _witnesses)
TRIO_TO_WHY = Homomorphism(TRIO, Why(), _witnesses)
WHY_TO_LINEAGE = Homomorphism(Why(), Lineage(), _contributors)
WHY_TO_POSBOOL = Homomorphism(Why(), PosBool(), minimal)
HIERARCHY: tuple[Homomorphism[Any, Any], ...] = (
    TO_BOOLEAN_POLYNOMIAL,
    TO_TRIO,
    BOOLEAN_POLYNOMIAL_TO_WHY,
    TRIO_TO_WHY,
    WHY_TO_LINEAGE,
    WHY_TO_POSBOOL,
    *(presence(each) for each in (NATURAL_POLYNOMIALS, BOOLEAN_POLYNOMIALS, TRIO, Why(), Lineage(), PosBool())),
)
