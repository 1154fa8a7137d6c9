"""Mappings of one query into the facts of another: head to head, atoms to facts, comparisons kept.

The search binds the atom with the fewest facts left first, and drops facts of the others that no longer fit. What a mapping
has to hit at least, or may hit at most, cuts branches early. A search that takes too many steps is given up, not guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from whence.lang.program import Const, Var
from whence.lang.types import Tuple, Value
from whence.reasoning.cases import Fact
from whence.reasoning.queries import Conjunctive, Simple, holds

MOST_STEPS = 300_000
Binding = dict[Var, Value]
Bag = Mapping[Fact, int]


class TooHard(Exception):
    """The search was given up."""


class Steps:
    """How much searching one question may cost."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._most = most
        self._left = most

    def take(self, number: int = 1) -> None:
        self._left -= number
        if self._left < 0:
            raise TooHard(f"the search for mappings took more than {self._most:,} steps")


@dataclass(frozen=True)
class Bounds:
    """How often a mapping hits each fact."""

    at_least: Bag | None = None
    at_most: Bag | None = None


FREE = Bounds()
_Open = list[tuple[tuple[Simple, ...], list[Fact]]]


def mappings(
    part: Conjunctive,
    facts: Iterable[Fact],
    head: Tuple,
    steps: Steps,
    *,
    bounds: Bounds = FREE,
) -> Iterator[tuple[Binding, Counter[Fact]]]:
    """Every mapping of the part into the facts within bounds, and how often it hits each fact."""
    binding = bound(part.head, head, {})
    if binding is None or not compared(part, binding):
        return
    by_relation: dict[str, list[Fact]] = {}
    for fact in facts:
        by_relation.setdefault(fact[0], []).append(fact)
    left: _Open = [(args, _fitting(args, by_relation.get(name, []), binding)) for name, args in part.atoms]
    yield from _Search(part, steps, bounds).extended(left, binding, Counter())


@dataclass(frozen=True)
class _Search:
    part: Conjunctive
    steps: Steps
    bounds: Bounds

    def extended(self, left: _Open, binding: Binding, hits: Counter[Fact]) -> Iterator[tuple[Binding, Counter[Fact]]]:
        """The mappings that a binding of some atoms extends to; `left` are the others, with the facts that fit."""
        self.steps.take()
        if not _within(left, hits, self.bounds):
            return
        if not left:
            yield binding, hits
            return
        at = min(range(len(left)), key=lambda number: len(left[number][1]))
        args, fitting = left[at]
        others = left[:at] + left[at + 1 :]
        most = self.bounds.at_most
        for fact in fitting:
            if most is not None and hits[fact] >= most.get(fact, 0):
                continue
            extended = bound(args, fact[1], binding)
            if extended is None or not compared(self.part, extended):
                continue
            remaining = others
            if len(extended) > len(binding):
                remaining = [(each, _fitting(each, there, extended)) for each, there in others]
            yield from self.extended(remaining, extended, hits + Counter((fact,)))


def _within(left: _Open, hits: Counter[Fact], bounds: Bounds) -> bool:
    """Whether the bounds can still be kept."""
    if not all(fitting for _, fitting in left):
        return False
    if bounds.at_least is not None:
        missing = {fact: times - hits[fact] for fact, times in bounds.at_least.items() if times > hits[fact]}
        if sum(missing.values()) > len(left):
            return False
        options = Counter(fact for _, fitting in left for fact in fitting)
        if any(options[fact] < times for fact, times in missing.items()):
            return False
    return True


def _fitting(args: tuple[Simple, ...], facts: list[Fact], binding: Binding) -> list[Fact]:
    return [fact for fact in facts if bound(args, fact[1], binding) is not None]


def bound(args: tuple[Simple, ...], values: Tuple, binding: Binding) -> Binding | None:
    """The binding with what the values say of the arguments, or None if they do not fit."""
    extended = binding
    for arg, value in zip(args, values, strict=True):
        if isinstance(arg, Const):
            if arg.value != value:
                return None
        elif arg in extended:
            if extended[arg] != value:
                return None
        else:
            extended = {**extended, arg: value}
    return extended


def compared(part: Conjunctive, binding: Binding) -> bool:
    """Whether the comparisons hold as far as both sides are known."""
    for op, left, right in part.comparisons:
        known = [term.value if isinstance(term, Const) else binding.get(term) for term in (left, right)]
        if None not in known and not holds(op, *known):
            return False
    return True
