"""System R's way: every node after those it reads, level by level; after a change, level by level through what it reaches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from whence.optimizer.best_first import Effort
from whence.optimizer.memo import NEAR, Memo, only_own, reaching
from whence.optimizer.plans import Plan, plan_of
from whence.optimizer.space import Alternative, Node, Space, Touch


@dataclass
class _Entry:
    cost: int
    own: int
    best: Alternative
    totals: dict[int, int] = field(default_factory=dict)  # of the alternatives kept, without `own`, by index


class BottomUp:
    """`conditional`: after a change only those alternatives are costed again that can be the best now."""

    def __init__(self, space: Space, *, memo: Memo = Memo.ALL, conditional: bool = True) -> None:
        self.space = space
        self.memo = memo
        self.conditional = conditional
        self.effort = Effort()
        self._entries: dict[Node, _Entry] = {}
        for node in space.nodes():
            self._entries[node] = self._costed(node)

    @property
    def cost(self) -> int:
        return self._entries[self.space.root].cost

    def plan(self) -> Plan:
        return plan_of(self.space.root, lambda node: (self._entries[node].cost, self._entries[node].best))

    def kept(self) -> int:
        """How many costs are kept: one for each node, and those of alternatives."""
        return len(self._entries) + sum(len(each.totals) for each in self._entries.values())

    def update(self, touches: Iterable[Touch]) -> None:
        """Takes in changes of the space, which have been made already."""
        listed = list(touches)
        self.effort = Effort()
        changed: dict[Node, int] = {}  # by how much what nodes cost has changed
        for node, entry in self._entries.items():
            reached = reaching(listed, node[0])
            if not reached:
                continue
            before = entry.cost
            if only_own(reached, node):
                self.effort.nodes += 1
                own = self.space.own(node)
                entry.cost += own - entry.own
                entry.own = own
            else:
                self._update(node, entry, reached, changed)
            after = self._entries[node].cost
            if after != before:
                changed[node] = after - before

    def _total(self, node: Node, alternative: Alternative) -> int:
        self.effort.alternatives += 1
        total = self.space.local(node, alternative)
        if alternative.left is not None:
            total += self._entries[alternative.left].cost
        if alternative.right is not None:
            total += self._entries[alternative.right].cost
        return total

    def _costed(self, node: Node) -> _Entry:
        self.effort.nodes += 1
        alternatives = self.space.alternatives(node)
        totals = [self._total(node, each) for each in alternatives]
        least = min(totals)
        own = self.space.own(node)
        entry = _Entry(own + least, own, alternatives[totals.index(least)])
        if self.memo is Memo.ALL:
            entry.totals = dict(enumerate(totals))
        elif self.memo is Memo.NEAR:
            entry.totals = {at: total for at, total in enumerate(totals) if total <= NEAR * least}
        return entry

    def _update(self, node: Node, entry: _Entry, reached: list[Touch], changed: dict[Node, int]) -> None:
        alternatives = self.space.alternatives(node)
        if not self.conditional:
            self._entries[node] = self._costed(node)
            return
        self.effort.nodes += 1
        own = self.space.own(node)
        before = entry.cost - entry.own
        winner, totals = entry.best, entry.totals
        affected = [_affected(node, each, reached, changed) for each in alternatives]
        best = self._total(node, winner) if affected[winner.number] else before
        if self.memo is not Memo.BEST:
            totals[winner.number] = best
        # What is not kept was no better than the best was: it can be better now only if it fell or the best rose.
        falls = any(each.log < 0 for each in reached) or any(each < 0 for each in changed.values())
        number = winner.number
        for each, touched in zip(alternatives, affected, strict=True):
            if each is winner:
                continue
            known = totals.get(each.number)
            if touched and known is not None:
                known = totals[each.number] = self._total(node, each)
            elif known is None:
                if best <= before and not (touched and falls):
                    continue
                known = self._total(node, each)
                if self.memo is Memo.NEAR and known <= NEAR * best:
                    totals[each.number] = known
            if known < best or (known == best and each.number < number):
                best, number = known, each.number
        entry.best = alternatives[number]
        entry.cost, entry.own = own + best, own


def _affected(node: Node, alternative: Alternative, reached: list[Touch], changed: dict[Node, int]) -> bool:
    _, _, _, left, right = alternative
    if left is None:
        return True
    if left in changed or (right is not None and right in changed):
        return True
    for expression, _, rows in reached:
        if not rows:
            if expression == node[0]:
                return True
        elif expression & ~left[0] == 0 or (right is not None and expression & ~right[0] == 0):
            return True
    return False
