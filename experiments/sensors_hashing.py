"""Hash attributes: those that are chosen against every other choice."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

from fields import HOP
from harness import Claim, Experiment, Results, run

from whence import Update, load
from whence.runtime import Channel
from whence.sensors import Choices, Field, SensorNetwork

BASE = """
.decl r(a:number, b:number) .input r
.decl s(a:number, b:number) .input s
.decl q(a:number, b:number) .input q
"""
PROGRAMS = (
    BASE + ".output u, v t(a, b, c) :- r(a, b), s(b, c). u(a, d) :- t(a, _, c), q(c, d). v(c) :- t(_, _, c), q(c, _).",
    BASE + ".output u t(a, c) :- r(a, b), s(b, c). u(a, c) :- t(a, c), !q(a, c).",
    BASE + ".output u t(a, c) :- r(a, b), s(b, c). u(c, d) :- t(a, c), q(a, d), c != d.",
    BASE + ".output w t(a, b) :- r(a, b), s(b, _). p(b, c) :- s(b, c), q(_, c). w(a, c) :- t(a, b), p(b, c).",
)
SIDE = 10


def messages(text: str, homes: dict[str, tuple[str, ...]], seed: int) -> float:
    draw = Random(seed)
    program = load(text)
    field = Field.grid(SIDE, SIDE)
    network = SensorNetwork(program, field, choices=Choices(homes=homes), channel=Channel(latency=HOP), seed=seed)
    rows = [(name, (draw.randint(0, 30), draw.randint(0, 30))) for name in "rsq" for _ in range(60)]
    for name, row in sorted(set(rows)):
        network.feed([Update("+", name, row, draw.uniform(0, 5))], at=draw.choice(field.nodes))
    network.run()
    compared = network.compare()
    assert (compared.missed, compared.false) == (0, 0)
    return network.messages / len(set(rows))


def others(text: str) -> list[dict[str, tuple[str, ...]]]:
    """Every choice of columns for what is derived and read again."""
    program = load(text)
    read = {
        name: [each.name for each in program.relations[name].fields] for name in program.relations if name in ("t", "p")
    }
    found: list[dict[str, tuple[str, ...]]] = [{}]
    for name, columns in read.items():
        subsets = list(chain.from_iterable(combinations(columns, size) for size in range(1, len(columns) + 1)))
        found = [{**known, name: subset} for known in found for subset in subsets]
    return found


def measure(scheme: str, number: float, seed: int) -> dict[str, float]:
    text = PROGRAMS[int(number) - 1]
    if scheme == "chosen":
        return {"messages": messages(text, {}, seed)}
    sent = [messages(text, homes, seed) for homes in others(text)]
    return {"messages": min(sent) if scheme == "best" else max(sent)}


def against(results: Results) -> str:
    return ", ".join(
        f"program {point:g}: {results.ratio('chosen', 'best', 'messages', point)} the best, "
        f"{results.ratio('worst', 'best', 'messages', point)} the worst"
        for point in results.points
    )


EXPERIMENT = Experiment(
    name="sensors_hashing",
    title="Hash attributes",
    question=(
        f"Four programs whose derived relations live at a node by hash of some of their columns, on a grid of "
        f"{SIDE} by {SIDE} nodes; "
        "180 tuples sensed at random nodes. The columns that are chosen by estimated traffic, and the best and the worst of all "
        "choices, measured. Answers are checked."
    ),
    schemes=("chosen", "best", "worst"),
    across="program",
    points=(1, 2, 3, 4),
    metrics={"messages": "a tuple"},
    measure=measure,
    claims=[Claim("within 1.2x of the best", against)],
    cut_off=600,
    logarithmic=False,
)

if __name__ == "__main__":
    run(EXPERIMENT)
