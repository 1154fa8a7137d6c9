"""A toy network: nodes that exchange supports over channels with random delays, and the barriers between steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from random import Random

from whence import Changes, Update
from whence.node import Node, Support
from whence.prepared import Prepared

# To which nodes a support goes, given the node that has the tuple.
Route = Callable[[int, Support], Iterable[int]]


class ToyNetwork:
    def __init__(self, prepared: Sequence[Prepared], route: Route, random: Random) -> None:
        self.nodes = [Node(each) for each in prepared]
        self.route = route
        self.random = random
        self.channels: dict[tuple[int, int], deque[Support]] = {}
        self.sent = self.barriers = 0

    def epoch(self, updates: Sequence[Sequence[Update]]) -> list[Changes]:
        """One epoch, given the updates of each node."""
        for node, own in zip(self.nodes, updates, strict=True):
            node.begin(own)
        while self.nodes[0].stratum is not None:
            assert len({node.stratum for node in self.nodes}) == 1
            self._stratum()
            for node in self.nodes:
                node.close()
        return [node.finish() for node in self.nodes]

    def _stratum(self) -> None:
        while True:
            self._take_away()
            if not self._put_back():
                return

    def _take_away(self) -> None:
        """Until no withdrawal is on its way: a node that has been told of one takes away what followed."""
        due = set(range(len(self.nodes)))
        while due or self.channels:
            if due and (not self.channels or self.random.random() < 0.5):
                at = self.random.choice(sorted(due))
                due.remove(at)
                self._send(at, self.nodes[at].take_away())
            else:
                due.add(self._deliver())

    def _put_back(self) -> bool:
        """Until there is nothing to do, or something was withdrawn: then it goes on from the beginning."""
        while self.channels or any(node.is_pending for node in self.nodes):
            pending = [at for at, node in enumerate(self.nodes) if node.is_pending]
            if pending and (not self.channels or self.random.random() < 0.5):
                at = self.random.choice(pending)
                supports = self.nodes[at].put_back()
                self._send(at, supports)
                if any(each.rank is None for each in supports):
                    self.barriers += 1
                    return True
            else:
                self._deliver()
        return False

    def _send(self, sender: int, supports: Iterable[Support]) -> None:
        for support in supports:
            for receiver in self.route(sender, support):
                self.channels.setdefault((sender, receiver), deque()).append(support)
                self.sent += 1

    def _deliver(self) -> int:
        """The next few supports of some channel; to whom they went."""
        sender, receiver = channel = self.random.choice(sorted(self.channels))
        waiting = self.channels[channel]
        few = [waiting.popleft() for _ in range(self.random.randint(1, len(waiting)))]
        if not waiting:
            del self.channels[channel]
        self.nodes[receiver].receive(sender, few)
        if self.random.random() < 0.1:
            self.nodes[receiver].receive(sender, few[-1:])  # once more
        return receiver
