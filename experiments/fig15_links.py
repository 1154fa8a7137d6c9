"""More and more links, dense and sparse: figure 15 of the dissertation, 13 of the article."""

from __future__ import annotations

from harness import Claim, Experiment, run
from networks import check_reachable, links_up, run_of

from whence.topology import DENSE, SPARSE, transit_stub

NODES_A_TRANSIT = 25


def measure(scheme: str, tuples: float, seed: int) -> dict[str, float]:
    ship, density = scheme.split()
    degree = DENSE if density == "dense" else SPARSE
    network = transit_stub(seed=seed, transit=max(3, round(tuples / degree / NODES_A_TRANSIT)), degree=degree)
    made = run_of(f"absorption {ship}", network, seed=seed)
    figures = made.apply(links_up(network.links))
    check_reachable(made, network.links)
    return {
        "provenance": made.provenance_a_tuple(),
        "traffic": made.kilobytes_a_node(),
        "state": made.state_a_node(),
        "time to converge": figures.seconds,
        "processor time": made.seconds,
    }


def _under(results: object, scheme: str) -> str:
    simulated = results.median(scheme, results.points[-1], "time to converge")  # type: ignore[attr-defined]
    real = results.median(scheme, results.points[-1], "processor time")  # type: ignore[attr-defined]
    return "cut off" if simulated is None else f"{simulated:.3g} s simulated, {real:.3g} s of the processor"


EXPERIMENT = Experiment(
    name="fig15_links",
    title="Networks with more and more links",
    question=(
        "Reachability with absorption on transit-stub networks; all link tuples come up at once. Dense networks have 4 link "
        "tuples a node, sparse ones 2, so that sparse networks of as many links have twice the nodes."
    ),
    schemes=("lazy dense", "lazy sparse", "eager dense", "eager sparse"),
    across="link tuples",
    points=(300, 400, 600, 800),
    metrics={
        "provenance": "bytes a tuple shipped",
        "traffic": "kB a node",
        "state": "kB a node",
        "time to converge": "simulated s",
        "processor time": "s",
    },
    measure=measure,
    claims=[
        Claim("lazy, dense: under 5 s at 800 links", lambda results: _under(results, "lazy dense")),
        Claim(
            "eager, dense: does not finish in 5 minutes at 800 links", lambda results: _under(results, "eager dense")
        ),
    ],
    cut_off=100,
    of_processor=True,
)

if __name__ == "__main__":
    run(EXPERIMENT)
