"""Inputs, made from seeds."""

from __future__ import annotations

import random

Edges = list[tuple[int, int]]


def gnm(nodes: int, edges: int, seed: int = 1) -> Edges:
    """A random directed graph with this many distinct edges and no loops."""
    rng = random.Random(seed)
    found: set[tuple[int, int]] = set()
    while len(found) < edges:
        one, other = rng.randrange(nodes), rng.randrange(nodes)
        if one != other:
            found.add((one, other))
    return sorted(found)


def weighted(edges: Edges, most: int = 100, seed: int = 2) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)
    return [(one, other, rng.randint(1, most)) for one, other in edges]


def tree(levels: tuple[int, ...] = (1, 1, 1, 1, 4, 8, 176, 176, 528)) -> Edges:
    """(child, parent) pairs of a tree with so many nodes on each level below the root.

    The default has 896 edges; 340,820 pairs of its nodes are of the same generation.
    """
    edges, parents, count = [], [0], 1
    for size in levels:
        nodes = list(range(count, count + size))
        count += size
        edges += [(node, parents[at * len(parents) // size]) for at, node in enumerate(nodes)]
        parents = nodes
    return edges


def points_to(variables: int = 10_500, objects: int = 720, seed: int = 3) -> dict[str, Edges]:
    """Statements of a program for Andersen's analysis: allocations, copies, loads and stores between close variables."""
    rng = random.Random(seed)

    def near(one: int) -> int:
        return (one + rng.randint(1, 40)) % variables

    found: dict[str, Edges] = {
        "alloc": [(rng.randrange(variables), variables + number) for number in range(objects)],
        "assign": [(near(one), one) for one in range(variables)],
        "load": [(near(one), one) for one in rng.sample(range(variables), variables // 40)],
        "store": [(near(one), one) for one in rng.sample(range(variables), variables // 40)],
    }
    return {name: sorted(set(rows)) for name, rows in found.items()}
