"""One transmission that several hear: counted once, lost by each of them alone, answered for by each of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from whence.runtime import Channel, Port, Simulation, Size, Wiring
from whence.runtime.process import Address, Message


@dataclass(frozen=True)
class Word:
    bytes: int = 10

    def size(self) -> Size:
        return Size(data=self.bytes, tuples=1)


@dataclass
class Listener:
    heard: list[Address] = field(default_factory=list)

    def on_message(self, sender: Address, message: Message, port: Port) -> None:
        self.heard.append(sender)

    def on_timer(self, name: Hashable, port: Port) -> None:
        pass


def simulated(
    channel: Channel, *, reliable: bool = False, collide: bool = False
) -> tuple[Simulation, dict[str, Listener]]:
    links = {(a, b): channel for a in "abcd" for b in "abcd" if a != b}
    simulation = Simulation(Wiring(channel, links, collide=collide), seed=1, reliable=reliable)
    listeners = {name: Listener() for name in "abcd"}
    for name, listener in listeners.items():
        simulation.add(name, listener)
    return simulation, listeners


def test_a_broadcast_is_sent_once_and_heard_by_all() -> None:
    simulation, listeners = simulated(Channel())
    simulation.broadcast("a", ["b", "c", "d"], Word())
    simulation.run()
    assert simulation.figures.total.messages == 1
    assert [listeners[name].heard for name in "bcd"] == [["a"]] * 3
    assert simulation.figures.received == {"b": (1, 10), "c": (1, 10), "d": (1, 10)}


def test_each_loses_it_alone() -> None:
    simulation, listeners = simulated(Channel(loss=0.5))
    for _ in range(100):
        simulation.broadcast("a", ["b", "c"], Word())
    simulation.run()
    assert simulation.figures.total.messages == 100
    counts = [len(listeners[name].heard) for name in "bc"]
    assert all(30 < count < 70 for count in counts)
    assert simulation.figures.total.lost == 200 - sum(counts)


def test_each_answers_for_itself() -> None:
    simulation, listeners = simulated(Channel(loss=0.4), reliable=True)
    for _ in range(20):
        simulation.broadcast("a", ["b", "c"], Word())
    simulation.run()
    assert [len(listeners[name].heard) for name in "bc"] == [20, 20]
    assert simulation.figures.total.retransmitted > 0


def test_who_is_receiving_misses_what_begins_meanwhile() -> None:
    for collide in (False, True):
        simulation, listeners = simulated(Channel(bandwidth=1000), collide=collide)
        simulation.send("b", "a", Word())
        simulation.send("c", "a", Word())
        simulation.at(1.0, simulation.send, "d", "a", Word())
        simulation.run()
        assert listeners["a"].heard == (["b", "d"] if collide else ["b", "c", "d"])


def test_without_relays_only_neighbours_reach_each_other() -> None:
    links = {("a", "b"): Channel(), ("b", "c"): Channel()}
    assert Wiring(links=links).channel("a", "c") is not None
    apart = Wiring(links=links, relays=False)
    assert apart.channel("a", "c") is None
    assert apart.with_faults(loss=0.1).channel("a", "c") is None
    assert apart.channel("a", "b") == (Channel(), 1)
