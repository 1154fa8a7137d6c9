"""What the experiments on fields share: programs, a flood to compare with, streams of tuples."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from random import Random

from whence import Update, load
from whence.lang.types import Value
from whence.runtime import Channel, Port, Simulation, Size, Wiring
from whence.runtime.process import Address, Message
from whence.sensors import Choices, Field, FieldError, Scheme, SensorNetwork

LOGIC_J = load("""
.decl link(x:number, @y:number) .input link
.decl H(x:number, @y:number, d:number)
.decl J(@y:number, d:number)
.decl P(@y:number, d:number)
.output H, J
H(0, 0, 0).
J(y, d) :- H(_, y, d).
P(y, d + 1) :- J(y, e), d + 1 > e, J(x, d), link(x, y).
H(x, y, d + 1) :- link(x, y), J(x, d), !P(y, d + 1).
""")
LOGIC_H = load("""
.decl link(x:number, @y:number) .input link
.decl H(x:number, @y:number, d:number)
.decl P(@y:number, d:number)
.output H
H(0, 0, 0).
P(y, d + 1) :- H(_, y, e), d + 1 > e, H(_, x, d), link(x, y).
H(x, y, d + 1) :- link(x, y), H(_, x, d), !P(y, d + 1).
""")
HOP = 0.01


def radio_field(nodes: int, seed: int) -> Field:
    """The field of the paper: 50 by 50, with a radius of 20; the first seed from here on whose nodes all connect."""
    while True:
        try:
            return Field.random(nodes, side=50, radius=20, seed=seed, named=int)
        except FieldError:
            seed += 1000


# -- the flood ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    hops: int

    def size(self) -> Size:
        return Size(data=1, control=3, tuples=1)


class Flooding:
    """The first message heard says how far away a node is; it is passed on once."""

    def __init__(self, neighbours: tuple[Value, ...]) -> None:
        self.neighbours = neighbours
        self.level: int | None = None

    def on_message(self, _sender: Address, message: Message, port: Port) -> None:
        assert isinstance(message, Level)
        if self.level is None:
            self.level = message.hops + 1
            port.broadcast(self.neighbours, Level(self.level))

    def on_timer(self, _name: Hashable, port: Port) -> None:
        self.level = 0
        port.broadcast(self.neighbours, Level(0))


def flood(field: Field, channel: Channel, seed: int) -> tuple[dict[Value, int | None], int]:
    """The levels of all nodes, and how many messages they took."""
    links = {(a, b): channel for a, heard in field.neighbours.items() for b in heard}
    simulation = Simulation(Wiring(channel, links, tuple(field.places), relays=False), seed=seed, reliable=False)
    nodes = {node: Flooding(field.neighbours[node]) for node in field.places}
    for node, process in nodes.items():
        simulation.add(node, process)
    simulation.set_timer(0, 0.0, "begin")
    simulation.run()
    return {node: process.level for node, process in nodes.items()}, simulation.figures.total.messages


def levels(scheme: str, field: Field, channel: Channel, seed: int) -> tuple[dict[Value, int | None], int]:
    """The same for a scheme: flood, logicJ or logicH, the programs with or without retransmission."""
    if scheme.startswith("flood"):
        return flood(field, channel, seed)
    program = LOGIC_H if scheme.startswith("logicH") else LOGIC_J
    network = SensorNetwork(program, field, channel=channel, seed=seed, reliable="retransmission" in scheme)
    network.apply(network.link_updates())
    best: dict[Value, int | None] = dict.fromkeys(field.places)
    for _, node, hops in network.relation("H"):
        known = best[node]
        best[node] = hops if known is None else min(known, hops)
    return best, network.messages


def wrong_levels(found: dict[Value, int | None], field: Field) -> float:
    """The share of nodes that do not know how far away they are."""
    truth = field.distances(0)
    return sum(found[node] != hops for node, hops in truth.items()) / len(truth)


# -- streams -----------------------------------------------------------------------------------------------------------

TWO = load(""".decl r(a:number) .input r .decl s(a:number) .input s .output t t(a, b) :- r(a), s(b), a + b = 1000.""")
THREE = load(
    """.decl r(a:number) .input r .decl s(a:number) .input s .decl q(a:number) .input q .output t
    t(a, b, c) :- r(a), s(b), a + b = 1000, q(c), b + c = 1000."""
)
# The same of what is at most so far apart, in hops of a grid.
NEAR = 3.0
TWO_NEAR = load(
    f""".decl r(x:number, y:number, a:number) .input r .decl s(x:number, y:number, a:number) .input s .output t
    t(x, y, a, b) :- r(x, y, a), s(u, v, b), a + b = 1000, dist(x, y, u, v) <= {NEAR}."""
)
THREE_NEAR = load(
    f""".decl r(x:number, y:number, a:number) .input r .decl s(x:number, y:number, a:number) .input s
    .decl q(x:number, y:number, a:number) .input q .output t
    t(x, y, a, b, c) :- r(x, y, a), s(u, v, b), a + b = 1000, dist(x, y, u, v) <= {NEAR}, q(m, n, c), b + c = 1000,
        dist(u, v, m, n) <= {NEAR}."""
)


def streams(field: Field, relations: str, seed: int) -> list[tuple[Value, Update]]:
    """Tuples sensed at random nodes, as many in each stream as there are nodes; few of them go together."""
    draw = Random(seed)
    made = []
    for name in relations:
        for row in draw.sample(range(1, 100_000), len(field.places)):
            made.append((draw.choice(field.nodes), Update("+", name, (row,), draw.uniform(0, 10))))
    for at, name in enumerate(relations):  # and some that do
        made.append((draw.choice(field.nodes), Update("+", name, (400 if at % 2 else 600,), draw.uniform(0, 10))))
    return made


def run_streams(side: int, scheme: Scheme, *, relations: str, seed: int, is_near: bool = False) -> SensorNetwork:
    field = Field.grid(side, side)
    two, three = (TWO_NEAR, THREE_NEAR) if is_near else (TWO, THREE)
    program = two if len(relations) == 2 else three
    network = SensorNetwork(program, field, choices=Choices(scheme=scheme), channel=Channel(latency=HOP), seed=seed)
    for node, update in streams(field, relations, seed):
        x, y = map(int, field.places[node])
        network.feed([update._replace(tuple=(x, y, *update.tuple)) if is_near else update], at=node)
    network.run()
    compared = network.compare()
    assert (compared.missed, compared.false) == (0, 0)
    return network


def least_messages(side: int) -> float:
    """No scheme needs fewer messages a tuple: two tuples that meet go, together, at least as far as their nodes are apart."""
    field = Field.grid(side, side)
    apart = sum(sum(field.distances(node).values()) for node in field.nodes[: side * side]) / len(field.nodes) ** 2
    return apart / 2
