"""Plans: which alternative was chosen for which node, with what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from whence.optimizer.space import Alternative, Node


@dataclass(frozen=True)
class Plan:
    """`cost` includes what the inputs cost."""

    node: Node
    alternative: Alternative
    cost: int
    inputs: tuple[Plan, ...]

    def walk(self) -> Iterator[Plan]:
        yield self
        for each in self.inputs:
            yield from each.walk()


def plan_of(node: Node, best: Callable[[Node], tuple[int, Alternative]]) -> Plan:
    """The plan that chooses the best alternative for every node."""
    cost, alternative = best(node)
    inputs = tuple(plan_of(each, best) for each in (alternative.left, alternative.right) if each is not None)
    return Plan(node, alternative, cost, inputs)
