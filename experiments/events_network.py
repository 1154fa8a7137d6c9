"""Figures 11, 12 and 15: what provenance adds to messages, and how long questions take, on a simulated network of 100 nodes."""

from __future__ import annotations

import statistics
from pathlib import Path
from random import Random

from harness import Claim, Experiment, run

from whence import load_file
from whence.events import event_program, workloads
from whence.events.nodes import EventNetwork
from whence.runtime import Channel, Wiring
from whence.topology import transit_stub

PROGRAM = Path(__file__).parents[1] / "examples" / "events" / "packets.dl"
QUESTIONS = 100
SCHEMES = {
    "without": {"recording": False},
    "exspan": {"scheme": "exspan"},
    "basic": {"scheme": "basic"},
    "advanced": {"scheme": "advanced"},
    "advanced, remembering": {"scheme": "advanced", "remembering": True},
}


def measure(scheme: str, payload: float, seed: int) -> dict[str, float]:
    network = transit_stub(seed=seed)
    links = [(link.a, link.b) for link in network.links]
    workload = workloads.packets(links, pairs=100, each=20, payload=int(payload), seed=seed)
    # As on the machines of the paper: any two of them are as far apart, by sockets.
    wiring = Wiring(default=Channel(latency=0.002, bandwidth=6.25e6))
    events = EventNetwork(event_program(load_file(PROGRAM)), network.nodes, wiring=wiring, seed=seed, **SCHEMES[scheme])
    events.load(workload.facts)
    for at, event in enumerate(workload.events):
        events.inject(0.01 * at, event)
    events.run()
    sent = events.simulation.figures.total.bytes / len(workload.events)
    draw = Random(seed)
    asked = [] if scheme == "without" else draw.sample(events.trees, QUESTIONS)
    answers = [events.ask(tree.fact) for tree in asked]
    for tree, answer in zip(asked, answers, strict=True):
        assert any(found.tree.fact == tree.fact for found in answer.trees.trees)
    seconds = statistics.median([answer.seconds for answer in answers]) if answers else 0.0
    messages = statistics.mean([answer.messages for answer in answers]) if answers else 0.0
    return {"bytes sent a packet": sent, "ms a question": 1000 * seconds, "messages a question": messages}


EXPERIMENT = Experiment(
    name="events_network",
    title="Events on nodes: what provenance adds to messages, and what a question costs",
    question=(
        "2,000 packets between 100 pairs of a transit-stub network of 100 nodes, then 100 random questions; "
        "2 ms between any two nodes, 50 Mbit/s. "
        "Time is simulated. *Remembering* has the place of an output fetch a chain once, when it first ends there."
    ),
    schemes=tuple(SCHEMES),
    across="characters of payload",
    points=(0, 500),
    metrics={"bytes sent a packet": "", "ms a question": "simulated", "messages a question": ""},
    measure=measure,
    claims=(
        Claim(
            "500 characters: advanced close to the others (figure 11); bar: under 10 % more",
            lambda results: results.ratio("advanced", "without", "bytes sent a packet", 500),
        ),
        Claim(
            "no payload: 33 % more (figure 15, 6 against 4.5 MB/s)",
            lambda results: results.ratio("advanced", "without", "bytes sent a packet", 0),
        ),
        Claim(
            "basic 3x faster than exspan (figure 12: 75 against 25.5 ms)",
            lambda results: (
                f"basic {results.ratio('exspan', 'basic', 'ms a question')}, "
                f"advanced, remembering {results.ratio('exspan', 'advanced, remembering', 'ms a question')}"
            ),
        ),
    ),
    logarithmic=False,
)

if __name__ == "__main__":
    run(EXPERIMENT)
