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
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np

from whence.lang.tables import bag_tables, taking_updates
from whence.lang.types import Tuple
from whence.provenance.base import fact_of
from whence.provenance.copies import Rows
from whence.provenance.derivations import CannotExplain, Derivations
from whence.provenance.derive import derivations_of
from whence.provenance.diagrams import BudgetExceeded
from whence.provenance.expand import Bounds, derivation_graph
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.probability import (
    Compiled,
    compile_diagram,
    depends_on,
    necessary_facts,
    refuse_uncertain_absence,
    without_detours,
)
from whence.provenance.show import show_fact
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
    subject: Session | Derivations,
    relation: str | tuple[str, Tuple],
    row: Tuple | None = None,
    *,
    among: Collection[str] | None = None,
    nodes: int = 300_000,
    samples: int = 2_000,
    seconds: float = 10.0,
    seed: int = 1,
    bounds: Bounds = Bounds(),  # noqa: B008 - immutable
) -> list[Contribution]:
    """What base facts (of the relations `among`; the others are taken for granted) contribute, the most first.

    Exact while a decision diagram of `nodes` is enough, and otherwise estimated from `samples` random orders, or as many as
    there is time for in `seconds`.

    >>> from whence import Session, load
    >>> session = Session(load("p(x) :- e(x), f(x). p(x) :- e(x), g(x)." + "".join(
    ...     f".decl {name}(x:number) .input {name} " for name in "efg")), facts={name: [(1,)] for name in "efg"})
    >>> [(each.fact.relation, each.responsibility, round(each.shapley, 3)) for each in contributions(session, "p", (1,))]
    [('e', 1.0, 0.667), ('f', 0.5, 0.167), ('g', 0.5, 0.167)]
    """
    fact = fact_of(derivations_of(subject).program, relation, row)
    source = derivations_of(subject)
    tables = bag_tables(source.program)
    counted = set(source.program.base_relations if among is None else among)
    counted |= {tables[name] for name in counted & tables.keys()}
    graph = derivation_graph(source, [fact], bounds)

    def advice(names: str) -> str:
        below = depends_on(source.program, fact.relation).intersection(taking_updates(source.program))
        others = ", ".join(sorted(below.difference(names.split(", "))))
        granted = f"take {names} for granted, and ask for contributions among {others} only (--among)"
        return granted if others else "shares cannot be worked out"

    refuse_uncertain_absence(source, {fact.relation}, lambda base: 0.5 if base.relation in counted else 1.0, advice)
    if graph.cut is not None:
        raise CannotExplain(f"the derivations were cut off at {graph.cut.reason}; raise the bound")
    graph = without_detours(graph, necessary_facts(graph))
    try:
        compiled = compile_diagram(graph, fact, lambda base: base.relation in counted, nodes)
    except BudgetExceeded:
        order = sorted((base for base in graph.base if base.relation in counted), key=show_fact)
        chain = _Chain(graph, fact, graph.base.difference(order))
        found = _sampled(chain, order, samples, seconds, random.Random(seed))  # noqa: S311 - not for secrets
    else:
        found = _exact(compiled)
    rows = Rows(source.program)
    found = [replace(each, fact=rows.of(each.fact)) for each in found]
    return sorted(found, key=lambda each: (-each.shapley, -(each.responsibility or 0), show_fact(each.fact)))


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


def _sampled(chain: _Chain, order: list[Fact], samples: int, seconds: float, rng: random.Random) -> list[Contribution]:
    """In each random order, the fact that makes the root true."""
    decided = dict.fromkeys(order, 0)
    deadline = time.monotonic() + seconds
    done = 0
    while done < samples and (not done or time.monotonic() < deadline):
        rng.shuffle(order)
        completing = chain.completed_by(order)
        if completing is not None:
            decided[completing] += 1
        done += 1
    error = math.sqrt(math.log(2 * len(order) / _UNSURE) / (2 * done))  # Hoeffding, for all facts at once
    return [Contribution(fact, None, count / done, error) for fact, count in decided.items()]


class _Chain:
    """Follows what base facts lead to, one by one, until the root holds. `granted` facts are there from the start."""

    def __init__(self, graph: DerivationGraph, root: Fact, granted: Iterable[Fact]) -> None:
        self.root = root
        self.heads: list[Fact] = []
        self.missing: list[int] = []
        self.users: dict[Fact, list[int]] = {}
        for firing in (firing for firings in graph.derivations.values() for firing in firings):
            premises = set(firing.premises)
            for premise in premises:
                self.users.setdefault(premise, []).append(len(self.heads))
            self.heads.append(firing.head)
            self.missing.append(len(premises))
        self.held: set[Fact] = set()
        without = [head for head, missing in zip(self.heads, self.missing, strict=True) if not missing]
        for fact in (*granted, *without):
            self._follow(fact, self.held, self.missing)

    def completed_by(self, order: Iterable[Fact]) -> Fact | None:
        """The first fact with which, and those before it, the root holds; None if it holds anyway, or never does."""
        held, missing = self.held.copy(), self.missing.copy()
        if self.root in held:
            return None
        for fact in order:
            self._follow(fact, held, missing)
            if self.root in held:
                return fact
        return None

    def _follow(self, start: Fact, held: set[Fact], missing: list[int]) -> None:
        pending = [start]
        while pending:
            fact = pending.pop()
            if fact in held:
                continue
            held.add(fact)
            for user in self.users.get(fact, ()):
                missing[user] -= 1
                if not missing[user]:
                    pending.append(self.heads[user])
