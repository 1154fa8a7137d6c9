"""Semirings made from others, and semirings of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic

from whence.semiring.algebra import Difference, Properties, Semiring, V

_ALL = ("commutative", "idempotent", "absorptive", "lattice", "ordered", "continuous", "stable")


class Product(Semiring[tuple[Any, ...]]):
    """Several annotations side by side, each combined in its own semiring.

    (1, 0) ⊗ (0, 1) is zero though neither factor is, so a product is not positive whatever its parts are.
    """

    def __init__(self, *parts: Semiring[Any]) -> None:
        self.parts = parts
        self.name = " x ".join(part.name for part in parts)
        self.zero = tuple(part.zero for part in parts)
        self.one = tuple(part.one for part in parts)
        differences = {part.properties.difference for part in parts}
        shared = {name: all(getattr(part.properties, name) for part in parts) for name in _ALL}
        difference = differences.pop() if len(differences) == 1 else Difference.NONE
        self.properties = Properties(**shared, difference=difference)

    def plus(self, left: tuple[Any, ...], right: tuple[Any, ...], /) -> tuple[Any, ...]:
        return tuple(part.plus(*pair) for part, *pair in zip(self.parts, left, right, strict=True))

    def times(self, left: tuple[Any, ...], right: tuple[Any, ...], /) -> tuple[Any, ...]:
        return tuple(part.times(*pair) for part, *pair in zip(self.parts, left, right, strict=True))

    def leq(self, left: tuple[Any, ...], right: tuple[Any, ...], /) -> bool:
        return all(part.leq(*pair) for part, *pair in zip(self.parts, left, right, strict=True))

    def minus(self, left: tuple[Any, ...], right: tuple[Any, ...], /) -> tuple[Any, ...]:
        return tuple(part.minus(*pair) for part, *pair in zip(self.parts, left, right, strict=True))

    def contains(self, value: object, /) -> bool:
        return (
            isinstance(value, tuple)
            and len(value) == len(self.parts)
            and all(part.contains(each) for part, each in zip(self.parts, value, strict=True))
        )

    def variable(self, token: Hashable, /) -> tuple[Any, ...] | None:
        """The token in the parts that have variables, one in the others; None if no part has."""
        variables = [part.variable(token) for part in self.parts]
        if all(each is None for each in variables):
            return None
        return tuple(part.one if each is None else each for part, each in zip(self.parts, variables, strict=True))

    def format(self, value: tuple[Any, ...], /) -> str:
        return "(" + ", ".join(part.format(each) for part, each in zip(self.parts, value, strict=True)) + ")"


class Custom(Semiring[V], Generic[V]):
    """A semiring from two functions. What `properties` promise is believed: `laws.check_laws` puts it to the test.

    >>> from whence.semiring import Properties
    >>> ranking = Properties(idempotent=True, absorptive=True, selective=True, positive=True, continuous=True, stable=True)
    >>> bandwidth = Custom("bandwidth", zero=0, one=10**9, plus=max, times=min, properties=ranking)
    >>> bandwidth.plus(bandwidth.times(100, 40), 25)
    40
    """

    def __init__(
        self,
        name: str,
        *,
        zero: V,
        one: V,
        plus: Callable[[V, V], V],
        times: Callable[[V, V], V],
        properties: Properties,
        parse: Callable[[str], V] | None = None,
    ) -> None:
        self.name, self.zero, self.one, self.properties = name, zero, one, properties
        self._plus, self._times, self._parse = plus, times, parse

    def plus(self, left: V, right: V, /) -> V:
        return self._plus(left, right)

    def times(self, left: V, right: V, /) -> V:
        return self._times(left, right)

    def contains(self, value: object, /) -> bool:  # noqa: ARG002 - only its author knows
        return True

    def parse(self, text: str, /) -> V:
        return super().parse(text) if self._parse is None else self._parse(text)
