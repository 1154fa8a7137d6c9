"""A node that stands for devices that run nothing: it asks them now and then, or is told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from whence.runtime.process import Address, Message, Port

State = TypeVar("State")


class Proxy(Generic[State]):
    """Asks each device for its state every `period` seconds by its own clock, and passes on what has changed.

    `poll` asks a device at a time; `changed` gets the device, what it was (None at first) and what it is. A device that speaks
    up itself, or is overheard, is reported with `told`. Messages go to `on_message`, if there is one.
    """

    def __init__(
        self,
        devices: Mapping[Hashable, Callable[[float], State]],
        changed: Callable[[Hashable, State | None, State, Port], None],
        *,
        period: float,
        on_message: Callable[[Address, Message, Port], None] | None = None,
    ) -> None:
        self.devices = devices
        self.changed = changed
        self.period = period
        self.known: dict[Hashable, State] = {}
        self._on_message = on_message

    def start(self, port: Port) -> None:
        self.on_timer("poll", port)

    def on_timer(self, name: Hashable, port: Port) -> None:
        for device, poll in self.devices.items():
            self.told(device, poll(port.clock()), port)
        port.set_timer(self.period, name)

    def told(self, device: Hashable, state: State, port: Port) -> None:
        before = self.known.get(device)
        if device not in self.known or before != state:
            self.known[device] = state
            self.changed(device, before, state, port)

    def on_message(self, sender: Address, message: Message, port: Port) -> None:
        if self._on_message is not None:
            self._on_message(sender, message, port)
