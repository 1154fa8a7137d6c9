"""What decides containment in which semiring, and the annotations that show it where it fails.

Green, "Containment of conjunctive queries on annotated relations" (ICDT 2009), with these differences: lineage adds up over
the parts of a union, so its facts may be hit by mappings of several parts together; the cheapest derivation of tropical and
viterbi may be another one for other costs, so that no single mapping has to be the cheaper one always.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import reduce
from math import lcm
from typing import Any

from whence.reasoning.cases import Fact, Frozen
from whence.reasoning.games import best_mixture
from whence.reasoning.mappings import FREE, Bag, Binding, Bounds, Steps, mappings
from whence.reasoning.queries import Conjunctive
from whence.reasoning.weigh import cheapest, hits
from whence.semiring import Semiring

Tags = Mapping[Fact, Any]
Found = list[tuple[Conjunctive, Binding]]
Costs = dict[Fact, int]


class Criterion(StrEnum):
    """Which mappings into the facts of a frozen part there have to be."""

    PLAIN = "a mapping"
    COVERING = "mappings that together hit every fact"
    ONTO = "a mapping that hits every fact at least as often"
    EXACT = "a mapping that hits every fact exactly as often"
    NEVER_DEARER = "mappings of which one is never dearer, whatever facts cost"


# Where ⊕ is idempotent: each frozen part of the left query is looked at by itself.
CRITERIA: Mapping[str, Criterion] = {
    "boolean": Criterion.PLAIN,
    "posbool": Criterion.PLAIN,
    "fuzzy": Criterion.PLAIN,
    "access": Criterion.PLAIN,
    "lineage": Criterion.COVERING,
    "why": Criterion.ONTO,
    "boolean-polynomial": Criterion.EXACT,
    "tropical": Criterion.NEVER_DEARER,
    "viterbi": Criterion.NEVER_DEARER,
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
    return FREE


def found(criterion: Criterion, frozen: Frozen, parts: Iterable[Conjunctive], steps: Steps) -> Found | None:
    """The mappings of the parts that the criterion asks for, or None if there are none."""
    if criterion is Criterion.COVERING and frozen.bag:
        return _covering(frozen, tuple(parts), steps)
    if criterion is Criterion.NEVER_DEARER and frozen.bag:
        answer = never_dearer(frozen, tuple(parts), steps)
        return answer if isinstance(answer, list) else None
    free = dict.fromkeys(frozen.bag, 0)
    bounds = bounds_of(criterion, frozen.bag)
    for part in parts:
        plain = cheapest(part, free, frozen.head, steps)
        if plain is None:
            continue
        if bounds is FREE:
            return [(part, plain[1])]
        for binding, _ in mappings(part, frozen.bag, frozen.head, steps, bounds=bounds):
            return [(part, binding)]
    return None


def _covering(frozen: Frozen, parts: tuple[Conjunctive, ...], steps: Steps) -> Found | None:
    used: Found = []
    hit: set[Fact] = set()
    for fact in frozen.bag:
        if fact in hit:
            continue
        hitting = next(_hitting(fact, frozen, parts, steps), None)
        if hitting is None:
            return None
        used.append(hitting)
        hit.update(hits(*hitting))
    return used


def _hitting(
    fact: Fact, frozen: Frozen, parts: tuple[Conjunctive, ...], steps: Steps
) -> Iterator[tuple[Conjunctive, Binding]]:
    free = dict.fromkeys(frozen.bag, 0)
    for part in parts:
        for at, (name, _) in enumerate(part.atoms):
            if name == fact[0]:
                mapping = cheapest(part, free, frozen.head, steps, pinned=(at, fact))
                if mapping is not None:
                    yield part, mapping[1]


def never_dearer(frozen: Frozen, parts: tuple[Conjunctive, ...], steps: Steps) -> Found | Costs:
    """Mappings of which, whatever the facts cost, one costs no more than the frozen part; or costs for which all do.

    If each mapping is dearer for some costs, one mixture of costs may be bad for all of them: a game, in which one side picks
    costs and the other a mapping. Mappings are added to it as long as there is a cheaper one for the costs picked.
    """
    facts = tuple(frozen.bag)
    used: dict[tuple[int, ...], tuple[Conjunctive, Binding]] = {}
    costs = dict.fromkeys(facts, 1)
    while True:
        steps.take(10)
        offers = [(part, there) for part in parts if (there := cheapest(part, costs, frozen.head, steps)) is not None]
        own = sum(costs[fact] * times for fact, times in frozen.bag.items())
        if not offers:
            return dict.fromkeys(facts, 0)
        part, (least, binding) = min(offers, key=lambda each: each[1][0])
        if least > own:
            return costs
        times = hits(part, binding)
        used[tuple(times.get(fact, 0) for fact in facts)] = part, binding
        gains = [[each[at] - frozen.bag[fact] for each in used] for at, fact in enumerate(facts)]
        value, mixture = best_mixture(gains)
        if value <= 0:
            return list(used.values())
        scale = lcm(*(each.denominator for each in mixture))
        costs = {fact: int(each * scale) for fact, each in zip(facts, mixture, strict=True)}


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


def cost_tags(semiring: Semiring[Any], costs: Costs) -> Tags:
    """Viterbi multiplies where tropical adds."""
    return dict(costs) if semiring.name == "tropical" else {fact: 0.5**cost for fact, cost in costs.items()}
