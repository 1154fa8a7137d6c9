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
    # By index, what each alternative does not read on one side, as bits: it feels changes of what has none of them.
    beyond: list[tuple[int, int]] = field(default_factory=list)


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
        if self.conditional:
            entry.beyond = [_beyond(each) for each in alternatives]
        return entry

    def _update(self, node: Node, entry: _Entry, reached: list[Touch], changed: dict[Node, int]) -> None:
        if not self.conditional:
            self._entries[node] = self._costed(node)
            return
        self.effort.nodes += 1
        alternatives = self.space.alternatives(node)
        own = self.space.own(node)
        before = entry.cost - entry.own
        winner, totals = entry.best, entry.totals
        every = any(not rows and expression == node[0] for expression, _, rows in reached)
        touched = {
            at
            for expression, _, _ in reached
            for at, (left, right) in enumerate(entry.beyond)
            if every or not expression & left or not expression & right
        }
        best = self._total(node, winner) if winner.number in touched else before
        if self.memo is not Memo.BEST:
            totals[winner.number] = best
        # What is not kept was no better than the best was: it can be better now only if it fell or the best rose.
        falls = any(each.log < 0 for each in reached) or any(each < 0 for each in changed.values())
        candidates: Iterable[int] = range(len(alternatives)) if best > before else sorted(touched)
        number = winner.number
        for at in candidates:
            if at == winner.number:
                continue
            known = totals.get(at)
            if known is None:
                if best <= before and not falls:
                    continue
                known = self._total(node, alternatives[at])
                if self.memo is Memo.NEAR and known <= NEAR * best:
                    totals[at] = known
            elif at in touched:
                known = totals[at] = self._total(node, alternatives[at])
            if known < best or (known == best and at < number):
                best, number = known, at
        entry.best = alternatives[number]
        entry.cost, entry.own = own + best, own


def _beyond(alternative: Alternative) -> tuple[int, int]:
    left, right = alternative.left, alternative.right
    return (0 if left is None else ~left[0]), (-1 if right is None else ~right[0])
