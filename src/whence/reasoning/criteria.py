"""What decides containment in which semiring, and the annotations that show it where it fails.

Green, "Containment of conjunctive queries on annotated relations" (ICDT 2009), with these differences: lineage adds up over
the parts of a union, so its facts may be hit by mappings of several parts together; the cheapest derivation of tropical and
viterbi may be another part for other costs, so that no single mapping has to be the cheaper one always.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import reduce
from itertools import chain, product
from typing import Any

from whence.reasoning.cases import Fact, Frozen
from whence.reasoning.mappings import FREE, Bag, Binding, Bounds, Steps, mappings
from whence.reasoning.queries import Conjunctive
from whence.semiring import Semiring

Tags = Mapping[Fact, Any]
Found = list[tuple[Conjunctive, Binding]]


class Criterion(StrEnum):
    """Which mappings into the facts of a frozen part there have to be."""

    PLAIN = "a mapping"
    COVERING = "mappings that together hit every fact"
    ONTO = "a mapping that hits every fact at least as often"
    EXACT = "a mapping that hits every fact exactly as often"
    WITHIN = "a mapping that hits every fact at most as often"  # enough, but not needed


# Where ⊕ is idempotent: each frozen part of the left query is looked at by itself.
CRITERIA: Mapping[str, Criterion] = {
    "boolean": Criterion.PLAIN,
    "posbool": Criterion.PLAIN,
    "fuzzy": Criterion.PLAIN,
    "access": Criterion.PLAIN,
    "lineage": Criterion.COVERING,
    "why": Criterion.ONTO,
    "boolean-polynomial": Criterion.EXACT,
    "tropical": Criterion.WITHIN,
    "viterbi": Criterion.WITHIN,
}
# Where derivations add up: each part of the left query needs a part of the right one to itself, or all cases are counted.
ADDING: Mapping[str, Criterion] = {"polynomial": Criterion.EXACT, "trio": Criterion.ONTO}
# Containment is undecidable; what suffices for trio suffices here.
NUMBERS = frozenset({"natural", "counting"})
# Nothing is at most anything else; only equivalence has a meaning.
RINGS = frozenset({"integer", "integer-polynomial"})


def bounds_of(criterion: Criterion, bag: Bag) -> Bounds:
    match criterion:
        case Criterion.ONTO:
            return Bounds(at_least=bag)
        case Criterion.EXACT:
            return Bounds(at_least=bag, at_most=bag)
        case Criterion.WITHIN:
            return Bounds(at_most=bag)
    return FREE


def found(criterion: Criterion, frozen: Frozen, parts: Iterable[Conjunctive], steps: Steps) -> Found | None:
    """The mappings of the parts that the criterion asks for, or None if there are none."""
    if criterion is Criterion.COVERING:
        return _covering(frozen, tuple(parts), steps)
    bounds = bounds_of(criterion, frozen.bag)
    for part in parts:
        for binding, _ in mappings(part, frozen.bag, frozen.head, steps, bounds=bounds):
            return [(part, binding)]
    return None


def _covering(frozen: Frozen, parts: tuple[Conjunctive, ...], steps: Steps) -> Found | None:
    every = ((part, *each) for part in parts for each in mappings(part, frozen.bag, frozen.head, steps))
    first = next(every, None)
    if first is None:
        return None
    used, hit = [first[:2]], set(first[2])
    for fact in frozen.bag:
        if fact in hit:
            continue
        hitting = next(_hitting(fact, frozen, parts, steps), None)
        if hitting is None:
            return None
        part, binding, hits = hitting
        used.append((part, binding))
        hit.update(hits)
    return used


def _hitting(
    fact: Fact, frozen: Frozen, parts: tuple[Conjunctive, ...], steps: Steps
) -> Iterator[tuple[Conjunctive, Binding, Bag]]:
    for part in parts:
        for at, (name, _) in enumerate(part.atoms):
            if name == fact[0]:
                for binding, hits in mappings(part, frozen.bag, frozen.head, steps, pinned=(at, fact)):
                    yield part, binding, hits


def refuting_costs(frozen: Frozen, parts: Iterable[Conjunctive], steps: Steps) -> dict[Fact, int] | None:
    """Costs of the facts for which every mapping of the parts is dearer than the frozen part, among small ones."""
    facts, parts = tuple(frozen.bag), tuple(parts)
    small: Iterator[tuple[int, ...]] = product((0, 1), repeat=len(facts)) if len(facts) <= 10 else iter(())
    larger: Iterator[tuple[int, ...]] = product(range(4), repeat=len(facts)) if len(facts) <= 5 else iter(())
    for numbers in chain(((0,) * len(facts), (1,) * len(facts)), small, larger):
        costs = dict(zip(facts, numbers, strict=True))
        most = sum(costs[fact] * times for fact, times in frozen.bag.items())
        bounds = Bounds(costs=costs, most=most)
        if not any(any(True for _ in mappings(part, facts, frozen.head, steps, bounds=bounds)) for part in parts):
            return costs
    return None


def tags_of(semiring: Semiring[Any], bag: Bag) -> Tags:
    """Annotations that show which facts were used how often: variables, several to a fact that is used several times where
    powers are lost."""
    if semiring.variable("") is None:
        return dict.fromkeys(bag, semiring.one)
    if semiring.name not in ("why", "trio"):
        return {fact: semiring.variable(fact) for fact in bag}
    return {
        fact: reduce(semiring.plus, (semiring.variable(token) for token in _tokens(fact, times)))
        for fact, times in bag.items()
    }


def _tokens(fact: Fact, times: int) -> list[Any]:
    name, values = fact
    return [fact] if times == 1 else [(f"{name}[{number}]", values) for number in range(1, times + 1)]


def cost_tags(semiring: Semiring[Any], costs: Bag) -> Tags:
    """Viterbi multiplies where tropical adds."""
    return dict(costs) if semiring.name == "tropical" else {fact: 0.5**cost for fact, cost in costs.items()}
