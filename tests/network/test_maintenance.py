"""Views of all nodes together are those of one evaluation, whatever the network does to messages and nodes."""

from __future__ import annotations

import os
import random
import warnings
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.network.placed import PlacedRun, placed_runs
from tests.properties.counting import count_sequence

from whence import ProgramError, load
from whence.io.changes import Update
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.network import Network
from whence.reference import evaluate
from whence.runtime import Channel, Wiring

LIMITS = Limits(max_rounds=200, max_tuples=20_000)
# `make test-long` asks for more.
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))

BASE = """
.decl link(@x:number, y:number) .input link
.decl road(@x:number, y:number, c:number) .input road
.decl node(@x:number) .input node
.decl known(x:number) everywhere .input known
"""
PROGRAMS = {
    "left-linear": ".output r r(@x, y) :- link(@x, y). r(@x, y) :- link(@x, z), r(@z, y).",
    "right-linear": ".output r r(@x, y) :- link(@x, y). r(@x, y) :- r(@x, z), link(@z, y).",
    "non-linear": ".output r r(@x, y) :- link(@x, y). r(@x, y) :- r(@x, z), r(@z, y).",
    "at the other end": ".output r r(x, @y) :- link(@x, y). r(x, @y) :- link(@x, z), r(z, @y).",
    "shortest paths": ".output d p(@x, y, c) :- road(@x, y, c). p(@x, y, c + e) :- road(@x, z, c), d(@z, y, e)."
    "d(@x, y, m) :- p(@x, y, _), m = min c : { p(@x, y, c) }.",
    "shortest paths, forwards, and what is far": ".output d, far, q p(@x, y, c) :- road(@x, y, c)."
    "p(@x, y, c + e) :- d(@x, z, c), road(@z, y, e). d(@x, y, m) :- p(@x, y, _), m = min c : { p(@x, y, c) }."
    "far(@y, x) :- d(@x, y, c), c > 2. q(@x) :- far(@x, _), !node(@x).",
    "one way only, counted": ".output one, n, big r(@x, y) :- link(@x, y). r(@x, y) :- link(@x, z), r(@z, y)."
    "one(@x, y) :- r(@x, y), !r(@y, x). n(@x, c) :- node(@x), c = count : { one(@x, _) }."
    "big(@y, x) :- n(@x, c), c > 1, link(@x, y), !known(y).",
    "mutual recursion": ".output e, o odd(@x, y) :- link(@x, y). odd(@x, y) :- link(@x, z), e(@z, y)."
    "e(@x, y) :- link(@x, z), odd(@z, y). o(@y, x) :- e(@x, y), !odd(@x, y).",
    "widest paths, added up": ".output w, s p(@x, y, c) :- road(@x, y, c). p(@x, y, min(c, e)) :- road(@x, z, c), w(@z, y, e)."
    "w(@x, y, m) :- p(@x, y, _), m = max c : { p(@x, y, c) }. s(@x, t) :- node(@x), t = sum c : { w(@x, _, c) }.",
    "everywhere": ".decl both(x:number) everywhere .decl sure(x:number) everywhere .output both, sure, p, r "
    "both(x) :- link(@x, y), link(@y, x). sure(x) :- both(x), known(x). p(@x, y) :- link(@x, y), both(y), !sure(x)."
    "r(@x) :- known(x), !node(@x).",
    "constants": "node(0). link(@1, 2). .output t, none, z, u, k t(@0, n) :- n = count : { link(@0, _) }."
    "none(@3) :- !node(@3). z(@x) :- node(@x), !t(@0, 1). u(@x, s) :- link(@x, _), s = sum y : { link(@x, y) }."
    "k(@y, x, s) :- u(@x, s), link(@x, y), s > 3.",
    "regions": "c(@x, x) :- node(@x). c(@y, l) :- low(@x, l), link(@x, y). low(@x, m) :- c(@x, _), m = min l : { c(@x, l) }."
    ".output low, size size(@l, n) :- in(@l, _), n = count : { in(@l, _) }. in(@l, x) :- low(@x, l).",
    "three places": ".output t t(@z, x) :- link(@x, y), link(@y, z), !link(@z, x), node(@y).",
}


def drawn_channel(draw: random.Random) -> Channel:
    return Channel(
        latency=0.001,
        jitter=draw.choice((0.0, 0.004)),
        loss=draw.choice((0.0, 0.0, 0.2)),
        duplication=draw.choice((0.0, 0.1)),
        fifo=draw.random() < 0.5,
    )


class Followed:
    """A network, and the sum of the changes it has told of."""

    def __init__(self, network: Network, draw: random.Random) -> None:
        self.network = network
        self.draw = draw
        self.total: dict[str, set[Tuple]] = {}

    def apply(self, epoch: list[Update] | tuple[Update, ...]) -> None:
        self._disturb()
        self.network.apply(epoch)
        for op, relation, row, _ in self.network.changes():
            rows = self.total.setdefault(relation, set())
            assert (row in rows) == (op == "-"), "a change that changes nothing"
            (rows.add if op == "+" else rows.remove)(row)

    def _disturb(self) -> None:
        network, draw = self.network, self.draw
        nodes = list(network.processes)
        if not network.simulation.reliable or len(nodes) < 2 or draw.random() < 0.6:
            return
        if draw.random() < 0.7:
            keeps = draw.random() < 0.5
            network.crash(draw.choice(nodes), after=draw.random() * 0.01, lasting=0.01, keeps_state=keeps)
        else:
            half = draw.sample(nodes, len(nodes) // 2)
            network.split([], half, after=draw.random() * 0.01, lasting=0.02)

    def check(self, expected: dict[str, set[Tuple]]) -> None:
        assert self.network.views() == expected
        outputs = self.network.program.outputs or expected
        assert {name: self.total.get(name, set()) for name in outputs} == {name: expected[name] for name in outputs}


def made(program: object, strategy: str, seed: int, nodes: range) -> Followed:
    draw = random.Random(seed)
    network = Network(
        program,  # type: ignore[arg-type]
        strategy=strategy,
        nodes=nodes,
        wiring=Wiring(drawn_channel(draw)),
        processors=draw.choice((None, None, 2)),
        seed=seed,
    )
    return Followed(network, draw)


def drawn_epoch(base: dict[str, set[Tuple]], draw: random.Random, nodes: int, size: int) -> list[Update]:
    updates = []
    for _ in range(size):
        name = draw.choice(("link", "link", "link", "road", "road", "road", "node", "known"))
        if draw.random() < 0.5 and base[name]:
            row = draw.choice(sorted(base[name]))
            updates.append(Update("-", name, row))
            base[name].discard(row)
        else:
            row = tuple(draw.randrange(nodes) for _ in range(1 if name in ("node", "known") else 2))
            row += (draw.randint(0, 3),) if name == "road" else ()
            updates.append(Update("+", name, row))
            base[name].add(row)
    return updates


@pytest.mark.parametrize("strategy", ["support", "dred"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_views_on_disturbed_networks(name: str, strategy: str) -> None:
    program = load(BASE + PROGRAMS[name])
    for seed in range(max(5, EXAMPLES // 8)):
        draw = random.Random(f"{name} {seed}")
        nodes = draw.randint(2, 5)
        followed = made(program, strategy, seed, range(nodes))
        base: dict[str, set[Tuple]] = {"link": set(), "road": set(), "node": set(), "known": set()}
        for number in range(6):
            followed.apply(drawn_epoch(base, draw, nodes, draw.randint(1, 8) if number else 14))
            followed.check(evaluate(program, base))
        count_sequence()


@pytest.mark.parametrize("strategy", ["support", "dred"])
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=placed_runs(), seed=st.integers(0, 999))
def test_random_programs(strategy: str, run: PlacedRun, seed: int) -> None:
    with warnings.catch_warnings(), suppress(RunawayError):
        warnings.simplefilter("ignore")
        try:
            followed = made(run.program, strategy, seed, range(4))
        except ProgramError as refused:
            assume("W0705" not in {each.code for each in refused.diagnostics})
            raise
        base: dict[str, set[Tuple]] = {}
        for epoch in run.epochs:
            for op, relation, row, _ in epoch:
                rows = base.setdefault(relation, set())
                (rows.add if op == "+" else rows.discard)(row)
            expected = evaluate(run.program, base, limits=LIMITS)
            followed.apply(epoch)
            followed.check(expected)
        count_sequence()


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("strategy", ["support", "dred"])
def test_what_goes_while_a_node_loses_what_it_knew_is_gone_everywhere(strategy: str, lost: int) -> None:
    program = load(
        BASE + ".decl near(@x:number, c:number) .decl seen(x:number) everywhere near(@x, 0) :- node(@x)."
        "hop(@y, c + d) :- near(@x, c), road(@x, y, d). near(@y, c) :- hop(@y, _), c = min d : { hop(@y, d) }."
        "seen(x) :- near(@x, _)."
    )
    rows = {"node": [(0,), (1,)], "road": [(0, 0, 0), (0, 1, 0), (1, 2, 0)]}
    for moment in range(0, 24, 4):
        network = Network(program, strategy=strategy, nodes=range(4), wiring=Wiring(Channel(latency=0.001, loss=0.2)))
        network.apply([("+", name, row) for name, listed in rows.items() for row in listed])
        network.crash(lost, after=moment * 0.0005, lasting=0.01, keeps_state=False)
        network.apply([("-", "node", (0,))])
        assert [network.rows("seen", node) for node in range(4)] == [{(1,), (2,)}] * 4


def test_views_are_wrong_for_no_longer_than_an_epoch_takes() -> None:
    """What nodes complete by themselves when all is at rest takes no time, whatever timers of lost messages still ring."""
    program = load(
        """.decl link(@a:symbol, b:symbol) .input link .output reach, far
        reach(@x, y) :- link(@x, y). reach(@x, y) :- link(@x, z), reach(@z, y). far(@x, y) :- reach(@x, y), !link(@x, y)."""
    )
    network = Network(program, wiring=Wiring(Channel(latency=0.001, jitter=0.003, loss=0.2, fifo=False)), seed=3)
    draw = random.Random(3)
    links = [(a, b) for a in "abcdef" for b in "abcdef" if a != b]
    for _ in range(5):
        figures = network.apply([Update(draw.choice("+-"), "link", row) for row in draw.sample(links, 9)])
        assert 0 <= figures.wrong_seconds <= figures.seconds
