"""The definition of the cheapest plan, for tests: by looking at all of them, and by the recurrence over all nodes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from whence.optimizer.plans import Plan, plan_of
from whence.optimizer.space import Alternative, Node, Space


def every_plan(space: Space, node: Node) -> Iterator[Plan]:
    """All plans for a node: there are many."""
    for alternative in space.alternatives(node):
        local = space.own(node) + space.local(node, alternative)
        reads = [each for each in (alternative.left, alternative.right) if each is not None]
        for inputs in product(*(list(every_plan(space, each)) for each in reads)):
            yield Plan(node, alternative, local + sum(each.cost for each in inputs), inputs)


def cheapest_of_all(space: Space) -> Plan:
    """Of several, the one whose indexes are the smallest, read from the root down."""
    return min(
        every_plan(space, space.root), key=lambda plan: (plan.cost, [each.alternative.number for each in plan.walk()])
    )


def best_of_each(space: Space) -> dict[Node, tuple[int, Alternative]]:
    """For every node what it costs and its best alternative, by the recurrence, without any pruning."""
    found: dict[Node, tuple[int, Alternative]] = {}
    for node in space.nodes():
        costs = [
            space.own(node)
            + space.local(node, each)
            + sum(found[read][0] for read in (each.left, each.right) if read is not None)
            for each in space.alternatives(node)
        ]
        at = costs.index(min(costs))
        found[node] = costs[at], space.alternatives(node)[at]
    return found


def cheapest(space: Space) -> Plan:
    return plan_of(space.root, best_of_each(space).__getitem__)
