"""Aggregates in the network: along a tree, exact; by sketches, within their error and whatever is heard twice or lost."""

from __future__ import annotations

from random import Random
from statistics import mean

import pytest

from whence import Update, load
from whence.reference import evaluate
from whence.runtime import Channel
from whence.runtime.sketches import Sketch, collect
from whence.sensors import Choices, Field, NotForSensors, Scheme, SensorNetwork, translate

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


SKETCHED = """
.decl reading(@n:symbol, room:number, value:number) .input reading
.decl room(r:number) .input room
.decl size(r:number, c:number)
.pragma "sketch" "size, total:400, hottest"
.output size, total, hottest, many
size(r, c) :- room(r), c = count : { reading(_, r, _) }.
.decl total(s:number)
total(s) :- s = sum v : { reading(_, _, v) }.
.decl hottest(r:number, m:number)
hottest(r, m) :- reading(_, r, _), m = max v : { reading(_, r, v) }.
many(r) :- size(r, c), c > 40.
"""


def sketched(seed: int, loss: float = 0.0) -> SensorNetwork:
    field = Field.random(60, side=50, radius=16, seed=seed)
    channel = Channel(latency=0.01, loss=loss, jitter=0.02, fifo=False)
    network = SensorNetwork(load(SKETCHED), field, channel=channel, seed=seed)
    network.apply([Update("+", "room", (room,)) for room in range(3)])
    draw = Random(seed)
    rows = [(node, draw.randint(0, 1), draw.randint(1, 9)) for node in field.nodes for _ in range(2)]
    network.apply([Update("+", "reading", row) for row in dict.fromkeys(rows)])
    return network


def test_rules_that_are_sketched_are_within_their_error_while_rows_come_and_go() -> None:
    errors: dict[str, list[float]] = {"size": [], "total": [], "hottest": []}
    for seed in range(1, 7):
        network = sketched(seed)
        going = [Update("-", "reading", row) for row in sorted(network.relation("reading"))[::3]]
        network.apply(going)
        truth = evaluate(network.program, network.base)
        assert network.relation("hottest") == truth["hottest"]  # an extreme is exact, and goes with its row
        assert (2, 0) in network.relation("size")  # what nobody has is known to be nothing
        exact = {(each.relation, each.group): each.exact for each in network.estimates()}
        assert {(("total", ()), *truth["total"].pop())} <= set(exact.items())
        for each in network.estimates():
            errors[each.relation].append(each.error)
        compared = network.compare()
        assert (compared.missed, compared.false) == (0, 0)  # of what does not rest on sketches
    assert max(errors["hottest"]) == 0
    assert 0 < mean(errors["total"]) < 0.1  # 400 registers: 5 %
    assert 0 < mean(errors["size"]) < 0.2  # 64 registers: 12.7 %


def test_sketches_in_rules_lose_less_than_a_tree() -> None:
    lost: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(1, 5):
        network = sketched(seed, loss=0.15)
        field = network.field
        lost[True] += [each.error for each in network.estimates() if each.relation == "total"]
        program = load(SKETCHED.replace('"size, total:400, hottest"', '"hottest"'))
        channel = Channel(latency=0.01, loss=0.15)
        tree = SensorNetwork(program, field, channel=channel, seed=seed)
        tree.apply([Update("+", "reading", row) for row in sorted(network.base["reading"])])
        truth = evaluate(program, tree.base)["total"].pop()[0]
        found = tree.nodes[field.centre].summaries.shown["total"][()][0]  # what the top knows, told to its home or not
        lost[False].append(abs(found - truth) / truth)
    assert mean(lost[True]) < mean(lost[False])


@pytest.mark.parametrize(
    ("pragma", "problem"),
    [
        ('.pragma "sketch" "average"', "there is no sketch of mean"),
        ('.pragma "sketch" "reading"', "the rules of reading aggregate nothing"),
        ('.pragma "sketch" "nobody"', "there is no relation nobody"),
        ('.pragma "sketch" "total:2"', "a sketch has 3 registers at least"),
        ('.pragma "sketch" "a b"', "says nothing"),
        ('.pragma "within" "close(x, y) 2"', "says nothing"),
        ('.pragma "within" "close(x, y, u, v) 2"', "there is no function close"),
    ],
)
def test_pragmas_that_say_nothing_are_refused(pragma: str, problem: str) -> None:
    with pytest.raises(NotForSensors, match=problem):
        translate(load(READINGS + pragma), Field.grid(2, 2))


def test_a_bound_is_of_the_arguments_that_a_function_has() -> None:
    program = load(CLOSE.replace("close(x, y, _, u, v, _) 3", "close(x, y, u, v) 3"), functions={"close": close})
    with pytest.raises(NotForSensors, match="close has 6 arguments, not 4"):
        translate(program, Field.grid(2, 2))


def test_a_negative_value_has_no_sketch() -> None:
    program = load(READINGS + '.pragma "sketch" "total"')
    network = SensorNetwork(program, Field.grid(2, 2))
    with pytest.raises(NotForSensors, match="negative value"):
        network.apply([Update("+", "reading", ("n0", 1, -2.0))])


CLOSE = """
.functor close(x:number, y:number, t:number, u:number, v:number, w:number):number
.pragma "within" "close(x, y, _, u, v, _) 3"
.decl report(x:number, y:number, t:number) .input report
.output step
step(x, y, u, v) :- report(x, y, t), report(u, v, w), @close(x, y, t, u, v, w) = 1.
"""


def close(*report: int) -> int:
    x, y, t, u, v, w = report
    return int(0 < w - t <= 1 and abs(x - u) + abs(y - v) <= 3)


def test_a_function_with_a_declared_bound_keeps_tuples_near() -> None:
    field = Field.grid(16, 16)
    draw = Random(3)
    rows = [(draw.randrange(16), draw.randrange(16), draw.randrange(3)) for _ in range(60)]
    messages = {}
    for text in (CLOSE, CLOSE.replace(".pragma", "// .pragma"), CLOSE.replace("= 1.", "!= 0.")):
        program = load(text, functions={"close": close})
        network = SensorNetwork(program, field, choices=Choices(scheme=Scheme.PERPENDICULAR))
        network.apply([Update("+", "report", row) for row in dict.fromkeys(rows)])
        assert network.compare().missed == network.compare().false == 0 < len(network.relation("step"))
        messages[text] = network.messages
    near, whole, same = messages.values()
    assert near == same < whole / 2
