"""Volcano's way: from the root down, with what is known already and a limit beyond which nothing is looked at any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from whence.optimizer.best_first import INFINITE, Effort
from whence.optimizer.memo import NEAR, Memo, only_own, reaching
from whence.optimizer.plans import Plan, plan_of
from whence.optimizer.space import Alternative, Node, Space, Touch


@dataclass(slots=True)
class _Entry:
    """`bound` is what the node costs if `exact`, and otherwise a cost that is too low for it."""

    own: int
    bound: int
    exact: bool = False
    best: Alternative | None = None
    at_least: dict[int, int] = field(default_factory=dict)  # of alternatives kept, without `own`, by index


class TopDown:
    """`conditional`: after a change, alternatives are skipped that were dearer before and cannot have become cheaper."""

    def __init__(self, space: Space, *, memo: Memo = Memo.ALL, conditional: bool = True) -> None:
        self.space = space
        self.memo = memo
        self.conditional = conditional
        self.effort = Effort()
        self._entries: dict[Node, _Entry] = {}
        self._search(space.root, INFINITE)

    @property
    def cost(self) -> int:
        return self._entries[self.space.root].bound

    def plan(self) -> Plan:
        return plan_of(self.space.root, self._best)

    def _best(self, node: Node) -> tuple[int, Alternative]:
        entry = self._entries[node]
        assert entry.best is not None
        return entry.bound, entry.best

    def looked_at(self) -> tuple[int, int]:
        """How many nodes were searched, and how many of those turned out too dear."""
        return len(self._entries), sum(not each.exact for each in self._entries.values())

    def update(self, touches: Iterable[Touch]) -> None:
        """Takes in changes of the space, which have been made already."""
        listed = list(touches)
        self.effort = Effort()
        for node, entry in self._entries.items():
            reached = reaching(listed, node[0])
            if not reached:
                continue
            own = self.space.own(node)
            if only_own(reached, node):
                entry.bound += own - entry.own
            elif any(each.log < 0 for each in reached):
                entry.bound, entry.exact = 0, False
                entry.at_least.clear()
            else:
                entry.bound += own - entry.own
                entry.exact = False
            entry.own = own
        self._search(self.space.root, INFINITE)

    def _search(self, node: Node, limit: int) -> int | None:
        """What the node costs, or None if that is more than the limit."""
        entry = self._entries.get(node)
        if entry is None:
            entry = self._entries[node] = _Entry(self.space.own(node), 0)
        if entry.exact or entry.bound > limit:
            return entry.bound if entry.exact and entry.bound <= limit else None
        self.effort.nodes += 1
        best: Alternative | None = None
        room = limit - entry.own
        known = entry.at_least if self.conditional else {}
        first = entry.best
        if first is not None:  # what was best before gives a limit that little will pass
            total = self._cost(node, first, room)
            if total is not None:
                best, room = first, total
        for each in self.space.alternatives(node):
            if each is first or known.get(each.number, 0) > room:
                continue
            # Of two that cost the same, the one with the smaller index is chosen.
            wanted = room if best is None or each.number < best.number else room - 1
            total = self._cost(node, each, wanted)
            if total is not None:
                best, room = each, total
            elif self.memo is Memo.ALL or (self.memo is Memo.NEAR and wanted <= NEAR * room):
                entry.at_least[each.number] = wanted + 1
        if best is None:
            entry.bound = max(entry.bound, limit + 1)
            return None
        entry.best = best
        entry.exact = True
        if self.memo is not Memo.BEST:
            entry.at_least[best.number] = room
        entry.bound = entry.own + room
        return entry.bound

    def _cost(self, node: Node, alternative: Alternative, limit: int) -> int | None:
        self.effort.alternatives += 1
        total = self.space.local(node, alternative)
        for each in (alternative.left, alternative.right):
            if total > limit:
                return None
            if each is not None:
                found = self._search(each, limit - total)
                if found is None:
                    return None
                total += found
        return total if total <= limit else None
