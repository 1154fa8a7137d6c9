"""Join orders that follow the data, against those that are picked when a session begins."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random

from harness import Claim, Experiment, run

from whence import Session, Update, load, load_file
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.optimizer.adaptive import AdaptiveOrders

FIVE_WAYS = """
.decl event(id:number, k:number)
.decl r1(k:number, u:number)  .decl r2(k:number, v:number)  .decl r3(u:number, v:number)  .decl r4(v:number, w:number)
.input event, r1, r2, r3, r4
.decl hit(id:number, w:number)
.output hit
hit(id, w) :- event(id, k), r1(k, u), r2(k, v), r3(u, v), r4(v, w).
"""
REACH = """
.decl link(x:number, y:number)
.input link
.decl reach(x:number, y:number)
.output reach
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
"""
POINTS_TO = Path(__file__).parents[1] / "examples" / "points_to" / "program.dl"
KEYS, EVENTS, EPOCHS, MATCHES = 1000, 400, 60, 200
WORKLOADS = ("five ways, skew shifts", "five ways, no shift", "points-to", "reachability")

Facts = dict[str, set[Tuple]]
Epoch = list[Update]


def five_ways(random: Random, *, shift: bool) -> tuple[Program, Facts, Epoch, list[Epoch]]:
    """At first a key has one match in r1 and many in r2; after the shift it is the other way round."""
    few = {(key, key) for key in range(KEYS)}
    many = {(key % (KEYS // 4), random.randrange(10 * KEYS)) for key in range(KEYS * MATCHES // 4)}
    facts: Facts = {"r1": few, "r2": many, "event": set()}
    facts["r3"] = {(random.randrange(KEYS), random.randrange(10 * KEYS)) for _ in range(20 * KEYS)}
    facts["r4"] = {(random.randrange(10 * KEYS), at) for at in range(5 * KEYS)}
    moved: Epoch = []
    if shift:
        moved += [Update("-", "r2", row) for row in many] + [
            Update("+", "r2", (k, random.randrange(10 * KEYS))) for k in range(KEYS)
        ]
        moved += [Update("+", "r1", row) for row in many]
    return load(FIVE_WAYS), facts, moved, list(_events(random))


def _events(random: Random) -> Iterable[Epoch]:
    last: Epoch = []
    for at in range(EPOCHS):
        new = [(at * EVENTS + each, random.randrange(KEYS // 4)) for each in range(EVENTS)]
        yield last + [Update("+", "event", row) for row in new]
        last = [Update("-", "event", row) for row in new]


def points_to(random: Random) -> tuple[Program, Facts, Epoch, list[Epoch]]:
    program = load_file(POINTS_TO)
    variables, objects = [f"v{at}" for at in range(300)], [f"o{at}" for at in range(80)]
    facts: Facts = {}
    for name in program.base_relations:
        fields = program.relations[name].fields
        rows = {
            tuple(random.choice(objects if "obj" in each.name or "heap" in each.name else variables) for each in fields)
            for _ in range(250)
        }
        facts[name] = rows  # type: ignore[assignment]
    epochs = []
    for _ in range(20):
        name = random.choice(sorted(facts))
        gone = random.sample(sorted(facts[name]), 3)  # type: ignore[type-var]
        epochs += [[Update("-", name, row) for row in gone], [Update("+", name, row) for row in gone]]
    return program, facts, [], epochs


def reachability(random: Random) -> tuple[Program, Facts, Epoch, list[Epoch]]:
    links: set[Tuple] = {(random.randrange(300), random.randrange(300)) for _ in range(420)}
    epochs = []
    for _ in range(30):
        gone = random.sample(sorted(links), 2)  # type: ignore[type-var]
        epochs += [[Update("-", "link", row) for row in gone], [Update("+", "link", row) for row in gone]]
    return load(REACH), {"link": links}, [], epochs


def workload(point: float, seed: int) -> tuple[Program, Facts, Epoch, list[Epoch]]:
    random = Random(seed)
    match WORKLOADS[int(point) - 1]:
        case "points-to":
            return points_to(random)
        case "reachability":
            return reachability(random)
        case name:
            return five_ways(random, shift=name.endswith("shifts"))


def timed(scheme: str, point: float, seed: int) -> tuple[float, object, int]:
    """Milliseconds an epoch, the views at the end, and how often orders were switched."""
    program, facts, moved, epochs = workload(point, seed)
    session = Session(program, facts=facts)
    orders = AdaptiveOrders(session) if scheme == "adaptive" else None
    for epoch in [epochs[0], moved] if moved else [epochs[0]]:
        session.apply(epoch)
        if orders is not None:
            orders.after_epoch()
    gc.collect()
    start = time.process_time()
    for epoch in epochs[1:]:
        session.apply(epoch)
        if orders is not None:
            orders.after_epoch()
    taken = 1000 * (time.process_time() - start) / (len(epochs) - 1)
    return taken, session.views(), 0 if orders is None else len(orders.switches)


def measure(scheme: str, point: float, seed: int) -> dict[str, float]:
    if scheme == "static":
        return {"time": timed(scheme, point, seed)[0], "of the static time": 1.0, "switches": 0}
    runs = [
        (timed("static", point, seed), timed("adaptive", point, seed)) for _ in range(5)
    ]  # in turns, the least counts
    assert all(static[1] == adaptive[1] for static, adaptive in runs)
    static, adaptive = min(each[0][0] for each in runs), min(each[1][0] for each in runs)
    return {"time": adaptive, "of the static time": adaptive / static, "switches": runs[0][1][2]}


EXPERIMENT = Experiment(
    name="adaptive_orders",
    title="Join orders that follow the data",
    question=(
        "Epochs of some updates each. The static session picks its orders by the sizes that it begins with; "
        "the adaptive one looks at its tables between epochs. "
        "Workloads: "
        + ", ".join(f"{at} {name}" for at, name in enumerate(WORKLOADS, 1))
        + ". Times are those of the processor after the shift, switches included; in turns, the least of five."
    ),
    schemes=("static", "adaptive"),
    across="workload",
    points=tuple(range(1, len(WORKLOADS) + 1)),
    metrics={"time": "ms an epoch", "of the static time": "", "switches": ""},
    measure=measure,
    claims=(
        Claim(
            "at least 3x faster after a shift",
            lambda results: f"{1 / (results.median('adaptive', 1, 'of the static time') or 1):.1f}x",
        ),
        Claim(
            "at most 1.05x the time without one",
            lambda results: ", ".join(
                f"{name} {results.median('adaptive', at, 'of the static time') or 0:.2f}"
                for at, name in enumerate(WORKLOADS, 1)
                if at > 1 and at in results.points
            ),
        ),
    ),
    cut_off=200,
    logarithmic=False,
)

if __name__ == "__main__":
    run(EXPERIMENT)
