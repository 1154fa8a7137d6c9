"""Uncovered vehicles: tuples that keep to where their partners can be, against whole rows and columns."""

from __future__ import annotations

from random import Random

from fields import HOP
from harness import Claim, Experiment, run

from whence import Update, load
from whence.runtime import Channel
from whence.sensors import Choices, Field, Scheme, SensorNetwork

PROGRAM = load("""
.decl veh(kind:symbol, x:number, y:number, t:number) .input veh
.decl cov(x:number, y:number, t:number)
.decl uncov(x:number, y:number, t:number)
.output uncov
cov(x, y, t) :- veh("enemy", x, y, t), veh("friendly", u, v, t), dist(x, y, u, v) <= 5.0.
uncov(x, y, t) :- veh("enemy", x, y, t), !cov(x, y, t).
""")


def measure(scheme: str, spacing: float, seed: int) -> dict[str, float]:
    draw = Random(seed)
    side = int(100 // spacing) + 1
    choices = Choices(schemes={"cov#1": Scheme.PERPENDICULAR}, clipping=scheme == "clipped")
    field = Field.grid(side, side, spacing=spacing)
    network = SensorNetwork(PROGRAM, field, choices=choices, channel=Channel(latency=HOP), seed=seed)
    vehicles = {(draw.choice(("enemy", "friendly")), draw.randint(0, 99), draw.randint(0, 99), 1) for _ in range(200)}
    network.apply([Update("+", "veh", row, draw.uniform(0, 5)) for row in sorted(vehicles)])
    compared = network.compare()
    assert (compared.missed, compared.false) == (0, 0)
    return {"messages": network.messages / len(vehicles)}


EXPERIMENT = Experiment(
    name="sensors_clipping",
    title="Tuples that keep near",
    question=(
        "200 vehicles at random places of 100 m by 100 m, half of them enemies; an enemy is covered by a friend "
        "at most 5 m away. Nodes "
        "stand on a grid, so far apart as the point says. Rows and columns whole, or clipped to what the rule's condition allows."
    ),
    schemes=("whole", "clipped"),
    across="metres between nodes",
    points=(2, 4, 5, 10),
    metrics={"messages": "a vehicle"},
    measure=measure,
    claims=[
        Claim(
            "at least 5x fewer messages",
            lambda results: ", ".join(
                f"{point:g} m: {results.ratio('whole', 'clipped', 'messages', point)} fewer" for point in results.points
            ),
        )
    ],
    cut_off=600,
)

if __name__ == "__main__":
    run(EXPERIMENT)
