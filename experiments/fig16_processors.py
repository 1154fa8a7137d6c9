"""More and more processors for the same network: figure 16 of the dissertation, 14 of the article."""

from __future__ import annotations

from harness import Claim, Experiment, run
from networks import check_reachable, links_up, run_of

from whence.topology import transit_stub


def measure(scheme: str, processors: float, seed: int) -> dict[str, float]:
    network = transit_stub(seed=seed)
    made = run_of(scheme, network, seed=seed, processors=int(processors))
    figures = made.apply(links_up(network.links))
    check_reachable(made, network.links)
    return {
        "provenance": made.provenance_a_tuple(),
        "traffic": made.kilobytes_a_node(),
        "state": made.state_a_node(),
        "time to converge": figures.seconds,
    }


EXPERIMENT = Experiment(
    name="fig16_processors",
    title="More and more processors",
    question=(
        "Reachability on a dense transit-stub network of 100 nodes, which are dealt to processors by hash; all link tuples come "
        "up at once. What stays on a processor is free, and any two processors are 1 ms apart. Times are simulated."
    ),
    schemes=("support", "dred", "absorption lazy"),
    across="processors",
    points=(4, 8, 12, 16, 24),
    metrics={
        "provenance": "bytes a tuple shipped",
        "traffic": "kB a processor",
        "state": "kB a processor",
        "time to converge": "s",
    },
    measure=measure,
    claims=[
        Claim(
            "traffic and state of each fall with more processors",
            lambda results: ", ".join(
                f"{metric} {results.median('absorption lazy', results.points[0], metric):,.0f} to "
                f"{results.median('absorption lazy', results.points[-1], metric):,.0f} kB"
                for metric in ("traffic", "state")
            ),
        ),
    ],
    cut_off=100,
    logarithmic=False,
)

if __name__ == "__main__":
    run(EXPERIMENT)
