"""The annotations of the facts of a derivation graph: the least solution of its equations.

Each fact is the sum of its own annotation, if it was put in from outside, and of a product for each derivation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from whence.provenance.graph import DerivationGraph, Fact
from whence.semiring import Semiring
from whence.semiring.equations import Term, solve

V = TypeVar("V")


def solve_graph(
    graph: DerivationGraph,
    semiring: Semiring[V],
    annotate: Callable[[Fact], V | None] = lambda _: None,
    *,
    rules: Mapping[str, V] | None = None,
) -> dict[Fact, V]:
    """The annotation of every fact of a graph.

    `annotate` gives those of base facts; where it gives None, a fact stands for itself if the semiring has variables, and
    counts as one if not. `rules` annotates rules by name.
    """
    return solve(equations_of(graph, semiring, annotate, rules=rules), semiring)


def equations_of(
    graph: DerivationGraph,
    semiring: Semiring[V],
    annotate: Callable[[Fact], V | None] = lambda _: None,
    *,
    rules: Mapping[str, V] | None = None,
) -> dict[Fact, list[Term[V, Fact]]]:
    """What each fact of the graph is the sum of."""
    if graph.cut is not None:
        raise ValueError(
            f"the graph is cut off ({graph.cut.reason}): what was left out has no annotation; expand it all"
        )
    if not semiring.properties.commutative:
        raise semiring.refusal("has a ⊗ whose order matters, and the literals of a rule have none")
    factors = rules or {}
    equations: dict[Fact, list[Term[V, Fact]]] = {fact: [] for fact in graph.facts}
    for fact in graph.base:
        equations[fact].append((semiring.base(fact, annotate(fact)), ()))
    for fact, derivations in graph.derivations.items():
        equations[fact] += [(factors.get(each.rule, semiring.one), each.premises) for each in derivations]
    return equations
