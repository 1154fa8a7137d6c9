"""The optimizer: the views of `rules.dl`, kept as far as the cheapest plan needs them.

For each OR node there is a lower bound of what it costs, and a heap of its alternatives by lower bounds of theirs. The bound is
*exact* once the cheapest alternative is known. Invariant, after every call: no bound is above the cost, by the statistics of
the node's version; an exact bound is the cost; and the root is exact. So the plan is the cheapest by the model, at first and
after every change, with the smallest index among several.

A change reaches the nodes whose expression contains what changed. They find out when somebody asks for them: where costs can
only have risen, what was known is a lower bound still; where they may have fallen, the bound falls by as much as costs can fall.
Nodes that the plan does not use stay as they are until their bound says that they might matter: that is how pruning is undone.
The cost of an update follows the nodes whose bounds come close to the best plan, not the size of the graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

from whence.optimizer.cost import least_share
from whence.optimizer.plans import Plan
from whence.optimizer.space import Alternative, Node, Space, Touch

INFINITE = 1 << 62
EAGER = (
    3  # an alternative is followed up to an eighth above what the next one costs at least: less going back and forth
)
SLACK = 64  # rounding to whole units, once for each operator
FORGOTTEN = 64  # changes that a node may be behind before all that it knows is its floor


@dataclass(frozen=True)
class Prunings:
    """Which ways of pruning are on. Each makes less work; none makes another plan.

    `suppression`: an alternative that cannot be the best of its node is not costed any further, at first and after changes.
    `references`: a node that no chosen alternative reads is not kept up to date.
    `bounding`: a node is only looked at as long as it can be cheaper than what its readers have without it.
    Aggregate selection, that readers see only the best of a node, is always on: without it every plan would be a row.
    """

    suppression: bool = True
    references: bool = True
    bounding: bool = True


@dataclass
class Effort:
    """How many nodes were looked at and how many alternatives costed, by one call."""

    nodes: int = 0
    alternatives: int = 0


class _And:
    __slots__ = ("alternative", "left", "local", "right", "version")

    def __init__(self, alternative: Alternative, left: _Or | None, right: _Or | None) -> None:
        self.alternative = alternative
        self.left = left
        self.right = right
        self.local = 0
        self.version = -1


class _Or:
    __slots__ = ("best", "bound", "exact", "heap", "node", "own", "seen", "version")

    def __init__(self, node: Node, own: int, bound: int, version: int) -> None:
        self.node = node
        self.own = own
        self.bound = bound
        self.version = version
        self.exact = False
        self.best: _And | None = None
        self.heap: list[tuple[int, int, _And]] | None = None
        self.seen = -1  # the version it was last worked on


class Optimizer:
    """Finds the cheapest plan of a space, and finds it again when costs have changed.

    >>> from whence.optimizer.given import GivenSpace
    >>> c, o, l = 1, 2, 4  # the example of docs/optimizer.md, in hundredths
    >>> space = GivenSpace(c | o | l, {c: 4, o: 19, l: 35}, {3: [(c, o)], 6: [(o, l)], 7: [(c, 6), (l, 3)]},
    ...                    {(3, (c, o)): 7, (6, (o, l)): 24, (7, (c, 6)): 18, (7, (l, 3)): 36})
    >>> optimizer = Optimizer(space)
    >>> optimizer.plan().cost
    100
    >>> optimizer.update([space.set_cost(7, (l, 3), 30)])
    True
    >>> optimizer.plan().cost
    95
    """

    def __init__(self, space: Space, prunings: Prunings = Prunings()) -> None:  # noqa: B008 - immutable
        self.space = space
        self.prunings = prunings
        self._bounding = prunings.bounding
        self.version = 0
        self._touches: deque[list[Touch]] = deque(maxlen=FORGOTTEN)  # those that made the last versions
        self._nodes: dict[Node, _Or] = {}
        self.effort = Effort()
        self._root = self._node(space.root)
        self._moved = False  # whether the best alternative of some node is another one
        self._bring_up_to_date()
        self._choice = self._chosen()

    # -- what is known

    @property
    def cost(self) -> int:
        return self._root.bound

    def plan(self) -> Plan:
        return self._plan(self._root)

    def _plan(self, node: _Or) -> Plan:
        best = node.best
        assert best is not None
        inputs = tuple(self._plan(each) for each in (best.left, best.right) if each is not None)
        return Plan(node.node, best.alternative, node.bound, inputs)

    def kept(self) -> tuple[set[Node], set[tuple[Node, int]]]:
        """The nodes and alternatives that are kept up to date; all others are pruned."""
        if self.prunings.suppression and self.prunings.references:
            steps = list(self.plan().walk())
            return {each.node for each in steps}, {(each.node, each.alternative.number) for each in steps}
        nodes = [each for each in self._nodes.values() if each.exact]
        if not self.prunings.suppression:
            return {each.node for each in nodes}, {(each.node, at) for each in nodes for _, at, _ in each.heap or ()}
        return {each.node for each in nodes}, {
            (each.node, each.best.alternative.number) for each in nodes if each.best is not None
        }

    def references(self) -> dict[Node, int]:
        """For each node that was ever looked at, how many chosen alternatives of live nodes read it."""
        found = dict.fromkeys(self._nodes, 0)
        for step in {each.node: each for each in self.plan().walk()}.values():
            for each in step.inputs:
                found[each.node] += 1
        return found

    def bounds(self) -> dict[Node, int]:
        """Up to which cost each enumerated node could be of use: rules r0 to r4, by what is known of siblings."""
        best = {node: each.bound for node, each in self._nodes.items()}
        found: dict[Node, int] = {self._root.node: self.cost}
        readers: dict[Node, list[int]] = {}
        for each in sorted(self._nodes.values(), key=_height, reverse=True):
            self._refresh(each)
            if each is not self._root:
                found[each.node] = min(each.bound, max(readers.get(each.node, [-1])))
            for _, _, step in each.heap or ():
                room = found[each.node] - each.own - self.space.local(each.node, step.alternative)
                left, right = step.left, step.right
                if left is not None:
                    readers.setdefault(left.node, []).append(room - (0 if right is None else best[right.node]))
                if left is not None and right is not None:
                    readers.setdefault(right.node, []).append(room - best[left.node])
        return found

    def known(self, node: Node) -> tuple[int, bool] | None:
        """The lower bound of a node and whether it is its cost; None for one that was never looked at."""
        found = self._nodes.get(node)
        if found is None:
            return None
        self._refresh(found)
        return found.bound, found.exact

    def considered(self, node: Node) -> list[tuple[int, Alternative]]:
        """The alternatives of a node, the best first, with what they cost at least: those after it need not be looked into."""
        found = self._nodes[node]
        return [
            (found.own + total, step.alternative)
            for total, _, step in sorted(found.heap or (), key=lambda each: each[:2])
        ]

    def enumerated(self) -> Effort:
        """How many nodes and alternatives have been looked at since the beginning."""
        heaps = [each.heap for each in self._nodes.values() if each.heap is not None]
        return Effort(len(heaps), sum(map(len, heaps)))

    # -- what changes

    def update(self, touches: Iterable[Touch]) -> bool:
        """Takes in changes of the space, which have been made already. Says whether the plan is another one."""
        self.version += 1
        self._touches.append([each for each in touches if each.log])
        self.effort = Effort()
        self._moved = False
        self._bring_up_to_date()
        if not self._moved:
            return False
        before, self._choice = self._choice, self._chosen()
        return self._choice != before

    def _chosen(self) -> list[_And]:
        found, waiting = [], [self._root]
        while waiting:
            best = waiting.pop().best
            assert best is not None
            found.append(best)
            if best.left is not None:
                waiting.append(best.left)
            if best.right is not None:
                waiting.append(best.right)
        return found

    def _bring_up_to_date(self) -> None:
        self._settle(self._root, INFINITE)
        if not self.prunings.references:
            for each in list(self._nodes.values()):
                if each.heap is not None:
                    self._settle(each, INFINITE)

    def _node(self, node: Node) -> _Or:
        found = self._nodes.get(node)
        if found is None:
            space = self.space
            found = self._nodes[node] = _Or(node, space.own(node), space.floor(node), self.version)
        return found

    def _refresh(self, node: _Or) -> None:
        """Brings the bound of a node to this version, whatever has become of the nodes that it reads."""
        if node.version == self.version:
            return
        expression, wanted = node.node
        plain = not wanted and expression & (expression - 1)
        reached = risen = fallen = False
        share, without = 1.0, 0
        behind = self._since(node.version)
        node.version = self.version
        for touches in behind or ():
            for changed, log, rows in touches:
                if changed & ~expression == 0:
                    reached = True
                    if rows and changed == expression and plain:
                        continue  # all alternatives have as many more rows to hand on, and none reads them
                    risen = True
                    if log < 0:
                        fallen = True
                        share *= least_share(log)
                        if not changed & (changed - 1):
                            without |= changed
        if behind is None:
            reached, fallen, share, without = True, True, 0.0, expression
        if reached:
            self._reach(node, risen, share if fallen else None, without)

    def _since(self, version: int) -> Sequence[list[Touch]] | None:
        """The touches that made the versions after this one, or None if some are forgotten."""
        missed = self.version - version
        if missed == 1:
            return (self._touches[-1],)
        return None if missed > FORGOTTEN else list(self._touches)[-missed:]

    def _reach(self, node: _Or, risen: bool, share: float | None, without: int) -> None:
        """`share` is what is left at least of costs that fell, but for the leaves, of which some may be `without`."""
        space = self.space
        own = space.own(node.node)
        if share is not None:
            leaves = space.floor_of_leaves(node.node, without)
            kept = int(leaves + share * (node.bound - node.own - leaves)) - SLACK
            node.bound = max(space.floor(node.node), own + kept)
            node.exact = False
            if node.heap is not None:
                node.heap = [
                    (int(leaves + share * (total - leaves)) - SLACK, number, step) for total, number, step in node.heap
                ]
                heapify(node.heap)
        else:
            node.bound += own - node.own
            node.exact = node.exact and not risen
        node.own = own

    # -- the search

    def _settle(self, node: _Or, limit: int) -> None:
        """Afterwards the node is exact, or its bound is above the limit."""
        if node.version != self.version:
            self._refresh(node)
        if node.exact or node.bound > limit:
            return
        if node.seen != self.version:
            node.seen = self.version
            self.effort.nodes += 1
        heap = self._heap(node)
        count = len(heap)
        bounding = self._bounding
        room = limit - node.own if bounding else INFINITE
        while True:
            total, number, step = heap[0]
            if total > room:
                node.bound = max(node.bound, node.own + total)
                return
            runner_up = _runner_up(heap, room) if bounding and count > 1 else room
            found, exact = self._refine(node, step, runner_up)
            if found != total:
                heapreplace(heap, (found, number, step))
            if exact and heap[0][2] is step:
                break
        if not self.prunings.suppression:
            for at, (_, each, other) in enumerate(heap):
                heap[at] = (self._refine(node, other, INFINITE)[0], each, other)
            heapify(heap)
        node.bound = node.own + heap[0][0]
        if node.best is not heap[0][2]:
            node.best = heap[0][2]
            self._moved = True
        node.exact = True

    def _heap(self, node: _Or) -> list[tuple[int, int, _And]]:
        heap = node.heap
        if heap is None:
            heap = node.heap = []
            for alternative in self.space.alternatives(node.node):
                left = None if alternative.left is None else self._node(alternative.left)
                right = None if alternative.right is None else self._node(alternative.right)
                step = _And(alternative, left, right)
                heap.append((self._at_least(node, step), alternative.number, step))
            heapify(heap)
        return heap

    def _at_least(self, node: _Or, step: _And) -> int:
        """What an alternative costs at least, by the bounds of what it reads."""
        if step.version != self.version:
            step.local = self.space.local(node.node, step.alternative)
            step.version = self.version
            self.effort.alternatives += 1
        total = step.local
        left, right = step.left, step.right
        if left is not None:
            if left.version != self.version:
                self._refresh(left)
            total += left.bound
            if right is not None:
                if right.version != self.version:
                    self._refresh(right)
                total += right.bound
        return total

    def _refine(self, node: _Or, step: _And, limit: int) -> tuple[int, bool]:
        """What an alternative costs at least, and whether that is what it costs. It is, unless it is above the limit."""
        total = self._at_least(node, step)
        left, right = step.left, step.right
        if left is None:
            return total, True
        if total > limit:
            return total, left.exact and (right is None or right.exact)
        if not left.exact:
            total -= left.bound
            self._settle(left, limit - total if self._bounding else INFINITE)
            total += left.bound
            if not left.exact:
                return total, False
        if right is None:
            return total, True
        if not right.exact and total <= limit:
            total -= right.bound
            self._settle(right, limit - total if self._bounding else INFINITE)
            total += right.bound
        return total, right.exact


def _height(node: _Or) -> tuple[int, bool, int]:
    """Readers have a greater one than what they read: more relations, or a sort, or a shipment of the same."""
    return node.node[0].bit_count(), node.node[1] & 0xFF > 0, -(node.node[1] >> 24)


def _runner_up(heap: list[tuple[int, int, _And]], room: int) -> int:
    """Up to which cost the first of the heap is followed: what the next one costs at least, or a little more."""
    total, second = heap[0][0], heap[1][0]
    if len(heap) > 2 and heap[2][0] < second:
        second = heap[2][0]
    return min(room, max(second, total + (total >> EAGER)))
