"""Messages, timers and faults on a simulated network."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import pytest

from whence.runtime import Channel, Message, Port, Proxy, Simulation, Size, Wiring


@dataclass(frozen=True)
class Text:
    text: str

    def size(self) -> Size:
        return Size(data=len(self.text), tuples=1)


@dataclass
class Listener:
    """Remembers what it hears, and when."""

    heard: list[tuple[str, float]] = field(default_factory=list)
    rung: list[float] = field(default_factory=list)

    def on_message(self, _sender: Hashable, message: Message, port: Port) -> None:
        assert isinstance(message, Text)
        self.heard.append((message.text, round(port.clock(), 6)))

    def on_timer(self, _name: Hashable, port: Port) -> None:
        self.rung.append(round(port.clock(), 6))


def pair(channel: Channel, **settings: object) -> tuple[Simulation, Port, Listener]:
    simulation = Simulation(Wiring(channel), **settings)  # type: ignore[arg-type]
    listener = Listener()
    port = simulation.add("a", Listener())
    simulation.add("b", listener)
    return simulation, port, listener


def test_latency_and_bandwidth_add_up_and_messages_queue() -> None:
    simulation, port, listener = pair(Channel(latency=0.01, bandwidth=1000))
    port.send("b", Text("x" * 10))
    port.send("b", Text("y" * 10))
    simulation.run()
    assert [time for _, time in listener.heard] == [0.02, 0.03]
    assert simulation.figures.total.bytes == 20


def test_a_processor_handles_one_message_after_the_other() -> None:
    simulation, port, listener = pair(Channel(latency=0.01), handling=0.005)
    port.send("b", Text("x"))
    port.send("b", Text("y"))
    simulation.run()
    assert [time for _, time in listener.heard] == [0.015, 0.02]


def texts(channel: Channel, **settings: object) -> tuple[list[str], Simulation]:
    simulation, port, listener = pair(channel, **settings)
    for number in range(50):
        port.send("b", Text(str(number)))
    simulation.run()
    return [text for text, _ in listener.heard], simulation


SENT = [str(number) for number in range(50)]
ROUGH = Channel(latency=0.01, jitter=0.05, loss=0.3, duplication=0.2, fifo=False)


def test_channels_lose_repeat_and_reorder() -> None:
    heard, _ = texts(ROUGH, reliable=False)
    assert heard != SENT
    assert len(set(heard)) < 50 < len(heard) + 25
    assert heard != sorted(heard, key=int)
    assert texts(Channel(jitter=0.05), reliable=False)[0] == SENT


def test_reliable_delivery_is_once_and_in_order_and_costs() -> None:
    heard, simulation = texts(ROUGH)
    assert heard == SENT
    total = simulation.figures.total
    assert total.retransmitted > 0
    assert total.control > 50  # each packet that arrives is acknowledged


def test_the_same_seed_is_the_same_run() -> None:
    assert texts(ROUGH, seed=3)[1].figures == texts(ROUGH, seed=3)[1].figures
    assert texts(ROUGH, seed=3)[1].figures != texts(ROUGH, seed=4)[1].figures


def test_one_processor_talks_to_itself_for_free() -> None:
    simulation = Simulation()
    listener = Listener()
    port = simulation.add("a", Listener(), "host")
    simulation.add("b", listener, "host")
    port.send("b", Text("hello"))
    simulation.run()
    assert listener.heard == [("hello", 0.0)]
    assert simulation.figures.total.messages == 0


def test_messages_take_the_quickest_way_over_links() -> None:
    wiring = Wiring.of([("a", "b", 0.01), ("b", "c", 0.01), ("a", "c", 0.05)])
    found = wiring.channel("a", "c")
    assert found is not None
    assert (round(found[0].latency, 6), found[1]) == (0.02, 2)


def test_a_node_that_crashed_hears_nothing_until_it_is_back() -> None:
    simulation, port, listener = pair(Channel(latency=0.01), reliable=True)
    simulation.crash("b")
    port.send("b", Text("hello"))
    simulation.at(1.0, simulation.restart, "b")
    simulation.run()
    assert [text for text, _ in listener.heard] == ["hello"]
    assert listener.heard[0][1] >= 1.0


def test_who_forgot_everything_is_sent_nothing_from_before() -> None:
    simulation, port, listener = pair(Channel(latency=0.01), reliable=True)
    port.send("b", Text("before"))
    simulation.at(0.001, simulation.crash, "b")
    again = Listener()
    simulation.at(0.5, simulation.restart, "b", again)
    simulation.at(0.6, port.send, "b", Text("after"))
    simulation.run()
    assert listener.heard == []
    assert [text for text, _ in again.heard] == ["after"]


def test_partitions_heal() -> None:
    simulation, port, listener = pair(Channel(latency=0.01), reliable=True)
    simulation.split([["a"], ["b"]])
    port.send("b", Text("hello"))
    simulation.at(2.0, simulation.heal)
    simulation.run()
    assert listener.heard[0][1] >= 2.0


def test_clocks_are_off_within_bounds_and_timers_follow_them() -> None:
    simulation = Simulation(seed=5, skew=0.5, drift=0.1)
    ports = [simulation.add(name, Listener()) for name in range(20)]
    offsets = [port.clock() for port in ports]
    assert max(offsets) - min(offsets) > 0.2
    assert all(abs(offset) <= 0.5 for offset in offsets)
    listener = Listener()
    port = simulation.add("x", listener)
    began = port.clock()
    port.set_timer(10.0, "ring")
    simulation.run()
    assert listener.rung == [pytest.approx(began + 10.0, abs=1e-5)]


def test_a_proxy_polls_and_is_told() -> None:
    simulation = Simulation()
    changes: list[tuple[Hashable, int | None, int]] = []
    proxy: Proxy[int] = Proxy(
        {"lamp": lambda now: int(now >= 2.5)},
        lambda device, was, now, _: changes.append((device, was, now)),
        period=1.0,
    )
    port = simulation.add("proxy", proxy)
    proxy.start(port)
    simulation.run(until=5.0)
    proxy.told("door", 1, port)
    assert changes == [("lamp", None, 0), ("lamp", 0, 1), ("door", None, 1)]
