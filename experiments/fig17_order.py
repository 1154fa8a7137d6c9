"""The order of variables in decision diagrams: figure 17 of the dissertation, 15 of the article."""

from __future__ import annotations

from random import Random

from harness import Claim, Experiment, Results, run
from networks import Run, check_reachable, links_up, run_of

from whence.network.annotated import AnnotatedNode
from whence.network.annotated_codec import PlaceNames
from whence.network.provenance import AbsorptionStrategy
from whence.topology import transit_stub


def measure(order: str, share: float, seed: int) -> dict[str, float]:
    """Links arrive in random order, a tenth of them at a time."""
    network = transit_stub(seed=seed)
    links = Random(seed).sample(network.links, round(share * len(network.links)))
    made = run_of((AbsorptionStrategy(order=order), "lazy"), network, seed=seed)
    step = max(1, len(links) // 10)
    for start in range(0, len(links), step):
        made.apply(links_up(links[start : start + step]))
    check_reachable(made, links)
    return {
        "provenance kept": _kept_alone(made),
        "provenance": made.provenance_a_tuple(),
        "traffic": made.kilobytes_a_node(),
        "state": made.state_a_node(),
        "time to converge": sum(each.seconds for each in made.figures),
    }


def _kept_alone(made: Run) -> float:
    """The bytes of an annotation that a node keeps, written by itself, as the papers count it."""
    sizes: dict[object, int] = {}
    total = count = 0
    for process in made.network.processes.values():
        state = process.state
        assert isinstance(state, AnnotatedNode)
        names = PlaceNames(state.compiled, state.codec)
        for annotation in state.annotations():
            key = (id(state.algebra), annotation)
            if key not in sizes:
                sizes[key] = len(state.algebra.book(names, {}).write(annotation))
            total += sizes[key]
            count += 1
    return total / count


def _each(results: Results, order: str) -> str:
    point = results.points[-1]
    pairs = zip(
        results.values(order, point, "provenance kept"),
        results.values("arrival", point, "provenance kept"),
        strict=True,
    )
    return ", ".join(f"{one / other:.2g}x" for one, other in pairs)


EXPERIMENT = Experiment(
    name="fig17_order",
    title="The order of variables",
    question=(
        "Reachability with absorption on a dense transit-stub network of 100 nodes. A share of its links comes up in random "
        "order, in ten epochs; provenance is shipped lazily. Variables go depth first along links, worked out anew or kept by "
        "labels, or by arrival, in one order for all nodes; or each node has its own, with what it heard of last first."
    ),
    schemes=("own", "depth-first", "labels", "arrival"),
    across="share of links",
    points=(0.5, 0.75, 1.0),
    metrics={
        "provenance kept": "bytes a tuple that a node keeps or has told, each written by itself",
        "provenance": "bytes a tuple shipped",
        "traffic": "kB a node",
        "state": "kB a node",
        "time to converge": "s",
    },
    measure=measure,
    claims=[
        Claim(
            "depth first: up to 50 % less provenance and traffic, about the same time",
            lambda results: (
                f"{results.ratio('depth-first', 'arrival', 'provenance kept')} the provenance kept "
                f"(single networks: {_each(results, 'depth-first')}), "
                f"{results.ratio('depth-first', 'arrival', 'provenance')} the provenance shipped, "
                f"{results.ratio('depth-first', 'arrival', 'traffic')} the traffic, "
                f"{results.ratio('depth-first', 'arrival', 'state')} the state, "
                f"{results.ratio('depth-first', 'arrival', 'time to converge')} the time; by labels "
                f"{results.ratio('labels', 'arrival', 'provenance')}, {results.ratio('labels', 'arrival', 'traffic')}, "
                f"{results.ratio('labels', 'arrival', 'state')}"
            ),
        ),
        Claim(
            "ours: an order of each node's own is better than both",
            lambda results: (
                f"against arrival {results.ratio('own', 'arrival', 'provenance kept')} the provenance kept, "
                f"{results.ratio('own', 'arrival', 'provenance')} the provenance shipped, "
                f"{results.ratio('own', 'arrival', 'traffic')} the traffic, {results.ratio('own', 'arrival', 'state')} the state"
            ),
        ),
    ],
    cut_off=300,
    of_processor=True,
)

if __name__ == "__main__":
    run(EXPERIMENT)
