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


def hubs(nodes: int, links: int, seed: int = 4) -> Edges:
    """A random directed graph in which every node brings so many links, more often to nodes that have many already."""
    rng = random.Random(seed)
    ends = list(range(links))
    found: set[tuple[int, int]] = set()
    for node in range(links, nodes):
        for _ in range(links):
            other = rng.choice(ends)
            found.add((node, other) if rng.random() < 0.5 else (other, node))
            ends.append(other)
        ends += [node] * links
    return sorted(edge for edge in found if edge[0] != edge[1])


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


def sold(rows: int, places: int = 1_000, seed: int = 5) -> list[tuple[int, int, int]]:
    """(place, order, amount) in no order: four rows for each order, all different, at random places."""
    rng = random.Random(seed)
    found = [(rng.randrange(places), at // 4, 4 * rng.randrange(-500, 500) + at % 4) for at in range(rows)]
    rng.shuffle(found)
    return found


def points_to(modules: int = 6, variables: int = 4_000, objects: int = 1_000, seed: int = 3) -> dict[str, Edges]:
    """Statements of a program for Andersen's analysis, module by module: allocations, copies, loads and stores.

    Variables are copied to close ones of their module; one in a hundred is loaded through, and one stored through.
    """
    rng = random.Random(seed)
    found: dict[str, Edges] = {"alloc": [], "assign": [], "load": [], "store": []}
    for module in range(modules):
        first = module * (variables + objects)
        names = range(first, first + variables)

        def near(one: int, first: int = first) -> int:
            return first + (one - first + rng.randint(1, 40)) % variables

        found["alloc"] += [(rng.choice(names), first + variables + number) for number in range(objects)]
        found["assign"] += [(near(one), one) for one in names]
        for statement in ("load", "store"):
            found[statement] += [(near(one), one) for one in rng.sample(names, variables // 100)]
    return {name: sorted(set(rows)) for name, rows in found.items()}
