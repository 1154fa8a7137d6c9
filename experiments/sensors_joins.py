"""Streams joined inside of a grid: schemes of storage and join regions, and a central server."""

from __future__ import annotations

from fields import least_messages, run_streams
from harness import Claim, Experiment, Results, run

from whence.sensors import Scheme

SCHEMES = ("perpendicular", "broadcast", "local", "central")
ROUNDS_A_DAY = 24 * 60  # the streams of a run, once a minute


def measure(scheme: str, side: float, seed: int) -> dict[str, float]:
    name, _, ways = scheme.partition(", ")
    network = run_streams(int(side), Scheme(name), relations="rs" if ways == "2 streams" else "rsq", seed=seed)
    tuples = sum(map(len, network.base.values()))
    energy = network.energy()
    return {
        "messages": network.messages / tuples,
        "hottest node": max(network.messages_by_node().values()) / tuples,
        "lifetime": energy.lifetime(ROUNDS_A_DAY / 86_400) / 86_400,
    }


def crossing(results: Results, other: str, metric: str, ways: str) -> str:
    better = [
        point
        for point in results.points
        if (results.median(f"perpendicular, {ways}", point, metric) or 0)
        < (results.median(f"{other}, {ways}", point, metric) or 0)
    ]
    return f"{metric} from {better[0]:g}x{better[0]:g} on" if better else f"{metric}: not up to {results.points[-1]:g}"


def below(results: Results) -> str:
    return "; ".join(
        f"below {other} ({ways}): {crossing(results, other, 'messages', ways)}, {crossing(results, other, 'hottest node', ways)}"
        for ways in ("2 streams", "3 streams")
        for other in SCHEMES[1:]
    )


def against_least(results: Results) -> str:
    found = []
    for point in results.points:
        sent = results.median("perpendicular, 2 streams", point, "messages")
        assert sent is not None
        found.append(f"{point:g}: {sent / least_messages(int(point)):.3g}x")
    return ", ".join(found)


EXPERIMENT = Experiment(
    name="sensors_joins",
    title="Joins inside of a grid",
    question=(
        "Two and three streams on square grids, as many tuples in each as there are nodes, at random nodes, all "
        "joined with each other "
        "(conditions that no hash could use; few results). Messages are transmissions of one hop, of storing, "
        "looking for partners and "
        "telling homes; the hottest node is the one that sends and receives most; lifetime is that of the first "
        "battery if the streams of "
        "a run come once a minute, with the radio model of the docs. The server is in the middle of the grid. "
        "Answers are checked."
    ),
    schemes=tuple(f"{scheme}, {ways}" for ways in ("2 streams", "3 streams") for scheme in SCHEMES),
    across="nodes a side",
    points=(4, 6, 8, 12, 16, 20),
    metrics={"messages": "a tuple", "hottest node": "messages a tuple", "lifetime": "days"},
    measure=measure,
    claims=[
        Claim("perpendicular below broadcast, local storage and central server from a stated size on", below),
        Claim(
            "on uniform rates within 8x of the best possible (half of how far apart two nodes are, on average)",
            against_least,
        ),
        Claim(
            "the hottest node at least 3x better than sending everything to a sink",
            lambda results: (
                f"at {results.points[-1]:g}x{results.points[-1]:g}: "
                f"{results.ratio('central, 2 streams', 'perpendicular, 2 streams', 'hottest node')} the messages at the "
                "sink (2 streams), "
                f"{results.ratio('central, 3 streams', 'perpendicular, 3 streams', 'hottest node')} (3 streams); lifetimes "
                f"{results.ratio('perpendicular, 2 streams', 'central, 2 streams', 'lifetime')} and "
                f"{results.ratio('perpendicular, 3 streams', 'central, 3 streams', 'lifetime')}"
            ),
        ),
    ],
    cut_off=600,
)

if __name__ == "__main__":
    run(EXPERIMENT)
