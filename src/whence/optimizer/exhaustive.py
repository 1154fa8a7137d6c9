"""The definition of the cheapest plan, for tests: by looking at all of them, and by the recurrence over all nodes."""

from __future__ import annotations

from collections.abc import Iterator

from whence.optimizer.plans import Plan, plan_of
from whence.optimizer.space import Alternative, Node, Space

Choices = tuple[int, ...]  # the numbers of alternatives of a plan, read from its root down


def every_plan(space: Space, node: Node) -> Iterator[tuple[int, Choices]]:
    """All plans for a node, none left out: what each costs, and its choices. There are many."""
    yield from _plans(space, node, {})


def _plans(space: Space, node: Node, known: dict[Node, list[tuple[int, Choices]]]) -> Iterator[tuple[int, Choices]]:
    own = space.own(node)
    for alternative in space.alternatives(node):
        local = own + space.local(node, alternative)
        reads = [each for each in (alternative.left, alternative.right) if each is not None]
        for each in reads:
            if each not in known:
                known[each] = list(_plans(space, each, known))
        head = (alternative.number,)
        if len(reads) == 2:
            right = known[reads[1]]
            for cost, choices in known[reads[0]]:
                begun, first = cost + local, head + choices
                yield from ((begun + other, first + others) for other, others in right)
        elif reads:
            yield from ((local + cost, head + choices) for cost, choices in known[reads[0]])
        else:
            yield local, head


def cheapest_of_all(space: Space) -> Plan:
    """Of several, the one whose indexes are the smallest, read from the root down."""
    _, choices = min(every_plan(space, space.root))
    left = iter(choices)

    def built(node: Node) -> Plan:
        alternative = space.alternatives(node)[next(left)]
        inputs = tuple(built(each) for each in (alternative.left, alternative.right) if each is not None)
        alone = space.own(node) + space.local(node, alternative)
        return Plan(node, alternative, alone + sum(each.cost for each in inputs), inputs)

    return built(space.root)


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
