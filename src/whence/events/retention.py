"""Forgetting: outputs by age, number or bytes, and everything that only they needed.

A step stays while an output that stays leads to it; a slow tuple while it is there, or a step that stays names it; an event while
an output of it stays. What stays is written to new files, and one replacement of the manifest makes them the store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from whence.events.questions import Questions
from whence.events.store import EventStore
from whence.events.tables import Row


@dataclass(frozen=True)
class Policy:
    """What stays of a relation of interest: outputs of events not older than `age`, the last `count`, `bytes` of events."""

    age: float | None = None
    count: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Forgotten:
    """How many rows of each table went."""

    rows: dict[str, int]


def retain(store: EventStore, policies: dict[str, Policy], now: float | None = None) -> Forgotten:
    """Applies a policy to each relation of interest that has one. The store must have been committed."""
    events = {row[1]: row for row in store.tables["events"]}
    latest = max((row[5] for row in events.values() if row[5] is not None), default=None) if now is None else now
    outputs = list(store.tables["outputs"])
    relations = _relations(store, outputs)
    kept: list[Row] = []
    for name in dict.fromkeys(relations):
        rows = [row for row, relation in zip(outputs, relations, strict=True) if relation == name]
        kept += _kept(rows, events, policies.get(name or "", Policy()), latest)
    order = {id(row): at for at, row in enumerate(outputs)}
    kept.sort(key=lambda row: order[id(row)])
    return _sweep(store, kept, events)


def _relations(store: EventStore, outputs: Iterable[Row]) -> list[str | None]:
    """The relation of each output, read off the rule of its last step."""
    names: dict[tuple[str, bytes], str | None] = {}
    found = []
    for row in outputs:
        key = row[2], row[3]
        if key not in names:
            step = store.scheme.step(*key)
            names[key] = None if step is None else store.events.by_name[step.rule].head.relation
        found.append(names[key])
    return found


def _kept(rows: list[Row], events: dict[int, Row], policy: Policy, latest: float | None) -> list[Row]:
    oldest = -inf if policy.age is None or latest is None else latest - policy.age
    newest_first = sorted(rows, key=lambda row: int(row[4]), reverse=True)
    found: list[Row] = []
    size = 0
    for row in newest_first:
        event = events.get(row[4])
        if event is None:
            continue
        size += len(event[3])
        if policy.count is not None and len(found) >= policy.count:
            break
        if policy.bytes is not None and size > policy.bytes:
            break
        if event[5] is None or event[5] >= oldest:
            found.append(row)
    return found


def _sweep(store: EventStore, outputs: list[Row], events: dict[int, Row]) -> Forgotten:
    questions = Questions(store)
    steps: set[tuple[str, bytes]] = set()
    slow: set[bytes] = set()
    nodes: set[tuple[str, bytes]] = set()
    for at in dict.fromkeys((row[2], row[3]) for row in outputs):
        for key in questions.steps(*at) - steps:
            step = store.scheme.step(*key)
            assert step is not None
            steps.add(key)
            slow.update(step.slow)
            nodes.add((key[0], store.ids.node_id(step.rule, step.slow)))
    runs = {row[4] for row in outputs}
    oldest = min((events[run][6] for run in runs), default=store.history.configuration)
    # What was there since the oldest event that stays: it can be run again as it ran.
    replayable = {
        store.ids.tuple_id(fact)
        for fact, intervals in store.history.known()
        if any(each.until is None or each.until > oldest for each in intervals)
    }
    kept: dict[str, list[Row]] = {
        "outputs": outputs,
        "events": [row for run, row in events.items() if run in runs],
        "links": [row for row in store.tables["links"] if (row[0], row[1]) in steps],
        "nodes": [row for row in store.tables["nodes"] if (row[0], row[1]) in nodes],
        "executions": [row for row in store.tables["executions"] if (row[0], row[1]) in steps],
        "derivations": [row for row in store.tables["derivations"] if row[4] in runs],
        "history": [row for row in store.tables["history"] if row[1] in slow or row[1] in replayable],
    }
    needed = {(row[0], row[1]) for row in kept["derivations"]}
    kept["tuples"] = [row for row in store.tables["tuples"] if (row[0], row[1]) in needed]
    gone = {name: len(store.tables[name]) - len(rows) for name, rows in kept.items()}
    if any(gone.values()):
        store.tables.replace(kept)
    return Forgotten({name: number for name, number in gone.items() if number})
