"""Discrete events: what happens on a network, in the order of time, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from whence.runtime.channels import Wiring
from whence.runtime.figures import Figures
from whence.runtime.process import Address, Message, Process
from whence.runtime.reliable import Acknowledgement, Incoming, Outgoing, Packet

_PATIENCE = 4.0  # a packet is repeated after so many times the latency, twice that the next time
_LONGEST_WAIT = 64


class Unreachable(Exception):
    """There is no way between two nodes, and there never was: the links do not connect them."""


class Delivery(NamedTuple):
    """A message that arrives, for those who watch."""

    sent: float
    arrived: float
    sender: Address
    target: Address
    message: Message


@dataclass
class _Clock:
    """A node's own clock: off by some seconds, and fast or slow by a share."""

    offset: float = 0.0
    drift: float = 0.0

    def read(self, time: float) -> float:
        return time * (1.0 + self.drift) + self.offset


@dataclass
class _Node:
    process: Process
    processor: Hashable
    clock: _Clock
    is_up: bool = True
    life: int = 0  # how often it has lost its state
    unheard: list[tuple[object, ...]] = field(default_factory=list)  # from the same processor, while it was down


class Simulation:
    """Nodes on a network. `reliable` puts reliable delivery between nodes and channels, by default if a channel needs it.

    Nodes on one processor hear each other at once and for free. A processor takes `handling` seconds for each message from
    another one, one after the other; nothing else that it does takes time. `skew` bounds how far clocks are off, in seconds, and
    `drift` by which share they are fast or slow. The same seed gives the same run, to the byte.
    """

    def __init__(
        self,
        wiring: Wiring | None = None,
        *,
        seed: int = 0,
        reliable: bool | None = None,
        skew: float = 0.0,
        drift: float = 0.0,
        handling: float = 0.0,
    ) -> None:
        self.wiring = wiring or Wiring()
        self.handling = handling
        self._busy: dict[Hashable, float] = {}  # until when processors have messages to handle
        self.reliable = not self.wiring.is_perfect if reliable is None else reliable
        self.skew, self.drift = skew, drift
        self.now = 0.0
        self.figures = Figures()
        self.events = 0
        self.last_activity = 0.0  # when a message was handed over or a timer rang
        self.watchers: list[Callable[[Delivery], None]] = []
        self._draw = Random(seed)  # noqa: S311 - repeatable, not secret
        self._queue: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._count = 0
        self._nodes: dict[Address, _Node] = {}
        self._outgoing: dict[tuple[Address, Address], Outgoing] = {}
        self._incoming: dict[tuple[Address, Address], Incoming] = {}
        self._sides: dict[Address, int] | None = None  # while the network is split

    # -- nodes

    def add(self, address: Address, process: Process, processor: Hashable = None) -> Port:
        """A node. What shares a `processor` talks for free; without one a node has its own."""
        clock = _Clock(self._draw.uniform(-self.skew, self.skew), self._draw.uniform(-self.drift, self.drift))
        self._nodes[address] = _Node(process, address if processor is None else processor, clock)
        return Port(self, address)

    def __contains__(self, address: Address) -> bool:
        return address in self._nodes

    def is_up(self, address: Address) -> bool:
        return self._nodes[address].is_up

    # -- time

    def at(self, time: float, action: Callable[..., None], *args: object) -> None:
        """Calls back at a time that is not over yet."""
        self._count += 1
        heappush(self._queue, (max(time, self.now), self._count, action, args))

    def step(self) -> bool:
        """The next event; whether there was one."""
        if not self._queue:
            return False
        self.now, _, action, args = heappop(self._queue)
        self.events += 1
        action(*args)
        return True

    def run(self, until: float | None = None) -> None:
        """Everything up to a time, or until nothing happens any more."""
        queue = self._queue
        while queue and (until is None or queue[0][0] <= until):
            self.now, _, action, args = heappop(queue)
            self.events += 1
            action(*args)
        if until is not None:
            self.now = max(self.now, until)

    # -- messages

    def send(self, sender: Address, target: Address, message: Message) -> None:
        source, sink = self._nodes[sender], self._nodes[target]
        if source.processor == sink.processor:
            # In the order of sending, in an event of its own: nobody is called while busy.
            self.at(self.now, self._hand_over, self.now, sender, target, message, sink.life)
        elif self.reliable:
            pair = (sender, target)
            lives = (source.life, sink.life)
            packet = self._outgoing.setdefault(pair, Outgoing()).take(message, lives)
            self._transmit(sender, target, packet)
            self._expect_acknowledgement(sender, target, packet, 1)
        else:
            self._transmit(sender, target, message)

    def broadcast(self, sender: Address, targets: Sequence[Address], message: Message) -> None:
        """Sends a message once, which all of the targets hear. Delivery that is reliable answers for each of them by itself."""
        for number, target in enumerate(targets):
            if self.reliable:
                lives = (self._nodes[sender].life, self._nodes[target].life)
                packet = self._outgoing.setdefault((sender, target), Outgoing()).take(message, lives)
                self._transmit(sender, target, packet, is_counted=number == 0)
                self._expect_acknowledgement(sender, target, packet, 1)
            else:
                self._transmit(sender, target, message, is_counted=number == 0)

    def _transmit(self, sender: Address, target: Address, message: Message, *, is_counted: bool = True) -> None:
        size = message.size()
        if is_counted:
            self.figures.sent(self.now, sender, size)
        source, sink = self._nodes[sender].processor, self._nodes[target].processor
        arrivals = self.wiring.arrivals(source, sink, size.bytes, self.now, self._draw)
        if arrivals is None:
            raise Unreachable(f"there is no way from {sender} to {target}")
        if not arrivals:
            self.figures.lost(sender)
        for arrival in arrivals:
            self.at(
                arrival, self._wait_for_its_turn if self.handling else self._arrive, self.now, sender, target, message
            )

    def _wait_for_its_turn(self, sent: float, sender: Address, target: Address, message: Message) -> None:
        processor = self._nodes[target].processor
        done = self._busy[processor] = max(self.now, self._busy.get(processor, 0.0)) + self.handling
        self.at(done, self._arrive, sent, sender, target, message)

    def _arrive(self, sent: float, sender: Address, target: Address, message: Message) -> None:
        sides = self._sides
        if not self._nodes[target].is_up or (sides is not None and sides.get(sender, 0) != sides.get(target, 0)):
            self.figures.lost(sender)
            return
        self.figures.heard(target, message.size().bytes)
        match message:
            case Packet(number=_, lives=lives):
                if lives != (self._nodes[sender].life, self._nodes[target].life):
                    return  # from before one of them forgot everything
                incoming = self._incoming.setdefault((sender, target), Incoming())
                ready = incoming.take(message)
                self._transmit(target, sender, Acknowledgement(incoming.expected, lives))
                for each in ready:
                    self._hand_over(sent, sender, target, each, lives[1])
            case Acknowledgement(number=number, lives=lives):
                if lives == (self._nodes[target].life, self._nodes[sender].life):
                    self._outgoing[target, sender].acknowledge(number)
            case _:
                self._hand_over(sent, sender, target, message, self._nodes[target].life)

    def _hand_over(self, sent: float, sender: Address, target: Address, message: Message, life: int) -> None:
        node = self._nodes[target]
        if node.life != life:
            return
        if not node.is_up:
            node.unheard.append((sent, sender, target, message, life))
            return
        self.last_activity = self.now
        for watch in self.watchers:
            watch(Delivery(sent, self.now, sender, target, message))
        node.process.on_message(sender, message, Port(self, target))

    def _expect_acknowledgement(self, sender: Address, target: Address, packet: Packet, times: int) -> None:
        found = self.wiring.channel(self._nodes[sender].processor, self._nodes[target].processor)
        assert found is not None
        channel = found[0]
        wait = _PATIENCE * (channel.latency + channel.jitter) * times + 1e-6
        if channel.bandwidth is not None:
            wait += 2 * packet.size().bytes / channel.bandwidth
        self.at(self.now + wait, self._repeat, sender, target, packet, times)

    def _repeat(self, sender: Address, target: Address, packet: Packet, times: int) -> None:
        pair = self._outgoing.get((sender, target))
        if pair is None or pair.waiting.get(packet.number) is not packet:
            return
        if self._nodes[sender].is_up:
            self.figures.retransmitted(sender)
            self._transmit(sender, target, packet)
        self._expect_acknowledgement(sender, target, packet, min(2 * times, _LONGEST_WAIT))

    # -- timers and clocks

    def set_timer(self, address: Address, after: float, name: Hashable) -> None:
        node = self._nodes[address]
        self.at(self.now + after / (1.0 + node.clock.drift), self._ring, address, name, node.life)

    def _ring(self, address: Address, name: Hashable, life: int) -> None:
        node = self._nodes[address]
        if node.is_up and node.life == life:
            self.last_activity = self.now
            node.process.on_timer(name, Port(self, address))

    def clock(self, address: Address) -> float:
        return self._nodes[address].clock.read(self.now)

    # -- faults

    def crash(self, address: Address) -> None:
        """The node stops: it hears nothing and does nothing until it is restarted."""
        self._nodes[address].is_up = False

    def restart(self, address: Address, process: Process | None = None) -> None:
        """The node is back: as it was, or, given a new process, without anything it knew.

        Who forgot everything also forgot what was sent and received, so both sides of all its channels begin again.
        """
        node = self._nodes[address]
        node.is_up = True
        unheard, node.unheard = node.unheard, []
        if process is None:
            for each in unheard:
                self.at(self.now, self._hand_over, *each)
            return
        node.process = process
        node.life += 1
        # Packets that wait for an acknowledgement are not in the new books, so they are not repeated either.
        self._outgoing = {pair: books for pair, books in self._outgoing.items() if address not in pair}
        self._incoming = {pair: books for pair, books in self._incoming.items() if address not in pair}

    def split(self, sides: Iterable[Iterable[Address]]) -> None:
        """Cuts the network: only nodes of the same side reach each other. Nodes that are not named are on the first side."""
        self._sides = {address: number for number, side in enumerate(sides) for address in side}

    def heal(self) -> None:
        self._sides = None


class Port:
    """A node's access to the simulation."""

    __slots__ = ("_simulation", "address")

    def __init__(self, simulation: Simulation, address: Address) -> None:
        self._simulation = simulation
        self.address = address

    def send(self, target: Address, message: Message) -> None:
        self._simulation.send(self.address, target, message)

    def broadcast(self, targets: Sequence[Address], message: Message) -> None:
        self._simulation.broadcast(self.address, targets, message)

    def set_timer(self, after: float, name: Hashable) -> None:
        self._simulation.set_timer(self.address, after, name)

    def clock(self) -> float:
        return self._simulation.clock(self.address)
