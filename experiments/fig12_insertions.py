"""Links come up, strategy by strategy: figure 12 of the dissertation, 10 of the article."""

from __future__ import annotations

from random import Random

from harness import Claim, Experiment, run
from networks import check_reachable, links_up, run_of

from whence.topology import transit_stub


def measure(scheme: str, share: float, seed: int) -> dict[str, float]:
    network = transit_stub(seed=seed)
    links = Random(seed).sample(network.links, round(share * len(network.links)))
    made = run_of(scheme, network, seed=seed)
    figures = made.apply(links_up(links))
    check_reachable(made, links)
    return {
        "provenance": made.provenance_a_tuple(),
        "traffic": made.kilobytes_a_node(),
        "state": made.state_a_node(),
        "time to converge": figures.seconds,
    }


EXPERIMENT = Experiment(
    name="fig12_insertions",
    title="Links come up",
    question=(
        "Reachability on a dense transit-stub network of 100 nodes, each on its own. A share of its 400 link tuples comes up at "
        "once. Eager tells what it held back once a second, as in the papers; times are simulated."
    ),
    schemes=("support", "dred", "relative eager", "relative lazy", "absorption eager", "absorption lazy"),
    across="share of links",
    points=(0.25, 0.5, 0.75, 1.0),
    metrics={
        "provenance": "bytes a tuple shipped",
        "traffic": "kB a node",
        "state": "kB a node",
        "time to converge": "s",
    },
    measure=measure,
    claims=[
        Claim(
            "DRed is the cheapest: it has no provenance",
            lambda results: (
                f"absorption lazy ships {results.ratio('absorption lazy', 'dred', 'traffic')} its bytes, "
                f"support {results.ratio('support', 'dred', 'traffic')}"
            ),
        ),
        Claim(
            "relative eager does not converge in 5 minutes from a share of 0.75 on",
            lambda results: (
                f"at 1: {results.ratio('relative eager', 'absorption lazy', 'traffic')} the bytes of absorption lazy"
            ),
        ),
        Claim(
            "absorption eager is costly",
            lambda results: (
                f"at 1: {results.ratio('absorption eager', 'absorption lazy', 'traffic')} the bytes of lazy"
            ),
        ),
        Claim(
            "absorption lazy is the cheapest scheme with provenance",
            lambda results: (
                f"relative lazy ships {results.ratio('relative lazy', 'absorption lazy', 'traffic')} its bytes"
            ),
        ),
    ],
    cut_off=60,
    of_processor=True,
)

if __name__ == "__main__":
    run(EXPERIMENT)
