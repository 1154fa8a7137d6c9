"""What a radio takes: a stated model, of a mote with a radio for 250 kbit/s at 3 V and two AA batteries.

A byte takes 32 us on the air: 1.67 uJ to send it (17.4 mA) and 1.80 uJ to receive it (18.8 mA); a frame has 11 bytes
besides what is in it. Listening, 1 % of the time, takes 0.56 mW. What a node computes is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from whence.lang.types import Value
from whence.runtime.figures import Figures, Traffic


@dataclass(frozen=True)
class Radio:
    """Joules a byte, bytes a frame, watts, and the joules of a battery."""

    send: float = 1.67e-6
    receive: float = 1.80e-6
    frame: int = 11
    listen: float = 0.56e-3
    battery: float = 27_000.0

    def spent(self, sent: Traffic, received: tuple[int, int]) -> float:
        """On messages; listening comes on top."""
        messages, size = received
        return self.send * (sent.bytes + self.frame * sent.messages) + self.receive * (size + self.frame * messages)


@dataclass(frozen=True)
class Energy:
    """What every node spent on messages, in joules, in so many seconds."""

    radio: Radio
    by_node: dict[Value, float]
    seconds: float

    @property
    def total(self) -> float:
        return sum(self.by_node.values())

    @property
    def hottest(self) -> tuple[Value, float]:
        node = max(self.by_node, key=lambda each: self.by_node[each])
        return node, self.by_node[node]

    def lifetime(self, rounds_a_second: float) -> float:
        """Seconds until the first battery is empty, if what was run here is repeated at this rate."""
        return self.radio.battery / (self.radio.listen + self.hottest[1] * rounds_a_second)


def energy_of(figures: Figures, nodes: Iterable[Value], radio: Radio, seconds: float) -> Energy:
    spent = {
        node: radio.spent(figures.by_node.get(node, Traffic()), figures.received.get(node, (0, 0))) for node in nodes
    }
    return Energy(radio, spent, seconds)
