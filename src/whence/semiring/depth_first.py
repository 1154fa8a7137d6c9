"""An order for variables that stand for the edges of a graph: depth first, so that edges used together come together.

Edges come and go one at a time. The order is worked out again when it is asked for after a change, in one pass over the edges.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Token = TypeVar("Token", bound=Hashable)


class DepthFirstOrder(Generic[Token]):
    """Edges in the order of a depth-first walk that starts where no edge ends, and follows edges as they came.

    >>> order = DepthFirstOrder()
    >>> for name in ("ab", "ad", "bf", "bc", "df", "cf"):
    ...     order.insert(name, *name)
    >>> order.edges()
    ['ab', 'bf', 'bc', 'cf', 'ad', 'df']
    """

    def __init__(self) -> None:
        self._ends: dict[Token, tuple[Hashable, Hashable]] = {}
        self._leaving: dict[Hashable, dict[Token, Hashable]] = {}
        self._arriving: dict[Hashable, int] = {}
        self._order: list[Token] | None = []

    def insert(self, edge: Token, start: Hashable, end: Hashable) -> None:
        self._ends[edge] = (start, end)
        self._leaving.setdefault(start, {})[edge] = end
        self._arriving[end] = self._arriving.get(end, 0) + 1
        self._order = None

    def delete(self, edge: Token) -> None:
        start, end = self._ends.pop(edge)
        del self._leaving[start][edge]
        if not self._leaving[start]:
            del self._leaving[start]
        self._arriving[end] -= 1

    def edges(self) -> list[Token]:
        if self._order is None:
            self._order = self._walk()
        # What is left of a depth-first order without some of its edges is good enough until edges come.
        return [edge for edge in self._order if edge in self._ends]

    def _walk(self) -> list[Token]:
        order: list[Token] = []
        visited: set[Hashable] = set()
        roots = [node for node in self._leaving if not self._arriving.get(node)]
        for root in (*roots, *self._leaving):
            if root in visited:
                continue
            visited.add(root)
            path = [iter(self._leaving[root].items())]
            while path:
                step = next(path[-1], None)
                if step is None:
                    path.pop()
                    continue
                edge, end = step
                order.append(edge)
                if end not in visited and end in self._leaving:
                    visited.add(end)
                    path.append(iter(self._leaving[end].items()))
        return order
