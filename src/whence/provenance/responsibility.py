"""How much each base fact contributes to a fact.

The *responsibility* of a base fact is 1 / (1 + n), where n is how few other base facts have to go before it alone decides. Its
*Shapley value* is its share if base facts came in random order: how often it is the one that makes the fact true. Shapley values
add up to one.

Both are read off a decision diagram. A Shapley value is the integral over p of the fact's influence when all others are there
with probability p; the integrand is a polynomial, so a quadrature of enough points is exact. If the diagram outgrows its budget,
random orders are drawn instead, and what they give is within the stated error with probability 0.99 for all facts at once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from whence.lang.types import Tuple
from whence.provenance.derive import CannotExplain
from whence.provenance.diagrams import BudgetExceeded
from whence.provenance.expand import Bounds, derivation_graph
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.probability import (
    Compiled,
    compile_diagram,
    necessary_facts,
    refuse_uncertain_absence,
    without_detours,
)
from whence.provenance.proofs import smallest_choices
from whence.session import Session

_UNSURE = 0.01


@dataclass(frozen=True, slots=True)
class Contribution:
    """`responsibility` is None if it was not worked out; the Shapley value is within `error`, which is 0 if it is exact."""

    fact: Fact
    responsibility: float | None
    shapley: float
    error: float = 0.0


def contributions(
    session: Session,
    relation: str,
    row: Tuple,
    *,
    among: Collection[str] | None = None,
    nodes: int = 300_000,
    samples: int = 2_000,
    seed: int = 1,
    bounds: Bounds = Bounds(),  # noqa: B008 - immutable
) -> list[Contribution]:
    """What base facts (of the relations `among`; the others are taken for granted) contribute, the most first.

    >>> from whence import Session, load
    >>> session = Session(load("p(x) :- e(x), f(x). p(x) :- e(x), g(x)." + "".join(
    ...     f".decl {name}(x:number) .input {name} " for name in "efg")), facts={name: [(1,)] for name in "efg"})
    >>> [(each.fact.relation, each.responsibility, round(each.shapley, 3)) for each in contributions(session, "p", (1,))]
    [('e', 1.0, 0.667), ('f', 0.5, 0.167), ('g', 0.5, 0.167)]
    """
    fact = Fact(relation, row)
    counted = set(session.program.base_relations if among is None else among)
    refuse_uncertain_absence(session, {relation}, lambda base: 0.5 if base.relation in counted else 1.0)
    graph = derivation_graph(session, [fact], bounds)
    if graph.cut is not None:
        raise CannotExplain(f"the derivations were cut off at {graph.cut.reason}; raise the bound")
    graph = without_detours(graph, necessary_facts(graph))
    try:
        compiled = compile_diagram(graph, fact, lambda base: base.relation in counted, nodes)
    except BudgetExceeded:
        found = _sampled(graph, fact, counted, samples, random.Random(seed))  # noqa: S311 - not for secrets
    else:
        found = _exact(compiled)
    return sorted(found, key=lambda each: (-each.shapley, -(each.responsibility or 0), repr(each.fact)))


def _exact(compiled: Compiled) -> list[Contribution]:
    diagrams, root, order = compiled
    shares = np.zeros(len(order))
    points, weights = np.polynomial.legendre.leggauss(len(order) // 2 + 1)
    for point, weight in zip(points, weights, strict=True):
        chances = [(float(point) + 1) / 2] * len(order)
        shares += float(weight) / 2 * np.array(diagrams.influences(root, chances))
    found = []
    for at, fact in enumerate(order):
        others = diagrams.fewest_missing(root, at)
        found.append(Contribution(fact, 0.0 if others is None else 1 / (1 + others), float(shares[at])))
    return found


def _sampled(
    graph: DerivationGraph, root: Fact, counted: set[str], samples: int, rng: random.Random
) -> list[Contribution]:
    """In each random order, the fact that makes the root true, found by halving."""
    order = sorted((fact for fact in graph.base if fact.relation in counted), key=repr)
    granted = graph.base - set(order)
    decided = dict.fromkeys(order, 0)
    for _ in range(samples):
        rng.shuffle(order)
        low, high = 0, len(order)  # with `low` facts it does not hold, with `high` it does
        while high - low > 1:
            middle = (low + high) // 2
            if root in smallest_choices(replace(graph, base=granted | set(order[:middle]))):
                high = middle
            else:
                low = middle
        decided[order[high - 1]] += 1
    error = math.sqrt(math.log(2 * len(order) / _UNSURE) / (2 * samples))  # Hoeffding, for all facts at once
    return [Contribution(fact, None, count / samples, error) for fact, count in decided.items()]
