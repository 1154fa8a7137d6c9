"""What runs on a node: something that reacts to messages and timers, and reaches the rest of the network through a port."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from whence.runtime.figures import Size

Address = Hashable


class Message(Protocol):
    """Anything with a size. Messages are handed over as they are; their size is that of their binary form."""

    def size(self) -> Size: ...


class Process(Protocol):
    """A node's program. Whatever it does it does at once, in the instant in which it is called."""

    def on_message(self, sender: Address, message: Message, port: Port) -> None: ...
    def on_timer(self, name: Hashable, port: Port) -> None: ...


class Port(Protocol):
    """A node's access to the network, its own clock and its timers."""

    @property
    def address(self) -> Address: ...
    def send(self, target: Address, message: Message) -> None: ...

    def broadcast(self, targets: Sequence[Address], message: Message) -> None:
        """Sends once what all of the targets hear."""
        ...

    def set_timer(self, after: float, name: Hashable) -> None:
        """Calls `on_timer` once this much time has passed by the node's own clock."""
        ...

    def clock(self) -> float:
        """The time by the node's own clock, in seconds."""
        ...
