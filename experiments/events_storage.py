"""Figures 8 to 10: what is kept of packets between 100 pairs of nodes, by scheme and by how many packets each pair sends."""

from __future__ import annotations

from pathlib import Path

from harness import Claim, Experiment, Results, run

from whence import load_file
from whence.events import EventStore, event_program, workloads
from whence.events.figures import sizes_by_place
from whence.topology import transit_stub

PROGRAM = Path(__file__).parents[1] / "examples" / "events" / "packets.dl"


def measure(scheme: str, each: float, seed: int) -> dict[str, float]:
    links = [(link.a, link.b) for link in transit_stub(seed=seed).links]
    workload = workloads.packets(links, pairs=100, each=int(each), payload=500, seed=seed)
    store = EventStore(event_program(load_file(PROGRAM)), scheme=scheme)
    store.load(workload.facts)
    for event in workload.events:
        store.event(event)
    sizes = sizes_by_place(store).values()
    packets = len(workload.events)
    rows, tuples = (sum(place[name] for place in sizes) / packets for name in ("rows", "tuples"))
    busiest = max(place["rows"] + place["tuples"] for place in sizes) / packets
    return {"bytes a packet": rows + tuples, "of it rows": rows, "at the busiest node": busiest}


def _less(metric: str, scheme: str = "advanced", to: str = "exspan") -> Claim:
    def measured(results: Results) -> str:
        point = results.experiment.points[-1]
        one, other = results.median(scheme, point, metric), results.median(to, point, metric)
        return "cut off" if one is None or not other else f"{1 - one / other:.1%} less at {point:g} packets a pair"

    return Claim(f"{metric}: 92 % less than {to} (Chen and others, figure 9)", measured)


def _worst(results: Results) -> str:
    return f"{results.ratio('advanced', 'basic', 'bytes a packet', 1)} of basic"


EXPERIMENT = Experiment(
    name="events_storage",
    title="Packets on 100 nodes: bytes kept by each scheme",
    question=(
        "100 random pairs of a transit-stub network send packets with 500 characters of payload. "
        "What each node keeps is written as Parquet with zstd, "
        "node by node; bytes are of column chunks. Printed: 13.1 / 10.9 / 1.03 KB a packet, uncompressed, and 92 % less in all."
    ),
    schemes=("exspan", "basic", "advanced"),
    across="packets a pair",
    points=(1, 10, 100, 300),
    metrics={"bytes a packet": "", "of it rows": "bytes", "at the busiest node": "bytes"},
    measure=measure,
    claims=(
        _less("bytes a packet"),
        _less("of it rows"),
        Claim("one event a class is the worst case; bar: at most 1.2x basic", _worst),
    ),
)

if __name__ == "__main__":
    run(EXPERIMENT)
