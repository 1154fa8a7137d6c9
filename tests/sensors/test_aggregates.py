"""Aggregates in the network: along a tree, exact; by sketches, within their error and whatever is heard twice or lost."""

from __future__ import annotations

from random import Random
from statistics import mean

import pytest

from whence import Update, load
from whence.runtime import Channel
from whence.runtime.sketches import Sketch, collect
from whence.sensors import Field, SensorNetwork

READINGS = """
.decl reading(@n:symbol, room:number, value:float) .input reading
.decl room(r:number) .input room
.output hottest, total, size, average
hottest(r, m) :- room(r), m = max v : { reading(_, r, v) }.
total(s) :- s = sum v : { reading(_, _, v) }.
size(r, c) :- room(r), c = count : { reading(_, r, _) }.
average(r, a) :- reading(_, r, _), a = mean v : { reading(_, r, v) }.
"""


@pytest.mark.parametrize("seed", range(5))
def test_trees_are_exact_while_readings_come_and_go(seed: int) -> None:
    draw = Random(seed)
    field = Field.grid(draw.randint(1, 6), draw.randint(1, 6))
    network = SensorNetwork(load(READINGS), field, channel=Channel(latency=0.01, jitter=0.03, fifo=False), seed=seed)
    network.apply([Update("+", "room", (room,)) for room in range(3)])
    assert network.relation("size") == {(room, 0) for room in range(3)}
    there: list[tuple] = []
    for _ in range(4):
        updates = []
        for _ in range(12):
            if there and draw.random() < 0.4:
                updates.append(Update("-", "reading", there.pop(draw.randrange(len(there)))))
            else:
                row = (draw.choice(field.nodes), draw.randint(0, 3), draw.choice((0.1, 0.25, 1e9, -3.5, 7.0)))
                updates += [Update("+", "reading", row)]
                there += [] if row in there else [row]
        network.apply(updates)
        assert network.compare().missed == network.compare().false == 0


def test_only_what_changes_goes_up_the_tree() -> None:
    field = Field.grid(5, 5)
    network = SensorNetwork(load(READINGS), field)
    network.apply([Update("+", "reading", (node, 1, 5.0)) for node in field.nodes])
    before = network.messages
    network.apply([Update("+", "reading", ("n0", 1, 4.0))])
    assert network.messages - before < 25


def test_sketches_are_within_their_error() -> None:
    errors = []
    for seed in range(30):
        draw = Random(seed)
        weights = {(seed, at): draw.uniform(0.5, 20) for at in range(200)}
        sketch = Sketch.of(weights)
        errors.append(sketch.estimate / sum(weights.values()) - 1)
    assert sketch.standard_error == pytest.approx(0.127, abs=0.001)
    assert abs(mean(errors)) < 3 * 0.127 / 30**0.5
    assert mean(error**2 for error in errors) ** 0.5 < 1.5 * 0.127


def test_sketches_bear_losses_that_trees_do_not() -> None:
    field = Field.random(80, side=50, radius=12, seed=2)
    items = {node: {(node, at): 1.0 for at in range(3)} for node in field.places}
    exact = collect(field, items, is_sketch=False)
    assert (exact.found, exact.truth, exact.messages) == (240, 240, 79)
    sketched = collect(field, items, is_sketch=True)
    assert sketched.messages == 79
    assert sketched.error < 3 * 0.127
    trees = [collect(field, items, is_sketch=False, loss=0.25, seed=seed) for seed in range(8)]
    ways = [collect(field, items, is_sketch=True, loss=0.25, seed=seed) for seed in range(8)]
    assert mean(each.error for each in ways) < mean(each.error for each in trees)
