"""Streams joined inside of a grid: schemes of storage and join regions, and a central server."""

from __future__ import annotations

from fields import NEAR, least_messages, run_streams
from harness import Claim, CutOff, Experiment, Results, run

from whence.sensors import Scheme

SCHEMES = ("perpendicular", "broadcast", "local", "central")
WAYS = ("2 streams", "3 streams")
LARGEST_FLOODED = 16  # nodes a side: where every tuple goes to every node, no more are tried
ROUNDS_A_DAY = 24 * 60  # the streams of a run, once a minute


def measure(scheme: str, side: float, seed: int) -> dict[str, float]:
    name, _, ways = scheme.partition(", ")
    if name in ("broadcast", "local") and side > LARGEST_FLOODED:
        raise CutOff
    relations = "rs" if ways.startswith("2") else "rsq"
    network = run_streams(int(side), Scheme(name), relations=relations, seed=seed, is_near=ways.endswith("near"))
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
        for ways in WAYS
        for other in SCHEMES[1:]
    )


def below_near(results: Results) -> str:
    return "; ".join(
        f"{ways}: {crossing(results, 'central', 'messages', f'{ways}, near')}, "
        f"{crossing(results, 'central', 'hottest node', f'{ways}, near')}; at the last point "
        f"{results.ratio(f'central, {ways}, near', f'perpendicular, {ways}, near', 'messages')} the messages at the server and "
        f"{results.ratio(f'central, {ways}, near', f'perpendicular, {ways}, near', 'hottest node')} at its hottest node"
        for ways in WAYS
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
        f"Streams that are *near* join only what is at most {NEAR:g} hops apart. Broadcast and local storage are not tried "
        f"beyond {LARGEST_FLOODED} by {LARGEST_FLOODED}. Answers are checked."
    ),
    schemes=(
        *(f"{scheme}, {ways}" for ways in WAYS for scheme in SCHEMES),
        *(f"{scheme}, {ways}, near" for ways in WAYS for scheme in ("perpendicular", "central")),
    ),
    across="nodes a side",
    points=(4, 8, 16, 24),
    metrics={"messages": "a tuple", "hottest node": "messages a tuple", "lifetime": "days"},
    measure=measure,
    claims=[
        Claim("perpendicular below broadcast, local storage and central server from a stated size on", below),
        Claim("the same against the central server, of streams that are near", below_near),
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
