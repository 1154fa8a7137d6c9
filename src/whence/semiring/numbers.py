"""Annotations that are numbers or truth values."""

from __future__ import annotations

import math

from whence.semiring.algebra import Difference, Properties, Semiring

INFINITY = math.inf
_RANKING = Properties(
    idempotent=True,
    absorptive=True,
    selective=True,
    positive=True,
    continuous=True,
    stable=True,
    difference=Difference.MONUS,
)
_CHAIN = Properties(
    idempotent=True,
    absorptive=True,
    selective=True,
    lattice=True,
    positive=True,
    continuous=True,
    stable=True,
    difference=Difference.MONUS,
)


class Boolean(Semiring[bool]):
    """Is it there? Boolean trust: is there a derivation from trusted tuples alone?"""

    name = "boolean"
    zero, one = False, True
    properties = _CHAIN

    def plus(self, left: bool, right: bool, /) -> bool:
        return left or right

    def times(self, left: bool, right: bool, /) -> bool:
        return left and right

    def parse(self, text: str, /) -> bool:
        if text not in ("true", "false", "1", "0"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text in ("true", "1")

    def format(self, value: bool, /) -> str:
        return "true" if value else "false"


class Natural(Semiring[int]):
    """In how many ways? The multiplicity under bag semantics."""

    name = "natural"
    zero, one = 0, 1
    properties = Properties(positive=True, difference=Difference.MONUS)

    def plus(self, left: int, right: int, /) -> int:
        return left + right

    def times(self, left: int, right: int, /) -> int:
        return left * right

    def leq(self, left: int, right: int, /) -> bool:
        return left <= right

    def minus(self, left: int, right: int, /) -> int:
        return max(0, left - right)

    def contains(self, value: object, /) -> bool:
        return type(value) is int and value >= 0

    def parse(self, text: str, /) -> int:
        return self.checked(_integer(text))


class Counting(Semiring[int | float]):
    """In how many ways, infinitely many among them: natural numbers with ∞."""

    name = "counting"
    zero: int | float = 0
    one: int | float = 1
    properties = Properties(positive=True, continuous=True, difference=Difference.MONUS)

    def plus(self, left: int | float, right: int | float, /) -> int | float:
        return INFINITY if INFINITY in (left, right) else left + right

    def times(self, left: int | float, right: int | float, /) -> int | float:
        if left == 0 or right == 0:
            return 0
        return INFINITY if INFINITY in (left, right) else left * right

    def leq(self, left: int | float, right: int | float, /) -> bool:
        return left <= right

    def minus(self, left: int | float, right: int | float, /) -> int | float:
        if right == INFINITY:
            return 0
        return INFINITY if left == INFINITY else max(0, left - right)

    def contains(self, value: object, /) -> bool:
        return (type(value) is int and value >= 0) or value == INFINITY

    def parse(self, text: str, /) -> int | float:
        return INFINITY if text in ("inf", "∞") else self.checked(_integer(text))

    def format(self, value: int | float, /) -> str:
        return _number(value)


class Integer(Semiring[int]):
    """Signed multiplicities: data and updates in one representation. A ring."""

    name = "integer"
    zero, one = 0, 1
    properties = Properties(ordered=False, difference=Difference.INVERSE)

    def plus(self, left: int, right: int, /) -> int:
        return left + right

    def times(self, left: int, right: int, /) -> int:
        return left * right

    def minus(self, left: int, right: int, /) -> int:
        return left - right

    def contains(self, value: object, /) -> bool:
        return type(value) is int

    def parse(self, text: str, /) -> int:
        return _integer(text)


class Tropical(Semiring[float]):
    """At what cost? The cheapest derivation, costs adding up. Costs are not negative: a cycle must not pay off."""

    name = "tropical"
    zero, one = INFINITY, 0
    properties = _RANKING

    def plus(self, left: float, right: float, /) -> float:
        return min(left, right)

    def times(self, left: float, right: float, /) -> float:
        return left + right

    def contains(self, value: object, /) -> bool:
        return _is_number(value) and value >= 0  # type: ignore[operator]

    def checked(self, value: float) -> float:
        if not self.contains(value):
            raise ValueError(f"{value!r} is not a cost: tropical takes numbers from 0, and inf for what is not there")
        return value

    def parse(self, text: str, /) -> float:
        return self.checked(_real(text))

    def format(self, value: float, /) -> str:
        return _number(value)


class Viterbi(Semiring[float]):
    """With what confidence? The most likely derivation, confidences multiplying."""

    name = "viterbi"
    zero, one = 0.0, 1.0
    properties = _RANKING

    def plus(self, left: float, right: float, /) -> float:
        return max(left, right)

    def times(self, left: float, right: float, /) -> float:
        return left * right

    def contains(self, value: object, /) -> bool:
        return _is_number(value) and 0 <= value <= 1  # type: ignore[operator]

    def checked(self, value: float) -> float:
        if not self.contains(value):
            raise ValueError(f"{value!r} is not a degree between 0 and 1")
        return value

    def parse(self, text: str, /) -> float:
        return self.checked(_real(text))

    def format(self, value: float, /) -> str:
        return _number(value)


class Fuzzy(Viterbi):
    """To what degree? A derivation is as good as its weakest part, a tuple as good as its best derivation."""

    name = "fuzzy"
    properties = _CHAIN

    def times(self, left: float, right: float, /) -> float:
        return min(left, right)


class Access(Semiring[str]):
    """Who may see it? `levels` go from public to the one nobody has, which is zero.

    A join needs the higher of its parts' clearances; of several derivations the one with the lowest counts.
    """

    name = "access"
    properties = _CHAIN

    def __init__(self, levels: tuple[str, ...] = ("public", "confidential", "secret", "top-secret", "nobody")) -> None:
        self.levels = levels
        self.rank = {level: at for at, level in enumerate(levels)}
        self.one, self.zero = levels[0], levels[-1]

    def plus(self, left: str, right: str, /) -> str:
        return min(left, right, key=self.rank.__getitem__)

    def times(self, left: str, right: str, /) -> str:
        return max(left, right, key=self.rank.__getitem__)

    def contains(self, value: object, /) -> bool:
        return value in self.rank

    def checked(self, value: str) -> str:
        if not self.contains(value):
            raise ValueError(f"{value!r} is not a level of access: there are {', '.join(self.levels)}")
        return value

    def parse(self, text: str, /) -> str:
        return self.checked(text)

    def visible(self, value: str, clearance: str) -> bool:
        """Whether someone with this clearance may see it."""
        return value != self.zero and self.rank[value] <= self.rank[clearance]


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _real(text: str) -> float:
    if text == "∞":
        return INFINITY
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and value == value  # noqa: PLR0124 - not a number


def _number(value: float) -> str:
    return "∞" if value == INFINITY else str(value)
