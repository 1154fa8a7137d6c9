"""Reliable delivery: everything that is sent arrives once and in order, over channels that lose, repeat and reorder.

Each packet has a number, by pair of nodes. A receiver acknowledges what it has got without a gap; a sender repeats what is not
acknowledged in time, waiting twice as long each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from whence.runtime.figures import Size
from whence.runtime.process import Message
from whence.runtime.varints import varint_bytes


@dataclass(frozen=True, slots=True)
class Packet:
    """A message with its number. `lives` are how often sender and receiver had forgotten everything when it was sent."""

    number: int
    message: Message
    lives: tuple[int, int]

    def size(self) -> Size:
        size = self.message.size()
        return size._replace(control=size.control + varint_bytes(self.number))


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """All packets below `number` have arrived."""

    number: int
    lives: tuple[int, int]

    def size(self) -> Size:
        return Size(control=1 + varint_bytes(self.number))


@dataclass
class Outgoing:
    """One sender's side of a pair."""

    next: int = 0
    waiting: dict[int, Packet] = field(default_factory=dict)

    def take(self, message: Message, lives: tuple[int, int]) -> Packet:
        packet = Packet(self.next, message, lives)
        self.waiting[self.next] = packet
        self.next += 1
        return packet

    def acknowledge(self, number: int) -> None:
        for each in [each for each in self.waiting if each < number]:
            del self.waiting[each]


@dataclass
class Incoming:
    """One receiver's side of a pair."""

    expected: int = 0
    early: dict[int, Message] = field(default_factory=dict)

    def take(self, packet: Packet) -> list[Message]:
        """The messages that can be handed over now."""
        if packet.number >= self.expected:
            self.early[packet.number] = packet.message
        ready = []
        while self.expected in self.early:
            ready.append(self.early.pop(self.expected))
            self.expected += 1
        return ready
