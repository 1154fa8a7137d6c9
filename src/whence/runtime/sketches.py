"""Counts and sums that do not mind hearing the same twice: sketches that spread over all ways instead of one tree.

Each register of a sketch keeps the least of `-ln(u) / weight` over all items, with a `u` that only depends on the item and the
register. The least of several such numbers is distributed as one of their total weight, so that `(m - 1) / sum` of m registers
estimates the total, with a standard error of `1 / sqrt(m - 2)`: 12.7 % with 64 of them. Taking the least of two sketches is the
sketch of both, whatever they have in common. A tree loses all below a message that is lost; here others have heard it too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import exp, log, sqrt

from whence.lang.types import Value
from whence.runtime import Channel, Port, Simulation, Size, Wiring
from whence.runtime.process import Address, Message
from whence.topology.field import Field

REGISTERS = 64
_BYTES = 2  # of a register
_STEPS = 1000  # a register is its logarithm in so many steps: rounded to 0.1 %, far below the error
_EMPTY = 2**15 - 1


@dataclass(frozen=True, slots=True)
class Sketch:
    """The total weight of a set of items.

    >>> one, other = Sketch.of({"a": 1, "b": 1}), Sketch.of({"b": 1, "c": 1})
    >>> one.merged(other) == Sketch.of({"a": 1, "b": 1, "c": 1})
    True
    """

    least: tuple[int, ...]  # logarithms

    @classmethod
    def of(cls, items: Mapping[Hashable, float], registers: int = REGISTERS) -> Sketch:
        """The sketch of items with their weights, which are positive."""
        least = [_EMPTY] * registers
        for item, weight in items.items():
            lighter = log(weight)
            for at, drawn in enumerate(_drawn(item, registers)):
                least[at] = min(least[at], max(round(_STEPS * (drawn - lighter)), -_EMPTY))
        return cls(tuple(least))

    def merged(self, other: Sketch) -> Sketch:
        return Sketch(tuple(map(min, self.least, other.least)))

    @property
    def estimate(self) -> float:
        """The total weight, about."""
        if _EMPTY in self.least:
            return 0.0
        return (len(self.least) - 1) / sum(exp(each / _STEPS) for each in self.least)

    @property
    def standard_error(self) -> float:
        """As a share of the total."""
        return standard_error(len(self.least))

    @property
    def bytes(self) -> int:
        return _BYTES * len(self.least)


def standard_error(registers: int) -> float:
    """How far an estimate is off, as a share of the total: two of three are closer."""
    return 1 / sqrt(registers - 2)


@lru_cache(maxsize=50_000)
def _drawn(item: Hashable, registers: int) -> tuple[float, ...]:
    """For each register the logarithm of `-ln(u)`: the same whoever asks."""
    return tuple(log(-log(_uniform(item, at))) for at in range(registers))


def _uniform(item: Hashable, register: int) -> float:
    digest = blake2b(f"{register}\0{item!r}".encode(errors="surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest) + 1) / (2**64 + 2)


@dataclass(frozen=True, slots=True)
class Told:
    """What is known further out: a sketch, or the exact total of a subtree."""

    sketch: Sketch | None
    total: float

    def size(self) -> Size:
        return Size(data=4 if self.sketch is None else self.sketch.bytes, control=2, tuples=1)


class _Collector:
    """A node that adds what it hears from further out to what it has, and passes it on when its ring has its turn."""

    def __init__(self, level: int, items: Mapping[Hashable, float], inwards: list[Value], *, is_sketch: bool) -> None:
        self.level = level
        self.sketch = Sketch.of(items) if is_sketch else None
        self.total = sum(items.values())
        self.inwards = inwards

    def on_message(self, sender: Address, message: Message, port: Port) -> None:  # noqa: ARG002
        assert isinstance(message, Told)
        if self.sketch is not None and message.sketch is not None:
            self.sketch = self.sketch.merged(message.sketch)
        self.total += message.total

    def on_timer(self, name: Hashable, port: Port) -> None:  # noqa: ARG002
        if self.inwards:
            port.broadcast(self.inwards, Told(self.sketch, 0.0 if self.sketch is not None else self.total))


@dataclass(frozen=True)
class Collected:
    """What a sink made of a field, and what there was."""

    found: float
    truth: float
    messages: int
    bytes: int

    @property
    def error(self) -> float:
        return abs(self.found - self.truth) / self.truth


def collect(
    field: Field,
    items: Mapping[Value, Mapping[Hashable, float]],
    *,
    is_sketch: bool,
    loss: float = 0.0,
    seed: int = 0,
) -> Collected:
    """Adds up the weights of all items at the centre: over all ways with sketches, or along a tree. One message a node."""
    level = field.distances(field.centre)
    channel = Channel(latency=0.01, loss=loss)
    links: dict[tuple[Hashable, Hashable], Channel] = {
        (a, b): channel for a, heard in field.neighbours.items() for b in heard
    }
    simulation = Simulation(Wiring(channel, links, tuple(field.places), relays=False), seed=seed, reliable=False)
    rings = max(level.values())
    collectors: dict[Value, _Collector] = {}
    for node, hops in level.items():
        nearer = [other for other in field.neighbours[node] if level[other] == hops - 1]
        collectors[node] = _Collector(
            hops, items.get(node, {}), nearer if is_sketch else nearer[:1], is_sketch=is_sketch
        )
        simulation.add(node, collectors[node])
        simulation.set_timer(node, (rings - hops) * 2 * channel.latency, "turn")
    simulation.run()
    sink = collectors[field.centre]
    truth = sum({item: weight for own in items.values() for item, weight in own.items()}.values())
    found = sink.sketch.estimate if sink.sketch is not None else sink.total
    total = simulation.figures.total
    return Collected(found, truth, total.messages, total.bytes)
