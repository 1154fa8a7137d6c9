"""Figures 13, 14 and 16: what is kept of requests for names, 100 servers in a tree, 38 names asked for by Zipf's law."""

from __future__ import annotations

from pathlib import Path

from harness import Claim, Experiment, run

from whence import load_file
from whence.events import EventStore, event_program, workloads
from whence.events.figures import sizes_by_place

PROGRAM = Path(__file__).parents[1] / "examples" / "events" / "dns.dl"


def measure(scheme: str, requests: float, seed: int) -> dict[str, float]:
    workload = workloads.names(requests=int(requests), hosts=4, seed=seed)
    program = load_file(PROGRAM, functions={"is_below": workloads.is_below})
    store = EventStore(event_program(program), scheme=scheme)
    store.load(workload.facts)
    for event in workload.events:
        store.event(event)
    sizes = sizes_by_place(store).values()
    return {
        "bytes a request": sum(place["rows"] + place["tuples"] for place in sizes) / len(workload.events),
        "at the busiest server": max(place["rows"] + place["tuples"] for place in sizes) / len(workload.events),
    }


EXPERIMENT = Experiment(
    name="events_names",
    title="Names on 100 servers: bytes kept by each scheme",
    question=(
        "4 hosts look up 38 names, the popular ones often; the tree of servers is 27 deep at most. "
        "Printed: 13.15 / 11.57 / 3.81 KB a request."
    ),
    schemes=("exspan", "basic", "advanced"),
    across="requests",
    points=(200, 2_000, 10_000),
    metrics={"bytes a request": "", "at the busiest server": "bytes"},
    measure=measure,
    claims=(
        Claim(
            "about 4x less than exspan (figure 13)",
            lambda results: results.ratio("exspan", "advanced", "bytes a request"),
        ),
        Claim("3.5x less in all (figure 16)", lambda results: results.ratio("exspan", "advanced", "bytes a request")),
    ),
)

if __name__ == "__main__":
    run(EXPERIMENT)
