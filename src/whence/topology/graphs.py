"""Plain graphs as lists of directed edges between the numbers from 0, for benchmarks and examples."""

from __future__ import annotations

from random import Random

Edge = tuple[int, int]


def gnm(nodes: int, edges: int, *, seed: int) -> list[Edge]:
    """Distinct edges drawn uniformly among all pairs of two different nodes.

    >>> gnm(4, 3, seed=1)
    [(0, 3), (3, 0), (0, 2)]
    """
    possible = nodes * (nodes - 1)
    if edges > possible:
        raise ValueError(f"{nodes} nodes have {possible} edges between them, not {edges}")
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    # Edge number k leaves node k // (nodes - 1); the loop that would be edge (x, x) is stepped over.
    picked = (divmod(number, nodes - 1) for number in draw.sample(range(possible), edges))
    return [(source, target + (target >= source)) for source, target in picked]


def chain(nodes: int) -> list[Edge]:
    """One node after the other.

    >>> chain(4)
    [(0, 1), (1, 2), (2, 3)]
    """
    return [(node, node + 1) for node in range(nodes - 1)]


def tree(nodes: int, *, seed: int) -> list[Edge]:
    """Edges from parents to children; node 0 is the root, and every other node hangs on a random earlier one.

    >>> tree(5, seed=1)
    [(0, 1), (0, 2), (1, 3), (0, 4)]
    """
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    return [(draw.randrange(node), node) for node in range(1, nodes)]
