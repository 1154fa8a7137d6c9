"""What the experiments on networks share: schemes, the program, one run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import networkx as nx

from whence import Program, Update, load
from whence.lang.types import Tuple
from whence.network import EpochFigures, Network
from whence.network.provenance import AbsorptionStrategy, RelativeStrategy
from whence.network.strategy import STRATEGIES, Strategy
from whence.runtime import Wiring
from whence.topology import Link, Topology, TransitStub

REACHABLE = load("""
.decl link(@src:symbol, dst:symbol)
.input link
.output reachable
reachable(@x, y) :- link(@x, y).
reachable(@x, y) :- link(@x, z), reachable(@z, y).
""")
# By scheme, the strategy and how it ships. What the papers call eager tells everything that it held back once a second.
_EVERY_SECOND = {"period": 1.0, "capacity": None}
SCHEMES: dict[str, tuple[Strategy, str | None]] = {
    "support": (STRATEGIES["support"], None),
    "dred": (STRATEGIES["dred"], None),
    "relative eager": (RelativeStrategy(**_EVERY_SECOND), "batched"),  # type: ignore[arg-type]
    "relative lazy": (RelativeStrategy(), "lazy"),
    "absorption eager": (AbsorptionStrategy(**_EVERY_SECOND), "batched"),  # type: ignore[arg-type]
    "absorption lazy": (AbsorptionStrategy(), "lazy"),
}


def wiring_of(topology: TransitStub | Topology) -> Wiring:
    """Messages take the links of the network, with their latencies; they are there even when a view is told that they are not."""
    return Wiring.of((link.a, link.b, link.ms / 1000) for link in topology.links)


@dataclass
class Run:
    """A network under a scheme. `seconds` are those of the processor, which one thread needs."""

    network: Network
    hosts: int
    figures: list[EpochFigures] = field(default_factory=list)
    seconds: float = 0.0

    def apply(self, updates: Iterable[Update]) -> EpochFigures:
        start = time.process_time()
        self.figures.append(self.network.apply(updates))
        self.seconds += time.process_time() - start
        return self.figures[-1]

    @property
    def kilobytes(self) -> float:
        return sum(each.traffic.bytes for each in self.figures) / 1000

    def kilobytes_a_node(self) -> float:
        return self.kilobytes / self.hosts

    def provenance_a_tuple(self) -> float:
        """The bytes that say why a tuple is there, of those shipped."""
        tuples = sum(each.traffic.tuples for each in self.figures)
        return sum(each.traffic.provenance_bytes for each in self.figures) / max(tuples, 1)

    def state_a_node(self) -> float:
        return self.figures[-1].state_bytes / 1000 / self.hosts


def run_of(
    scheme: str | tuple[Strategy, str | None],
    topology: TransitStub | Topology,
    *,
    seed: int,
    program: Program = REACHABLE,
    processors: int | None = None,
    handling: float = 0.0,
) -> Run:
    strategy, ship = SCHEMES[scheme] if isinstance(scheme, str) else scheme
    return Run(
        Network(
            program,
            strategy=strategy,
            ship=ship,
            nodes=topology.nodes,
            processors=processors,
            wiring=wiring_of(topology) if processors is None else Wiring(),
            seed=seed,
            handling=handling,
        ),
        processors or len(topology.nodes),
    )


def links_up(links: Sequence[Link]) -> list[Update]:
    return [Update("+", "link", pair) for link in links for pair in link.pairs()]


def links_down(links: Sequence[Link]) -> list[Update]:
    return [Update("-", "link", pair) for link in links for pair in link.pairs()]


def reachable(links: Iterable[Link]) -> set[Tuple]:
    """What networkx says."""
    graph = nx.DiGraph()
    graph.add_edges_from(pair for link in links for pair in link.pairs())
    return set(nx.transitive_closure(graph, reflexive=False).edges)


def check_reachable(run: Run, links: Iterable[Link]) -> None:
    if run.network.relation("reachable") != reachable(links):
        raise AssertionError("the view is wrong")
