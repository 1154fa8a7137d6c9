"""Programs and random runs on fields, with what the reference makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from whence import Program, load
from whence.io.changes import Update
from whence.reference import evaluate
from whence.runtime import Channel
from whence.sensors import Choices, Field, Scheme, SensorNetwork

BASE = """
.decl r1(a:number, b:number) .input r1
.decl r2(a:number, b:number) .input r2
.decl r3(a:number, b:number) .input r3
.decl s(a:number) .input s
.decl veh(x:number, y:number, kind:symbol, t:number) .input veh
"""
PROGRAMS = {
    "a negation": ".output t t(x, z) :- r1(x, y), r2(y, z), !s(z).",
    "three streams": ".output t t(x, w) :- r1(x, y), r2(y, z), r3(z, w), x != w.",
    "no condition": ".output t t(x, w) :- r1(x, 1), r2(2, w), !s(x), !s(w).",
    "with itself": ".output t, u t(x, z) :- r1(x, y), r1(y, z). u(x) :- r1(x, x), !r1(_, x).",
    "layers": ".output v t(x, z) :- r1(x, y), r2(y, z), !s(z). u(z) :- t(_, z), r3(z, _). v(x) :- r3(x, y), !u(y), !s(x).",
    "a computed negation": ".output t t(x, y) :- r1(x, y), !s(x + y), r2(y, _).",
    "uncovered": '.output u cov(x, y, t) :- veh(x, y, "e", t), veh(u, v, "f", t), dist(x, y, u, v) <= 1.5. '
    'u(x, y, t) :- veh(x, y, "e", t), !cov(x, y, t).',
    "growing lists": ".output p p([x, y], y) :- r1(x, y), x < y. p(append(l, z), z) :- p(l, y), r1(y, z), y < z.",
    "ends of lists": ".output p, e p([x, y], y) :- r1(x, y), x < y, !s(x). p(append(l, z), z) :- p(l, y), r1(y, z), y < z. "
    "n(x) :- r1(x, y), x < y. e(l) :- p(l, y), !n(y).",
    "aggregates": ".output n, m, k n(c) :- c = count : { r1(_, _) }. m(x, t) :- r1(x, _), t = max y : { r1(x, y) }. "
    "k(x, c) :- s(x), c = count : { r2(x, _) }. ",
    "aggregates above": ".output w t(x, z) :- r1(x, y), r2(y, z). n(x, c) :- t(x, _), c = count : { t(x, _) }. "
    "w(x) :- n(x, c), c > 1, !s(x).",
}
RELATIONS = {"r1": 2, "r2": 2, "r3": 2, "s": 1}


@dataclass
class Run:
    """A field, its channels and clocks, and updates with their times."""

    program: Program
    field: Field
    updates: list[Update]
    channel: Channel
    skew: float
    seed: int
    choices: Choices = field(default_factory=Choices)

    def network(self, **more: object) -> SensorNetwork:
        settings = {
            "choices": self.choices,
            "channel": self.channel,
            "skew": self.skew,
            "seed": self.seed,
        }
        return SensorNetwork(self.program, self.field, **(settings | more))

    def truth(self) -> dict[str, set]:
        base: dict[str, dict] = {name: {} for name in self.program.base_relations}
        for update in sorted(self.updates, key=lambda each: each.time):
            if update.op == "+":
                base[update.relation][update.tuple] = None
            else:
                base[update.relation].pop(update.tuple, None)
        return evaluate(self.program, base)


def wrong(network: SensorNetwork, truth: dict[str, set]) -> dict[str, tuple[set, set]]:
    """What is missing and what should not be there, by relation."""
    views = network.views()
    found = {name: (truth[name] - views[name], views[name] - truth[name]) for name in views}
    return {name: each for name, each in found.items() if any(each)}


def drawn_field(draw: Random) -> Field:
    if draw.random() < 0.6:
        return Field.grid(draw.randint(2, 5), draw.randint(2, 5))
    while True:
        try:
            return Field.random(draw.randint(5, 22), side=5, radius=2.2, seed=draw.randrange(10**6))
        except ValueError:
            continue


def drawn_updates(draw: Random, program: Program, field_: Field, count: int, spread: float) -> list[Update]:
    """Insertions and deletions, most of them at nearly the same time."""
    used = [name for name in (*RELATIONS, "veh") if any(name in str(rule.body) for rule in program.rules)]
    low, high = ((min(axis), max(axis)) for axis in zip(*field_.places.values(), strict=True))
    x_range, y_range = (low[0], low[1]), (high[0], high[1])
    there: list[tuple[str, tuple]] = []
    updates = []
    times = sorted(round(draw.uniform(0, spread), draw.choice((1, 6))) for _ in range(count))
    for time in times:
        if there and draw.random() < 0.35:
            name, row = there.pop(draw.randrange(len(there)))
            updates.append(Update("-", name, row, time))
            continue
        for _ in range(20):  # a row that is new, if there is one: small fields have few places
            name = draw.choice(used)
            if name == "veh":
                row = (_whole(draw, x_range), _whole(draw, y_range), draw.choice("ef"), draw.randint(1, 2))
            else:
                row = tuple(draw.randint(0, 4) for _ in range(RELATIONS[name]))
            if (name, row) not in there:
                break
        if (name, row) not in there:
            there.append((name, row))
        updates.append(Update("+", name, row, time))
    return updates


def _whole(draw: Random, between: tuple[float, float]) -> int:
    low, high = int(-(-between[0] // 1)), int(between[1] // 1)
    return draw.randint(low, max(low, high))


def drawn_run(seed: int, name: str | None = None) -> Run:
    draw = Random(seed)
    chosen = name or draw.choice(list(PROGRAMS))
    program = load(BASE + PROGRAMS[chosen])
    field_ = drawn_field(draw)
    jitter = draw.choice((0.0, 0.05, 0.2))
    channel = Channel(latency=0.05, jitter=jitter, fifo=draw.random() < 0.5)
    updates = drawn_updates(draw, program, field_, draw.randint(40, 60), draw.choice((0.0, 1.0, 8.0)))
    scheme = draw.choice(
        (
            Scheme.AUTO,
            Scheme.AUTO,
            Scheme.PERPENDICULAR,
            Scheme.PERPENDICULAR,
            Scheme.BROADCAST,
            Scheme.LOCAL,
            Scheme.CENTRAL,
        )
    )
    return Run(
        program,
        field_,
        updates,
        channel,
        draw.choice((0.0, 0.3, 3.0)),
        seed,
        Choices(scheme=scheme, several_passes=draw.choice((None, True, False))),
    )
