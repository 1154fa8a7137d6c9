"""The plans of a query as an and-or graph, and what its parts cost.

An OR node is an expression with a property: the relations joined, as bits, and what is wanted of the result (an order, an index,
a place). It is a number for each, nothing else. An AND node is one alternative for it: an operator and the OR nodes that it
reads. The graph is fixed by the query; costs depend on statistics, which change. Both are all that optimizers know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

Node = tuple[int, int]  # expression, property


class Alternative(NamedTuple):
    """One way to a node. `left` and `right` are the nodes that it reads; `number` is its place among the alternatives."""

    number: int
    logical: str
    physical: str
    left: Node | None = None
    right: Node | None = None


class Touch(NamedTuple):
    """What a change of statistics reaches: the costs in and above this expression.

    `rows` says that the rows of the expression have changed, and with them those of all that contain it; otherwise what
    operators cost that make it. `log` is by how much, as a logarithm.
    """

    expression: int
    log: int
    rows: bool


class Space(Protocol):
    """What an optimizer searches."""

    @property
    def root(self) -> Node: ...

    def alternatives(self, node: Node) -> Sequence[Alternative]:
        """All of them, always the same: there is at least one."""
        ...

    def local(self, node: Node, alternative: Alternative) -> int:
        """What the alternative costs by itself, without what it reads and without `own`."""
        ...

    def least(self, node: Node, alternatives: Sequence[Alternative]) -> tuple[int, Alternative]:
        """The least of `local` of some alternatives that read the same, and whose it is: of several, the first one's."""
        ...

    def own(self, node: Node) -> int:
        """What all alternatives of a node cost alike."""
        ...

    def floor(self, node: Node) -> int:
        """No plan for the node costs less."""
        ...

    def floor_of_leaves(self, node: Node, without: int = 0) -> int:
        """No plan for the node spends less on its leaves, but for those `without`, which are given as bits."""
        ...

    def nodes(self) -> Iterable[Node]:
        """All nodes that the root can need, those first that others read."""
        ...


def least_of(space: Space, node: Node, alternatives: Sequence[Alternative]) -> tuple[int, Alternative]:
    """What `Space.least` gives, by `Space.local` of one after the other."""
    costs = [space.local(node, each) for each in alternatives]
    found = min(costs)
    return found, alternatives[costs.index(found)]


def all_nodes(space: Space) -> list[Node]:
    """What the root reaches, each node after those it reads."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in found:
            for each in space.alternatives(node):
                if each.left is not None:
                    visit(each.left)
                if each.right is not None:
                    visit(each.right)
            found[node] = None

    visit(space.root)
    return list(found)
