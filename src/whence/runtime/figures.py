"""What running costs: messages, tuples and bytes, by node and in all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple


class Size(NamedTuple):
    """The bytes of a message: of tuples, of what says why they are there, and of everything else; and how many tuples it has."""

    data: int = 0
    provenance: int = 0
    control: int = 0
    tuples: int = 0

    @property
    def bytes(self) -> int:
        return self.data + self.provenance + self.control


@dataclass
class Traffic:
    """What was sent. `control` counts the messages without tuples, which `messages` includes; `lost` those that never arrived."""

    messages: int = 0
    control: int = 0
    tuples: int = 0
    data_bytes: int = 0
    provenance_bytes: int = 0
    control_bytes: int = 0
    retransmitted: int = 0
    lost: int = 0

    def add(self, size: Size) -> None:
        self.messages += 1
        self.control += size.tuples == 0
        self.tuples += size.tuples
        self.data_bytes += size.data
        self.provenance_bytes += size.provenance
        self.control_bytes += size.control

    @property
    def bytes(self) -> int:
        return self.data_bytes + self.provenance_bytes + self.control_bytes

    def as_json(self) -> dict[str, int]:
        return {
            "messages": self.messages,
            "control_messages": self.control,
            "tuples": self.tuples,
            "bytes": self.bytes,
            "data_bytes": self.data_bytes,
            "provenance_bytes": self.provenance_bytes,
            "control_bytes": self.control_bytes,
            "retransmitted": self.retransmitted,
            "lost": self.lost,
        }

    def since(self, before: Traffic) -> Traffic:
        return Traffic(*(getattr(self, name) - getattr(before, name) for name in self.__dataclass_fields__))

    def copy(self) -> Traffic:
        return Traffic(*(getattr(self, name) for name in self.__dataclass_fields__))


@dataclass
class Figures:
    """`total` is the traffic between processors, `by_node` the same by sender. `moments` are the bytes sent, with their times.

    `received` are the messages and bytes that reached a node, acknowledgements and repetitions included.
    """

    total: Traffic = field(default_factory=Traffic)
    by_node: dict[Hashable, Traffic] = field(default_factory=dict)
    received: dict[Hashable, tuple[int, int]] = field(default_factory=dict)
    moments: list[tuple[float, int]] = field(default_factory=list)

    def sent(self, time: float, sender: Hashable, size: Size) -> None:
        self.total.add(size)
        own = self.by_node.get(sender)
        if own is None:
            own = self.by_node[sender] = Traffic()
        own.add(size)
        self.moments.append((time, size.bytes))

    def heard(self, node: Hashable, size: int) -> None:
        messages, size_before = self.received.get(node, (0, 0))
        self.received[node] = (messages + 1, size_before + size)

    def lost(self, sender: Hashable) -> None:
        self.total.lost += 1
        self.by_node[sender].lost += 1

    def retransmitted(self, sender: Hashable) -> None:
        self.total.retransmitted += 1
        self.by_node[sender].retransmitted += 1
