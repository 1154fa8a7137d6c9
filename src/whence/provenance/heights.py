"""The least heights of proofs, for all facts of a derivation graph."""

from __future__ import annotations

import heapq
from itertools import count
from typing import NamedTuple

from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.show import show_fact


class Cost(NamedTuple):
    height: int
    size: int


def smallest_choices(graph: DerivationGraph) -> dict[Fact, tuple[Cost, Derivation | None]]:
    """For each fact that has a proof in the graph, the least height, and the firing on top of a proof of that height.

    Facts are settled in the order of their heights (Knuth's generalization of Dijkstra's algorithm), of equal ones the one
    with the fewest parts.
    """
    settled: dict[Fact, tuple[Cost, Derivation | None]] = {}
    users: dict[Fact, list[Derivation]] = {}
    missing: dict[int, int] = {}
    serial = count()
    heap: list[tuple[Cost, int, Fact, Derivation | None]] = [
        (Cost(0, 1), next(serial), fact, None) for fact in sorted(graph.base, key=show_fact)
    ]
    for firings in graph.derivations.values():
        for firing in firings:
            premises = set(firing.premises)
            missing[id(firing)] = len(premises)
            for premise in premises:
                users.setdefault(premise, []).append(firing)
            if not premises:
                heap.append((Cost(1, 1), next(serial), firing.head, firing))
    heapq.heapify(heap)
    while heap:
        cost, _, fact, chosen = heapq.heappop(heap)
        if fact in settled:
            continue
        settled[fact] = (cost, chosen)
        for firing in users.get(fact, ()):
            missing[id(firing)] -= 1
            if missing[id(firing)] == 0 and firing.head not in settled:
                parts = [settled[each][0] for each in firing.premises]
                total = Cost(1 + max(part.height for part in parts), 1 + sum(part.size for part in parts))
                heapq.heappush(heap, (total, next(serial), firing.head, firing))
    return settled
