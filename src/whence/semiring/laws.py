"""The laws of semirings and what each declared property promises, as statements about up to three values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from whence.semiring.algebra import Difference, Semiring, V

Law = Callable[[Semiring[Any], Any, Any, Any], bool]

LAWS: Mapping[str, Law] = {
    "⊕ is associative": lambda k, a, b, c: k.plus(k.plus(a, b), c) == k.plus(a, k.plus(b, c)),
    "⊕ is commutative": lambda k, a, b, _: k.plus(a, b) == k.plus(b, a),
    "0 is neutral for ⊕": lambda k, a, _b, _c: k.plus(a, k.zero) == a,
    "⊗ is associative": lambda k, a, b, c: k.times(k.times(a, b), c) == k.times(a, k.times(b, c)),
    "1 is neutral for ⊗": lambda k, a, _b, _c: k.times(a, k.one) == a == k.times(k.one, a),
    "0 annihilates": lambda k, a, _b, _c: k.times(a, k.zero) == k.zero == k.times(k.zero, a),
    "⊗ distributes over ⊕": lambda k, a, b, c: (
        k.times(a, k.plus(b, c)) == k.plus(k.times(a, b), k.times(a, c))
        and k.times(k.plus(b, c), a) == k.plus(k.times(b, a), k.times(c, a))
    ),
}
PROMISES: Mapping[str, Law] = {
    "commutative": lambda k, a, b, _: k.times(a, b) == k.times(b, a),
    "idempotent": lambda k, a, _b, _c: k.plus(a, a) == a,
    "absorptive": lambda k, a, _b, _c: k.plus(k.one, a) == k.one,
    "selective": lambda k, a, b, _: k.plus(a, b) in (a, b),
    "lattice": lambda k, a, b, _: k.times(a, a) == a and k.plus(a, k.times(a, b)) == a == k.times(a, k.plus(a, b)),
    "positive": lambda k, a, b, _: (
        k.zero != k.one
        and (k.plus(a, b) != k.zero or (a == k.zero and b == k.zero))
        and (k.times(a, b) != k.zero or k.zero in (a, b))
    ),
    "ordered": lambda k, a, b, c: (
        k.leq(a, a)
        and k.leq(a, k.plus(a, b))
        and (not (k.leq(a, b) and k.leq(b, a)) or a == b)
        and (not (k.leq(a, b) and k.leq(b, c)) or k.leq(a, c))
    ),
    "stable": lambda k, a, _b, _c: _settles(k, a),
}


def _settles(semiring: Semiring[V], value: V) -> bool:
    """Whether 1 ⊕ a ⊕ a² ⊕ … ends."""
    total = semiring.one
    for _ in range(64):
        following = semiring.plus(semiring.one, semiring.times(value, total))
        if following == total:
            return True
        total = following
    return False


def _inverse(k: Semiring[V], a: V, b: V, _: V) -> bool:
    return k.plus(k.minus(a, b), b) == a


def _monus(k: Semiring[V], a: V, b: V, c: V) -> bool:
    """a ⊖ b is the least of the c with a ≤ b ⊕ c."""
    rest = k.minus(a, b)
    return k.leq(a, k.plus(b, rest)) and (not k.leq(a, k.plus(b, c)) or k.leq(rest, c))


DIFFERENCES: Mapping[Difference, Law] = {Difference.INVERSE: _inverse, Difference.MONUS: _monus}


class LawBroken(Exception):
    """A law or a declared property does not hold; the message has the values that show it."""


def laws_of(semiring: Semiring[Any]) -> Iterator[tuple[str, Law]]:
    """The laws of semirings, and what this one declares of itself."""
    yield from LAWS.items()
    declared = semiring.properties
    yield from ((f"it is {name}", law) for name, law in PROMISES.items() if getattr(declared, name))
    if declared.difference in DIFFERENCES:
        yield f"its difference is a {declared.difference}", DIFFERENCES[declared.difference]


def check_laws(semiring: Semiring[V], samples: Iterable[V]) -> None:
    """Tries every law on all triples of the samples, with 0 and 1 among them.

    >>> from whence.semiring import Custom, Properties
    >>> average = Custom("average", zero=0.0, one=1.0, plus=lambda a, b: (a + b) / 2, times=min, properties=Properties())
    >>> check_laws(average, [0.5])
    Traceback (most recent call last):
    whence.semiring.laws.LawBroken: average: ⊕ is associative does not hold for 0.0, 0.0, 1.0
    """
    values = [semiring.zero, semiring.one, *samples]
    for name, law in laws_of(semiring):
        for triple in product(values, repeat=3):
            if not law(semiring, *triple):
                raise LawBroken(f"{semiring.name}: {name} does not hold for {', '.join(map(repr, triple))}")
