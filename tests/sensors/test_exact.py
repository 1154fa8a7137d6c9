"""At rest the views of a field are those of the reference: random fields, simultaneous updates, clocks that are off, jitter."""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.sensors.runs import PROGRAMS, drawn_run, wrong

from whence import Update, load
from whence.reference import evaluate
from whence.runtime import Channel
from whence.sensors import Choices, Field, Scheme, SensorNetwork

# `make test-long` asks for more.
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "0")) * 3 or 100
BATCH = 50


@pytest.mark.parametrize("first", range(0, EXAMPLES, BATCH))
def test_views_are_those_of_the_reference(first: int) -> None:
    for seed in range(first, first + BATCH):
        run = drawn_run(seed)
        network = run.network()
        network.feed(run.updates)
        network.run()
        assert not wrong(network, run.truth()), seed
        assert network.late == 0, seed


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_changes_after_it_is_final(name: str) -> None:
    """Every change comes before the time at which the row was said to be final, for all updates it goes back to."""
    run = drawn_run(7, name)
    network = run.network()
    network.feed(run.updates)
    network.run()
    for moment in network.moments:
        if moment.relation not in network.base:
            assert moment.time <= moment.final + 1e-9, moment


def test_runs_are_drawn_of_all_kinds() -> None:
    runs = [drawn_run(seed) for seed in range(60)]
    assert {run.choices.scheme for run in runs} == set(Scheme) - {Scheme.ONE_HOP, Scheme.HASHED}
    assert {run.field.shape is None for run in runs} == {True, False}
    assert {run.choices.several_passes for run in runs} == {True, False, None}
    assert min(len(run.updates) for run in runs) >= 40


STAGED = """
.decl edge(a:number, b:number) .input edge
.decl H(a:number, b:number, d:number)
.decl P(b:number, d:number)
.output H, P
H(0, 0, 0).
P(y, d + 1) :- H(_, y, e), d + 1 > e, H(_, x, d), edge(x, y).
H(x, y, d + 1) :- edge(x, y), H(_, x, d), !P(y, d + 1).
"""


@pytest.mark.parametrize("scheme", [Scheme.AUTO, Scheme.PERPENDICULAR, Scheme.BROADCAST, Scheme.CENTRAL])
@pytest.mark.parametrize("seed", range(max(2, EXAMPLES // 300)))
def test_stages_are_right_whatever_the_scheme(scheme: Scheme, seed: int) -> None:
    """Negation inside a recursion whose tuples live anywhere, while edges come and go."""
    draw = Random(seed)
    program = load(STAGED)
    channel = Channel(latency=0.05, jitter=draw.choice((0.0, 0.1)), fifo=False)
    choices = Choices(scheme=scheme)
    network = SensorNetwork(
        program, Field.grid(3, 3), choices=choices, channel=channel, skew=draw.choice((0.0, 0.2)), seed=seed
    )
    edges: set[tuple[int, int]] = set()
    for _ in range(3):
        updates = []
        for _ in range(5):
            edge = (draw.randint(0, 4), draw.randint(0, 4))
            updates.append(Update("-" if edge in edges else "+", "edge", edge))
            edges ^= {edge}
        network.apply(updates)
        assert not wrong(network, evaluate(program, {"edge": edges}))
        assert not network.rows_beyond()
