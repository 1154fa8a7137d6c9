"""The optimizer: the views of `rules.dl`, kept as far as the cheapest plan needs them.

For each OR node there is a lower bound of what it costs, and a heap of *ways*, the alternatives that read the same nodes, by
lower bounds of theirs. The bound is *exact* once the cheapest way is known. Invariant, after every call: no bound is above the
cost, by the statistics of the node's version; an exact bound is the cost; and the root is exact. So the plan is the cheapest by
the model, at first and after every change, with the smallest index among several.

A change reaches the nodes whose expression contains what changed. They find out when somebody asks for them: where costs can
only have risen, what was known is a lower bound still; where they may have fallen, the bound falls by as much as costs can fall.
Of a node, only those ways are moved that read what changed: one that splits it costs what it did. Nodes that the plan does not
use stay as they are until their bound says that they might matter: that is how pruning is undone.
The cost of an update follows the nodes whose bounds come close to the best plan, not the size of the graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
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


class _Way:
    """Alternatives of a node that read the same: the cheapest of them is the one that costs least by itself."""

    __slots__ = ("alternatives", "best", "beyond_left", "beyond_right", "left", "local", "right", "version")

    def __init__(self, alternatives: list[Alternative], left: _Or | None, right: _Or | None) -> None:
        self.alternatives = alternatives
        self.best = alternatives[0]
        self.left = left
        self.right = right
        # What is not read on one side, as bits: changes of what has none of them are felt. A scan feels all of its table's.
        self.beyond_left = 0 if left is None else ~left.node[0]
        self.beyond_right = -1 if right is None else ~right.node[0]
        self.local = 0
        self.version = -2  # never worked out


_Heap = list[tuple[int, int, _Way]]  # what a way costs at least, without `own`, and the number of its best alternative


class _Or:
    __slots__ = ("best", "bound", "chosen", "exact", "heap", "node", "own", "seen", "version")

    def __init__(self, node: Node, own: int, bound: int, version: int) -> None:
        self.node = node
        self.own = own
        self.bound = bound
        self.version = version
        self.exact = False
        self.best: _Way | None = None
        self.chosen: Alternative | None = None
        self.heap: _Heap | None = None
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

    def __init__(self, space: Space, prunings: Prunings = Prunings(), *, ahead: float = 0.0) -> None:  # noqa: B008 - immutable
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
        self._look_ahead(int(ahead * self.cost))

    # -- what is known

    @property
    def cost(self) -> int:
        return self._root.bound

    def plan(self) -> Plan:
        return self._plan(self._root)

    def _plan(self, node: _Or) -> Plan:
        chosen = node.chosen
        assert chosen is not None
        inputs = tuple(self._plan(self._nodes[each]) for each in (chosen.left, chosen.right) if each is not None)
        return Plan(node.node, chosen, node.bound, inputs)

    def kept(self) -> tuple[set[Node], set[tuple[Node, int]]]:
        """The nodes and alternatives that are kept up to date; all others are pruned."""
        if self.prunings.suppression and self.prunings.references:
            steps = list(self.plan().walk())
            return {each.node for each in steps}, {(each.node, each.alternative.number) for each in steps}
        nodes = [each for each in self._nodes.values() if each.exact]
        if not self.prunings.suppression:
            return {each.node for each in nodes}, {
                (each.node, alternative.number)
                for each in nodes
                for _, _, way in each.heap or ()
                for alternative in way.alternatives
            }
        return {each.node for each in nodes}, {
            (each.node, each.chosen.number) for each in nodes if each.chosen is not None
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
        for each in self._nodes.values():
            self._refreshed(each)
        best = {node: each.bound for node, each in self._nodes.items()}
        found: dict[Node, int] = {self._root.node: self.cost}
        readers: dict[Node, list[int]] = {}
        for each in sorted(self._nodes.values(), key=_height, reverse=True):
            if each is not self._root:
                found[each.node] = min(each.bound, max(readers.get(each.node, [-1])))
            for _, _, way in each.heap or ():
                room = found[each.node] - each.own - self.space.least(each.node, way.alternatives)[0]
                left, right = way.left, way.right
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
        self._refreshed(found)
        return found.bound, found.exact

    def considered(self, node: Node) -> list[tuple[int, Alternative]]:
        """The alternatives of a node, the best first, with what they cost at least: those after it need not be looked into."""
        found = self._nodes[node]
        listed = [
            (found.own + total - way.local + self.space.local(node, each), each)
            for total, _, way in found.heap or ()
            for each in way.alternatives
        ]
        return sorted(listed, key=lambda each: (each[0], each[1].number))

    def enumerated(self) -> Effort:
        """How many nodes and alternatives have been looked at since the beginning."""
        heaps = [each.heap for each in self._nodes.values() if each.heap is not None]
        return Effort(len(heaps), sum(len(way.alternatives) for heap in heaps for _, _, way in heap))

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

    def _chosen(self) -> list[Alternative]:
        found, waiting = [], [self._root]
        while waiting:
            node = waiting.pop()
            best, chosen = node.best, node.chosen
            assert best is not None
            assert chosen is not None
            found.append(chosen)
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

    def _look_ahead(self, more: int) -> None:
        """Looks into what would matter if parts of the plan cost this much more: the first change has less to find then."""
        waiting = [self._root] if more else []
        while waiting:
            node = waiting.pop()
            heap, best = node.heap, node.best
            assert heap is not None
            assert best is not None
            upto = node.bound - node.own + more
            for at, (total, number, way) in enumerate(heap):
                if way is not best and total <= upto:
                    heap[at] = (self._refine(node, way, upto)[0], number, way)
            heapify(heap)
            waiting += [each for each in (best.left, best.right) if each is not None]

    def _node(self, node: Node) -> _Or:
        found = self._nodes.get(node)
        if found is None:
            space = self.space
            found = self._nodes[node] = _Or(node, space.own(node), space.floor(node), self.version)
        return found

    def _refreshed(self, node: _Or) -> None:
        if node.version != self.version:
            self._refresh(node)

    def _refresh(self, node: _Or) -> None:
        """Brings the bound of a node to this version, whatever has become of the nodes that it reads."""
        expression = node.node[0]
        missed = self.version - node.version
        node.version = self.version
        if missed == 1:
            reached = [each for each in self._touches[-1] if each[0] & ~expression == 0]
        elif missed <= FORGOTTEN:
            last = list(self._touches)[-missed:]
            reached = [each for touches in last for each in touches if each[0] & ~expression == 0]
        else:
            self._forget(node)
            return
        if not reached:
            return
        before, own = node.own, self.space.own(node.node)
        node.own = own
        affected = node.exact and node.best is not None and _affects(reached, expression, node.best)
        fallen = [each for each in reached if each[1] < 0]
        if not fallen:
            node.bound += own - before
            node.exact = node.exact and not affected
            return
        plain = not node.node[1] and expression & (expression - 1)
        if plain and node.exact and not affected and len(reached) == 1 and reached[0][0] == expression:
            node.bound += own - before  # all alternatives have as many more rows to hand on, and none reads them
            return
        share, without = 1.0, 0
        for changed, log, _ in fallen:
            share *= least_share(log)
            if not changed & (changed - 1):
                without |= changed
        leaves = self.space.floor_of_leaves(node.node, without)
        heap = node.heap
        if heap is None:
            least = int(leaves + share * (node.bound - before - leaves)) - SLACK
            node.bound = max(self.space.floor(node.node), own + least)
        else:
            for at, (total, number, way) in enumerate(heap):
                if _affects(fallen, expression, way):
                    heap[at] = (int(leaves + share * (total - leaves)) - SLACK, number, way)
            heapify(heap)
            node.exact = node.exact and not affected and heap[0][2] is node.best
            node.bound = own + heap[0][0]

    def _forget(self, node: _Or) -> None:
        node.own, node.bound = self.space.own(node.node), self.space.floor(node.node)
        node.exact = False
        if node.heap is not None:
            node.heap = [(0, number, way) for _, number, way in node.heap]
            heapify(node.heap)

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
        heap = node.heap
        if heap is None:
            heap = node.heap = self._ways(node)
        count = len(heap)
        bounding = self._bounding
        room = limit - node.own if bounding else INFINITE
        while True:
            total, number, way = heap[0]
            if total > room:
                node.bound = max(node.bound, node.own + total)
                return
            # Up to where it is followed: what the next one costs at least, or a little more.
            upto = room
            if bounding and count > 1:
                second = heap[1][0]
                if count > 2 and heap[2][0] < second:
                    second = heap[2][0]
                eager = total + (total >> EAGER)
                second = max(second, eager)
                if second < room:
                    upto = second
            found, exact = self._refine(node, way, upto)
            if found != total or way.best.number != number:
                heapreplace(heap, (found, way.best.number, way))
            if exact and heap[0][2] is way:
                break
        if not self.prunings.suppression:
            for at, (_, _, other) in enumerate(heap):
                heap[at] = (self._refine(node, other, INFINITE)[0], other.best.number, other)
            heapify(heap)
        node.bound = node.own + heap[0][0]
        node.best = heap[0][2]
        if node.chosen is not node.best.best:
            node.chosen = node.best.best
            self._moved = True
        node.exact = True

    def _ways(self, node: _Or) -> _Heap:
        grouped: dict[tuple[Node | None, Node | None], list[Alternative]] = {}
        for each in self.space.alternatives(node.node):
            left, right = each.left, each.right
            if left is not None and right is not None and right < left:
                left, right = right, left
            grouped.setdefault((left, right), []).append(each)
        heap = []
        for (left, right), alternatives in grouped.items():
            way = _Way(
                alternatives,
                None if left is None else self._node(left),
                None if right is None else self._node(right),
            )
            heap.append((self._at_least(node, way), way.best.number, way))
        heapify(heap)
        return heap

    def _at_least(self, node: _Or, way: _Way) -> int:
        """What a way costs at least, by the bounds of what it reads."""
        version = self.version
        if way.version != version:
            if way.version < version - 1 or _affects(self._touches[-1], node.node[0], way):
                way.local, way.best = self.space.least(node.node, way.alternatives)
                self.effort.alternatives += len(way.alternatives)
            way.version = version
        total = way.local
        left, right = way.left, way.right
        if left is not None:
            if left.version != version:
                self._refresh(left)
            total += left.bound
            if right is not None:
                if right.version != version:
                    self._refresh(right)
                total += right.bound
        return total

    def _refine(self, node: _Or, way: _Way, limit: int) -> tuple[int, bool]:
        """What a way costs at least, and whether that is what it costs. It is, unless it is above the limit."""
        total = self._at_least(node, way)
        left, right = way.left, way.right
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


def _affects(touches: Iterable[Touch], expression: int, way: _Way) -> bool:
    """Whether one of the changes can be felt by what a way to an expression costs, but for what all of them cost alike."""
    for changed, _, rows in touches:
        if not changed & way.beyond_left or not changed & way.beyond_right or (changed == expression and not rows):
            return True
    return False


def _height(node: _Or) -> tuple[int, bool, bool, int]:
    """Readers have a greater one than what they read: more relations, or a sort, or a shipment of the same."""
    wanted = node.node[1]
    return node.node[0].bit_count(), wanted & 0xFF > 0, wanted >> 32 > 0, -(wanted >> 24 & 1)
