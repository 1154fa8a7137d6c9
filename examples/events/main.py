"""Five applications whose events are kept so that each can be explained: what that takes, and an answer from each.

Packets whose routes change, names that are looked up with and without a memory, machines that ask for addresses, neighbours
that are asked who has one, and requests through a service mesh, made from the spans of a tracer.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from whence import load_file
from whence.events import (
    EventStore,
    Questions,
    compare_trees,
    difference_text,
    event_program,
    figures_of,
    trees_text,
    workloads,
)
from whence.topology import transit_stub

HERE = Path(__file__).parent
ROWS = ("exspan", "basic", "advanced")


def store_of(name: str, scheme: str, folder: Path, **functions: object) -> EventStore:
    program = load_file(HERE / f"{name}.dl", functions=functions)  # type: ignore[arg-type]
    return EventStore(event_program(program), folder, scheme=scheme)


def bytes_of(store: EventStore) -> int:
    """Of events and their trees; that slow relations have a history costs all schemes the same."""
    return int(figures_of(store)["bytes"]["total"])


def measured(name: str, workload: workloads.Workload, folder: Path, **functions: object) -> list[str]:
    """One row of the table: an application, and what each scheme takes for it."""
    sizes = []
    for scheme in ROWS:
        with store_of(name, scheme, folder / f"{name}-{scheme}", **functions) as store:
            store.load(workload.facts)
            outputs = sum(len(store.event(event)) for event in workload.events)
            store.commit()
            sizes.append(bytes_of(store))
    return [name, f"{len(workload.events):,}", f"{outputs:,}", *(f"{size:,}" for size in sizes)]


def route_change(folder: Path) -> str:
    """The way of a packet before and after a link fails, and what differs."""
    links = [("n1", "n2"), ("n2", "n3"), ("n1", "n4"), ("n4", "n5"), ("n5", "n3")]
    before, after = workloads.routes_of(links), workloads.routes_of(links, down=[("n2", "n3")])
    with store_of("packets", "advanced", folder / "routes") as store:
        store.load({"route": before})
        (first,) = store.event(("n1", "n1", "n3", "before"), 1.0)
        for op, rows in (("-", before - after), ("+", after - before)):
            for row in sorted(rows, key=repr):
                store.change(op, "route", row, 2.0)
        (second,) = store.event(("n1", "n1", "n3", "after"), 3.0)
        store.commit()
        questions = Questions(store)
        old, new = questions.of_output(first), questions.of_output(second)
        difference = compare_trees(old.trees[0].tree, new.trees[0].tree, store.history)
        return f"{trees_text(new, store)}\n\n{difference_text(difference, 'before', 'after')}"


def with_a_memory(folder: Path) -> list[str]:
    """Names again, where a host keeps each address that it was told."""
    workload = workloads.names(requests=300)
    sizes = []
    for scheme in ROWS:
        with store_of("dns", scheme, folder / f"memory-{scheme}", is_below=workloads.is_below) as store:
            store.load(workload.facts)
            outputs = 0
            for host, url, number in workload.events:
                for reply in store.event((host, url, number)):
                    outputs += 1
                    store.change("-", "asks", (host, url))
                    store.change("+", "keeps", (host, url, reply.tuple[2]))
            store.commit()
            sizes.append(bytes_of(store))
    return ["dns, with a memory", f"{len(workload.events):,}", f"{outputs:,}", *(f"{size:,}" for size in sizes)]


def traced() -> workloads.Workload:
    _, spans = workloads.mesh(requests=300)
    events, facts = workloads.from_spans(spans)
    return workloads.Workload(facts, events)


def main() -> None:
    network = transit_stub(seed=1)
    links = [(link.a, link.b) for link in network.links]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = [
            ["application", "events", "outputs", *ROWS],
            measured("packets", workloads.packets(links, pairs=20, each=50), folder),
            measured("dns", workloads.names(requests=300), folder, is_below=workloads.is_below),
            with_a_memory(folder),
            measured("dhcp", workloads.machines(requests=300), folder),
            measured("arp", workloads.neighbours(requests=300), folder),
            measured("mesh", traced(), folder),
        ]
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        print("Bytes of events and trees, by scheme\n")
        for row in rows:
            print(
                "  ".join(
                    text.ljust(width) if not at else text.rjust(width)
                    for at, (text, width) in enumerate(zip(row, widths, strict=True))
                )
            )
        print("\nWhy a packet took its way after a link failed\n")
        print(route_change(folder))


if __name__ == "__main__":
    sys.exit(main())
