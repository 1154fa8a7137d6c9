"""The sum, over all mappings of a query into weighted facts, of the products of what its atoms hit.

What a mapping does to some atoms often says nothing about others: once the variables that two groups of atoms share are bound,
the sum over both is the product of their sums. So groups are summed up one by one, and each only once for the same values of
the variables that it shares with others. A star of ten atoms takes ten steps a fact, where there are as many mappings as the
tenth power of the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

from whence.lang.program import Const, Var
from whence.lang.types import Tuple, Value
from whence.reasoning.cases import Fact
from whence.reasoning.mappings import Bag, Binding, Steps, bound, compared
from whence.reasoning.queries import Conjunctive

W = TypeVar("W")
Powers = dict[tuple[int, ...], int]  # how often each fact is hit, and how many mappings do so
Priced = (
    tuple[int, tuple[tuple[Var, Value], ...]] | None
)  # what the cheapest mapping costs, and the mapping; None for none
_Atoms = tuple[int, ...]


@dataclass(frozen=True)
class Algebra(Generic[W]):
    """What is summed up. A sum that is `enough` is not added to."""

    zero: W
    one: W
    plus: Callable[[W, W], W]
    times: Callable[[W, W], W]
    enough: Callable[[W], bool] = lambda _: False


class Weighing(Generic[W]):
    """One query on some facts. `pinned` atoms, by their numbers, may hit only the fact given for them."""

    def __init__(
        self, part: Conjunctive, facts: Mapping[Fact, W], algebra: Algebra[W], steps: Steps, pinned: Mapping[int, Fact]
    ) -> None:
        self._part, self._facts, self._algebra, self._steps = part, facts, algebra, steps
        by_relation: dict[str, list[Fact]] = {}
        for fact in facts:
            by_relation.setdefault(fact[0], []).append(fact)
        self._there = [
            [pinned[at]] if at in pinned else by_relation.get(name, []) for at, (name, _) in enumerate(part.atoms)
        ]
        self._variables = [frozenset(each for each in args if isinstance(each, Var)) for _, args in part.atoms]
        self._compared = [
            frozenset(each for each in (left, right) if isinstance(each, Var)) for _, left, right in part.comparisons
        ]
        self._known: dict[tuple[_Atoms, frozenset[tuple[Var, Value]]], W] = {}

    def total(self, head: Tuple) -> W:
        binding = bound(self._part.head, head, {})
        if binding is None or not compared(self._part, binding):
            return self._algebra.zero
        return self._product(tuple(range(len(self._part.atoms))), binding)

    def _product(self, atoms: _Atoms, binding: Binding) -> W:
        total = self._algebra.one
        for group in self._groups(atoms, binding):
            value = self._sum(group, binding)
            if value == self._algebra.zero:
                return value
            total = self._algebra.times(total, value)
        return total

    def _groups(self, atoms: _Atoms, binding: Binding) -> list[_Atoms]:
        """The atoms by what they share: an unbound variable, or a comparison of two."""
        links = [each for each in self._compared if not each <= binding.keys()]
        groups: list[tuple[list[int], set[Var]]] = []
        for at in atoms:
            free = set(self._variables[at] - binding.keys())
            for link in links:
                if link & free:
                    free |= link - binding.keys()
            together = [at]
            apart = []
            for members, variables in groups:
                if variables & free:
                    together, free = members + together, free | variables
                else:
                    apart.append((members, variables))
            groups = [*apart, (together, free)]
        return [tuple(sorted(members)) for members, _ in groups]

    def _sum(self, atoms: _Atoms, binding: Binding) -> W:
        free = frozenset[Var]().union(*(self._variables[at] for at in atoms))
        seen = free.union(*(each for each in self._compared if each & free))
        key = atoms, frozenset((each, value) for each, value in binding.items() if each in seen)
        if key in self._known:
            return self._known[key]
        self._steps.take()
        fitting = {at: self._fitting(at, binding) for at in atoms}
        first = min(atoms, key=lambda at: len(fitting[at]))
        others = tuple(at for at in atoms if at != first)
        args = self._part.atoms[first][1]
        total = self._algebra.zero
        for fact in fitting[first]:
            extended = bound(args, fact[1], binding)
            if extended is None or not compared(self._part, extended):
                continue
            rest = self._product(others, extended)
            if rest == self._algebra.zero:
                continue
            total = self._algebra.plus(total, self._algebra.times(self._weight(first, fact, extended), rest))
            if self._algebra.enough(total):
                break
        self._known[key] = total
        return total

    def _weight(self, at: int, fact: Fact, binding: Binding) -> W:  # noqa: ARG002 - some weights tell the binding
        return self._facts[fact]

    def _fitting(self, at: int, binding: Binding) -> list[Fact]:
        args = self._part.atoms[at][1]
        columns = [
            (column, arg.value if isinstance(arg, Const) else binding[arg])
            for column, arg in enumerate(args)
            if isinstance(arg, Const) or arg in binding
        ]
        return [fact for fact in self._there[at] if all(fact[1][column] == value for column, value in columns)]


class _Cheapest(Weighing[Priced]):
    """Weights are costs; what an atom contributes is also what it binds."""

    def _weight(self, at: int, fact: Fact, binding: Binding) -> Priced:
        weight = self._facts[fact]
        assert weight is not None
        return weight[0], tuple((each, binding[each]) for each in self._variables[at])


_NUMBERS = Algebra[int](0, 1, lambda one, other: one + other, lambda one, other: one * other)


def _cheaper(one: Priced, other: Priced) -> Priced:
    return other if one is None or (other is not None and other[0] < one[0]) else one


def _both(one: Priced, other: Priced) -> Priced:
    return None if one is None or other is None else (one[0] + other[0], one[1] + other[1])


_COSTS = Algebra[Priced](None, (0, ()), _cheaper, _both, lambda value: value is not None and not value[0])


def cheapest(
    part: Conjunctive, costs: Bag, head: Tuple, steps: Steps, *, pinned: tuple[int, Fact] | None = None
) -> tuple[int, Binding] | None:
    """A mapping whose facts cost least, each as often as it is hit. `pinned` names an atom by its number and its fact."""
    priced: dict[Fact, Priced] = {fact: (cost, ()) for fact, cost in costs.items()}
    weighing = _Cheapest(part, priced, _COSTS, steps, {} if pinned is None else {pinned[0]: pinned[1]})
    found = weighing.total(head)
    if found is None:
        return None
    binding = bound(part.head, head, {})
    assert binding is not None
    return found[0], {each: (binding | dict(found[1]))[each] for each in part.variables}


def hits(part: Conjunctive, binding: Binding) -> dict[Fact, int]:
    """How often a mapping hits each fact."""
    found: dict[Fact, int] = {}
    for name, args in part.atoms:
        fact = (name, tuple(each.value if isinstance(each, Const) else binding[each] for each in args))
        found[fact] = found.get(fact, 0) + 1
    return found


def number_of(part: Conjunctive, numbers: Bag, head: Tuple, steps: Steps) -> int:
    """How many derivations there are if each fact is there so many times."""
    return Weighing(part, numbers, _NUMBERS, steps, {}).total(head)


def powers(
    part: Conjunctive, facts: tuple[Fact, ...], head: Tuple, steps: Steps, *, at_most: Bag | None = None
) -> Powers:
    """How often mappings hit each of the facts, and how many do so. Those beyond `at_most` are left out."""
    most = None if at_most is None else tuple(at_most[fact] for fact in facts)

    def plus(one: Powers, other: Powers) -> Powers:
        small, large = sorted((one, other), key=len)
        total = dict(large)
        for each, number in small.items():
            total[each] = total.get(each, 0) + number
        return total

    def times(one: Powers, other: Powers) -> Powers:
        steps.take(len(one) * len(other) // 8)
        total: Powers = {}
        for left, number in one.items():
            for right, many in other.items():
                both = tuple(map(int.__add__, left, right))
                if most is None or all(map(int.__le__, both, most)):
                    total[both] = total.get(both, 0) + number * many
        return total

    none = (0,) * len(facts)
    units = {fact: {(*none[:at], 1, *none[at + 1 :]): 1} for at, fact in enumerate(facts)}
    return Weighing(part, units, Algebra[Powers]({}, {none: 1}, plus, times), steps, {}).total(head)


def add_up(terms: list[Powers]) -> Powers:
    return reduce(lambda one, other: {key: one.get(key, 0) + other.get(key, 0) for key in {*one, *other}}, terms, {})
