"""Depth-first order kept by labels, as edges come and go: the printed algorithm, beside `depth_first`.

The edges are a vector. Each node has two labels: where its first edge is, and where the block ends that is reached from it. An
edge that comes is put after the block of its start, and the block of its end is pulled up behind it if it was further back. When
an edge goes on which a block hung, the edges of that block go where the rest of the vector still leads to them. Every change
takes one pass. The result is nearly depth first: blocks that two edges lead to stay where they were put first.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Token = TypeVar("Token", bound=Hashable)


class LabelledOrder(Generic[Token]):
    """Edges in the order of a vector that is mended in place.

    >>> order = LabelledOrder()
    >>> for name in ("ab", "ad", "bf", "bc", "df", "cf"):
    ...     order.insert(name, *name)
    >>> order.edges()
    ['ab', 'bf', 'bc', 'cf', 'ad', 'df']
    >>> order.delete("ab")
    >>> order.edges()
    ['ad', 'df', 'bf', 'bc', 'cf']
    """

    def __init__(self) -> None:
        self._ends: dict[Token, tuple[Hashable, Hashable]] = {}
        self._edges: list[Token] = []
        self._first: dict[Hashable, int] = {}  # where the first edge of a node is
        self._last: dict[Hashable, int] = {}  # where its block ends, or where an edge ends in it that has none

    def edges(self) -> list[Token]:
        return list(self._edges)

    def insert(self, edge: Token, start: Hashable, end: Hashable) -> None:
        self._ends[edge] = (start, end)
        block = self._first.get(end)
        if start in self._last:
            # Behind what is reached from its start; what is reached from its end follows, if it came later so far.
            at = self._last[start] + 1
            if block is not None and block >= at:
                moved = self._edges[block : self._last[end] + 1]
                del self._edges[block : self._last[end] + 1]
                self._edges[at:at] = [edge, *moved]
            else:
                self._edges.insert(at, edge)
        elif block is None or self._is_entered(end, block):
            self._edges.append(edge)
        else:
            self._edges.insert(block, edge)
        self._label()

    def _is_entered(self, node: Hashable, block: int) -> bool:
        return block > 0 and self._ends[self._edges[block - 1]][1] == node

    def delete(self, edge: Token) -> None:
        at = self._edges.index(edge)
        _, end = self._ends[edge]
        orphans: list[Token] = []
        if self._first.get(end) == at + 1:
            orphans = self._edges[at + 1 : self._last[end] + 1]
        del self._edges[at : at + 1 + len(orphans)]
        del self._ends[edge]
        if orphans:
            self._adopt(orphans)
        self._label()

    def _adopt(self, orphans: list[Token]) -> None:
        """Puts edges where others lead to them; those that nothing leads to come last."""
        leaving: dict[Hashable, dict[Token, None]] = {}
        for orphan in orphans:
            leaving.setdefault(self._ends[orphan][0], {})[orphan] = None
        mended: dict[Token, None] = {}
        for edge in (*self._edges, *orphans):
            pending = [] if edge in mended else [edge]
            while pending:
                found = pending.pop()
                mended[found] = None
                start, end = self._ends[found]
                leaving.get(start, {}).pop(found, None)
                pending += reversed(leaving.pop(end, {}))
        self._edges = list(mended)

    def _label(self) -> None:
        """The labels of all nodes, in one pass over the vector."""
        self._first, self._last = {}, {}
        path: list[tuple[Hashable, int]] = []  # nodes, each with where an edge leads to it
        for at, edge in enumerate(self._edges):
            start, end = self._ends[edge]
            self._leave(path, start, at)
            if not path:
                path.append((start, at - 1))
            self._first.setdefault(start, at)
            if end not in self._first:
                self._last[end] = at
            path.append((end, at))
        self._leave(path, None, len(self._edges))

    def _leave(self, path: list[tuple[Hashable, int]], node: Hashable, at: int) -> None:
        """Goes back to a node on a path. The blocks of those behind it end before a position; some have none there."""
        while path and (node is None or path[-1][0] != node):
            left, entered = path.pop()
            if entered < at - 1:
                self._last[left] = at - 1
