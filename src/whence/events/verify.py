"""Whether a store can answer: every file as written, every row there that another names, every tree rebuilt and compared."""

from __future__ import annotations

from collections.abc import Iterator

from whence.events.questions import Questions, Unanswerable
from whence.events.store import SHORT, EventStore


def problems_of(store: EventStore) -> Iterator[str]:
    """What is wrong with a store, in words."""
    damaged = list(store.tables.damages())
    yield from damaged
    if damaged:
        return
    yield from _unnamed(store)
    questions = Questions(store)
    seen: dict[tuple[str, bytes, object], str | None] = {}
    for place, short, at_place, at, number in store.tables["outputs"]:
        try:
            run = questions.run(number)
            tree = questions.rebuild(run, at_place, at)
        except Unanswerable as reason:
            key = at_place, at, str(reason)
            if key not in seen:
                seen[key] = None
                yield f"an output at {place}: {reason}"
            continue
        if store.ids.tuple_id(tree.fact)[:SHORT] != short or store.texts.place(tree.fact) != place:
            yield f"an output at {place}: its tree leads to another tuple"


def _unnamed(store: EventStore) -> Iterator[str]:
    """Steps that name a step or a node that is not there."""
    links = {(row[0], row[1]) for row in store.tables["links"]}
    nodes = {(row[0], row[1]) for row in store.tables["nodes"]}
    for place, step, node, before_place, before in store.tables["links"]:
        if (place, node) not in nodes:
            yield f"step {step.hex()[:12]} at {place} names a node that is missing"
        if before is not None and (before_place, before) not in links:
            yield f"step {step.hex()[:12]} at {place} follows one at {before_place} that is missing"
