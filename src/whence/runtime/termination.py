"""Termination detection after Dijkstra and Scholten: when has everything come to rest that one root set off?

The first message that reaches a node at rest engages it; its sender is the node's parent. Every other message is answered by a
signal at once, the engaging one when the node is at rest and all its own messages have been answered. So there is one signal a
message, and the root has all of its own when nothing is under way any more.

Signals carry a wish: the earliest phase in which somebody in that part of the tree has more to do. The next phase then starts
down the branches that wished for one, and nobody else hears of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from whence.runtime.figures import Size
from whence.runtime.process import Address
from whence.runtime.varints import varint_bytes

Phase = tuple[int, int, int]


def phase_bytes(phase: Phase) -> int:
    return sum(map(varint_bytes, phase))


@dataclass(frozen=True, slots=True)
class Signal:
    """One message is answered for. `wish` is the earliest phase that somebody below waits for."""

    wish: Phase | None = None

    def size(self) -> Size:
        return Size(control=1 + (0 if self.wish is None else phase_bytes(self.wish)))


@dataclass(frozen=True, slots=True)
class Start:
    """A phase begins."""

    phase: Phase

    def size(self) -> Size:
        return Size(control=1 + phase_bytes(self.phase))


@dataclass
class Diffusion:
    """A node's part in one computation after the other. `wish` says what the node itself waits for."""

    wish: Callable[[], Phase | None]
    signal: Callable[[Address, Signal], None]
    parent: Address | None = None
    is_engaged: bool = False
    deficit: int = 0
    wishing: dict[Address, Phase] = field(default_factory=dict)  # children that wait for another phase

    def sent(self) -> None:
        self.deficit += 1

    def received(self, sender: Address) -> None:
        """A message that has to be answered for."""
        if self.is_engaged:
            self.signal(sender, Signal())
        else:
            self.is_engaged, self.parent = True, sender

    def answered(self, sender: Address, signal: Signal) -> None:
        self.deficit -= 1
        if signal.wish is not None:
            known = self.wishing.get(sender)
            self.wishing[sender] = signal.wish if known is None else min(known, signal.wish)

    def rest(self) -> None:
        """The node has nothing to do; it is released if nothing that it sent is still open."""
        if self.is_engaged and self.deficit == 0:
            assert self.parent is not None
            self.is_engaged = False
            wishes = [each for each in (self.wish(), *self.wishing.values()) if each is not None]
            self.signal(self.parent, Signal(min(wishes, default=None)))

    def children(self, phase: Phase) -> list[Address]:
        """Who is to hear of a phase that begins; they are asked anew what they wait for after it."""
        ready = [child for child, wish in self.wishing.items() if wish <= phase]
        for child in ready:
            del self.wishing[child]
        return ready
