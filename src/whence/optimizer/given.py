"""A graph whose costs are given one by one: for examples on paper, and for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from whence.optimizer.cost import LOG_ONE
from whence.optimizer.query import places_of
from whence.optimizer.space import Alternative, Node, Touch, all_nodes, least_of

Split = tuple[int, int]


@dataclass
class GivenSpace:
    """Leaves with their costs, and for each expression its splits with theirs; there are no properties."""

    top: int
    scans: dict[int, int]
    splits: Mapping[int, Sequence[Split]]
    costs: dict[tuple[int, Split], int]
    _alternatives: dict[Node, tuple[Alternative, ...]] = field(default_factory=dict)

    @property
    def root(self) -> Node:
        return (self.top, 0)

    def alternatives(self, node: Node) -> Sequence[Alternative]:
        if node not in self._alternatives:
            self._alternatives[node] = (
                (Alternative(0, "scan", "scan"),)
                if node[0] in self.scans
                else tuple(
                    Alternative(at, "join", "join", (left, 0), (right, 0))
                    for at, (left, right) in enumerate(self.splits[node[0]])
                )
            )
        return self._alternatives[node]

    def local(self, node: Node, alternative: Alternative) -> int:
        if alternative.left is None or alternative.right is None:
            return self.scans[node[0]]
        return self.costs[node[0], (alternative.left[0], alternative.right[0])]

    def least(self, node: Node, alternatives: Sequence[Alternative]) -> tuple[int, Alternative]:
        return least_of(self, node, alternatives)

    def own(self, node: Node) -> int:  # noqa: ARG002 - nothing is common to alternatives here
        return 0

    def floor(self, node: Node) -> int:
        return self.floor_of_leaves(node)

    def floor_of_leaves(self, node: Node, without: int = 0) -> int:
        return sum(self.scans[1 << at] for at in places_of(node[0] & ~without))

    def nodes(self) -> Iterable[Node]:
        return all_nodes(self)

    def set_scan(self, leaf: int, cost: int) -> Touch:
        before, self.scans[leaf] = self.scans[leaf], cost
        return _touch(leaf, before, cost)

    def set_cost(self, expression: int, split: Split, cost: int) -> Touch:
        before, self.costs[expression, split] = self.costs[expression, split], cost
        return _touch(expression, before, cost)


def _touch(expression: int, before: int, after: int) -> Touch:
    # A given cost may fall to any share of what it was.
    return Touch(expression, -64 * LOG_ONE if after < before else LOG_ONE, rows=False)


def clique(relations: int, cost: Callable[[int], int]) -> GivenSpace:
    """Every relation joined with every other, with all splits of every set; `cost` gives the costs one after the other."""
    top = (1 << relations) - 1
    scans = {1 << at: cost(1 << at) for at in range(relations)}
    splits = {whole: _splits(whole) for whole in range(1, top + 1) if whole & (whole - 1)}
    costs = {(whole, split): cost(whole) for whole, each in splits.items() for split in each}
    return GivenSpace(top, scans, splits, costs)


def _splits(whole: int) -> list[Split]:
    found, part = [], (whole - 1) & whole
    while part:
        found.append((part, whole ^ part))
        part = (part - 1) & whole
    return found
