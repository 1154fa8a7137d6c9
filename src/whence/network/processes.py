"""Nodes as the runtime sees them: states behind a port, the phases they go through together, and who starts these."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from whence.lang.types import Tuple, Value
from whence.network.strategy import NodeState, Shipped
from whence.runtime import Diffusion, Message, Port, Signal, Start
from whence.runtime.termination import Phase

if TYPE_CHECKING:
    from whence.network.network import Network

ROOT = "root!"  # where phases are started from, on the processor of the first node that an epoch begins at


class Around:
    """What the state of a node sees of the network."""

    def __init__(self, network: Network, place: Value) -> None:
        self.network = network
        self.compiled = network.compiled
        self.codec = network.codec
        self.place = place
        self.process: NodeProcess | None = None

    def tell(self, target: Value, message: Shipped) -> None:
        assert self.process is not None
        self.process.tell(target, message)

    def set_timer(self, after: float, name: Hashable) -> None:
        self.network.simulation.set_timer(self.place, after, name)

    def nodes(self) -> Iterable[Value]:
        return self.network.processes

    def changed(self, table: int, row: Tuple, is_there: bool) -> None:
        self.network.watch(self.place, table, row, is_there)


class NodeProcess:
    """A node's state on the network: messages are answered for, phases are passed on."""

    def __init__(self, network: Network, place: Value) -> None:
        self.network = network
        self.place = place
        around = Around(network, place)
        self.state: NodeState = network.strategy.node(around, network.ship)
        around.process = self
        self._bytes: tuple[int, int] | None = None
        self.reset()

    def settle(self) -> None:
        self.state.settle()
        self._bytes = None

    def state_bytes(self) -> tuple[int, int]:
        if self._bytes is None:
            self._bytes = self.state.state_bytes()
        return self._bytes

    def reset(self) -> None:
        self.diffusion = Diffusion(self.state.wish, self._signal)

    def _signal(self, target: Hashable, signal: Signal) -> None:
        self.network.simulation.send(self.place, target, signal)

    def tell(self, target: Value, message: Shipped) -> None:
        if self.state.detects(message.phase):
            self.diffusion.sent()
        self.network.make_sure_of(target, self.place)
        self.network.simulation.send(self.place, target, message)

    def on_message(self, sender: Hashable, message: Message, _port: Port) -> None:
        match message:
            case Signal():
                self.diffusion.answered(sender, message)
                self.diffusion.rest()
            case Start(phase=phase):
                self.begin(sender, phase)
            case _:
                self._take(sender, message)  # type: ignore[arg-type]

    def begin(self, sender: Hashable, phase: Phase) -> None:
        """A phase that somebody has started."""
        detects = self.state.detects(phase)
        if detects:
            self.diffusion.received(sender)
        for child in self.diffusion.children(phase):
            if detects:
                self.diffusion.sent()
            self.network.simulation.send(self.place, child, Start(phase))
        self.state.advance(phase)
        self.network.active[self.place] = None
        if detects:
            self.diffusion.rest()

    def _take(self, sender: Hashable, message: Shipped) -> None:
        detects = self.state.detects(message.phase)
        if detects:
            self.diffusion.received(sender)
        self.state.advance(message.phase)
        self.state.receive(sender, message)
        self.network.active[self.place] = None
        if detects:
            self.diffusion.rest()

    def on_timer(self, name: Hashable, _port: Port) -> None:
        self.state.on_timer(name)
        self.network.active[self.place] = None


class Joining:
    """A node that is back without anything it knew: what it hears before the others know makes no sense to it."""

    def on_message(self, sender: Hashable, message: Message, port: Port) -> None:
        pass

    def on_timer(self, name: Hashable, port: Port) -> None:
        pass


class Root:
    """Starts phases, and hears when they are over."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.deficit = 0
        self.phases = 0
        self.wishing: dict[Hashable, Phase] = {}

    def begin(self, phase: Phase, initiators: Iterable[Value]) -> None:
        """The first phase of an epoch: nodes learn of their updates by themselves, which costs nothing."""
        self.phases = 1
        started = list(initiators)
        self.deficit = len(started) if self._detects(phase) else 0
        for place in started:
            self.network.processes[place].begin(ROOT, phase)

    def _detects(self, phase: Phase) -> bool:
        return next(iter(self.network.processes.values())).state.detects(phase)

    def on_message(self, sender: Hashable, message: Message, _port: Port) -> None:
        assert isinstance(message, Signal)
        self.deficit -= 1
        if message.wish is not None:
            known = self.wishing.get(sender)
            self.wishing[sender] = message.wish if known is None else min(known, message.wish)
        if self.deficit == 0 and self.wishing:
            phase = min(self.wishing.values())
            ready = [place for place, wish in self.wishing.items() if wish <= phase]
            self.wishing = {place: wish for place, wish in self.wishing.items() if wish > phase}
            self.phases += 1
            self.deficit = len(ready) if self._detects(phase) else 0
            for place in ready:
                self.network.simulation.send(ROOT, place, Start(phase))

    def on_timer(self, name: Hashable, _port: Port) -> None:
        raise AssertionError(name)
