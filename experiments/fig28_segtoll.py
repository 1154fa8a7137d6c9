"""Figures 28, 29 and table 3: segment tolls of Linear Road over a stream of car positions, planned anew slice by slice."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from random import Random

from harness import Claim, Experiment, Results, run

from whence import Session, Update, load
from whence.optimizer.adaptive import AdaptiveOrders, ObservedOrder
from whence.prepared import prepare

SECONDS, CARS, SEGMENTS, WAYS = 40, 400, 100, 2
PROGRAM = """
.decl r1(car:number, way:number, dir:number, seg:number, at:number)
.decl r2(place:number, way:number, dir:number, seg:number, at:number)
.decl r3(car:number, way:number, dir:number, seg:number, at:number)
.decl r4(car:number, at:number)
.decl r5(car:number, x:number, at:number)
.input r1, r2, r3, r4, r5
.window r1(time=300)
.window r2(rows=1, by=place)
.window r3(rows=1, by=car)
.window r4(time=30)
.window r5(rows=4, by=car)
.decl passed(car:number, way:number, seg:number, x:number)
passed(c, e, s, x) :- r1(_, e, 0, s, _), r2(_, e, 0, s, _), r3(c, e, 0, t, _), s < t, s > t - 10, r4(c, _), r5(c, x, _).
.decl toll(car:number, way:number, seg:number, n:number)
toll(c, e, s, n) :- passed(c, e, s, _), n = count : { passed(c, e, s, _) }.
.output toll
"""
Stream = list[tuple[int, list[Update]]]


def positions(seed: int) -> Stream:
    """For each second what was reported. Few cars at first, all of them after 20 s; from 30 s on half of them are in a jam."""
    random = Random(seed)
    cars = [
        [random.randrange(WAYS), random.randrange(2), random.uniform(0, SEGMENTS), random.uniform(0.1, 0.6)]
        for _ in range(CARS)
    ]
    found = []
    for second in range(SECONDS):
        updates = []
        there = CARS if second >= 20 else CARS // 10
        for car in range(second % 5, there, 5):  # each car reports every 5 s
            way, direction, place, speed = cars[car]
            jammed = second >= 30 and car % 2 == 0
            cars[car][2] = 40 + random.random() if jammed else (place + 5 * speed) % SEGMENTS
            segment, x = int(cars[car][2]), int(cars[car][2] * 5280)
            row = (int(way), int(direction), segment)
            key = (row[0] * 2 + row[1]) * SEGMENTS + segment
            updates += [
                Update("+", "r1", (car, *row, second), second),
                Update("+", "r2", (key, *row, second), second),
                Update("+", "r3", (car, *row, second), second),
                Update("+", "r4", (car, second), second),
                Update("+", "r5", (car, x, second), second),
            ]
        found.append((second, updates))
    return found


def slices(stream: Stream, length: int) -> Iterator[tuple[int, list[Update]]]:
    for begin in range(0, len(stream), length):
        part = stream[begin : begin + length]
        yield part[-1][0], [update for _, updates in part for update in updates]


def learned(stream: Stream, seconds: int) -> ObservedOrder:
    """The order for what the tables hold after some seconds."""
    session = Session(load(PROGRAM))
    orders = AdaptiveOrders(session)
    for now, updates in slices(stream[:seconds], 1):
        session.apply(updates, now=now)
    orders.look()
    return orders.order


def timed(scheme: str, length: int, stream: Stream) -> tuple[float, float, int, object]:
    """Seconds in all and for planning, switches, and the tolls at the end."""
    program = load(PROGRAM)
    orders = None
    if scheme in {"static, full statistics", "static, partial statistics"}:
        order = learned(stream, SECONDS if "full" in scheme else 2)
        session = Session(prepare(program, join_order=order))
    else:
        session = Session(program)
    gc.collect()
    planning, switches = 0.0, 0
    start = time.perf_counter()
    if scheme == "adaptive":
        orders = AdaptiveOrders(session)
    for now, updates in slices(stream, length):
        session.apply(updates, now=now)
        begin = time.perf_counter()
        if orders is not None:
            orders.look()
        elif scheme == "from scratch":
            switches += len(AdaptiveOrders(session).switches)
        planning += time.perf_counter() - begin
    taken = time.perf_counter() - start
    if orders is not None:
        switches = len(orders.switches)
    return taken, planning, switches, set(session.relation("toll"))


def measure(scheme: str, length: float, seed: int) -> dict[str, float]:
    stream = positions(seed)
    found = [timed(scheme, int(length), stream) for _ in range(2)]
    assert found[0][3] == timed("static, no statistics", int(length), stream)[3]
    taken, planning, switches, _ = min(found, key=lambda each: each[0])
    return {"total": taken, "planning": planning, "switches": switches}


def _totals(results: Results, *schemes: str) -> str:
    return "; ".join(
        f"{point:g} s: " + ", ".join(f"{results.median(scheme, point, 'total') or 0:.2f}" for scheme in schemes)
        for point in results.points
    )


EXPERIMENT = Experiment(
    name="fig28_segtoll",
    title="Segment tolls, planned slice by slice",
    question=(
        f"{SECONDS} s of positions of up to {CARS} cars on {WAYS} expressways, five windows of them joined; a slice is an epoch. "
        "Few cars at first, a jam from 30 s on. Plans are orders of joins, of which nothing is kept but indexes: "
        "moving state is making those, and its time is in the total. "
        "The adaptive one starts without statistics; from scratch has all orders chosen anew after each slice."
    ),
    schemes=(
        "static, full statistics",
        "static, partial statistics",
        "static, no statistics",
        "from scratch",
        "adaptive",
    ),
    across="slice",
    points=(1, 5, 10),
    metrics={"total": "s", "planning": "s", "switches": ""},
    measure=measure,
    claims=(
        Claim(
            "adaptive at or below the best static plan with full statistics (adaptive, static)",
            lambda results: _totals(results, "adaptive", "static, full statistics"),
        ),
        Claim(
            "never slower than from scratch (adaptive, from scratch)",
            lambda results: _totals(results, "adaptive", "from scratch"),
        ),
        Claim(
            "planning, slices of 1 s (printed 5.75 s of 7.95 s)",
            lambda results: f"{results.median('adaptive', results.points[0], 'planning') or 0:.3f} s",
        ),
    ),
    cut_off=300,
    logarithmic=False,
)

if __name__ == "__main__":
    run(EXPERIMENT)
