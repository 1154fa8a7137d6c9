"""What is written down of a run: everything, one tree at a time, or one tree for a class of events.

A scheme is asked at each step, where the step is taken. What it needs to know of the steps before travels with the event, as a
`Trail`. `step` reads a step back; the rest of a tree follows from running the rules again.

- *exspan* keeps every tuple and every rule that fired, as its namesake does. An execution also names the one before, so that
  a tree is never put together from halves of two.
- *basic* keeps no tuples but the first and leaves the others to be made again.
- *advanced* keeps a chain of steps once, whatever the events that took it: a step's id is a digest of its rule, its slow tuples
  and the chain below, so it is put in if it is not there, and nothing has to be known of classes to be right.
- *replay* keeps no steps at all: trees come from running the events again in the configurations that they met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from whence.events.digests import Ids
from whence.events.tables import Tables
from whence.events.walk import Firing
from whence.provenance.graph import Fact


class Step(NamedTuple):
    """A step as it was kept: the rule, the ids of its slow tuples, and the step before, if there is one."""

    rule: str
    slow: tuple[bytes, ...]
    before: tuple[str, bytes] | None


@dataclass(frozen=True, slots=True)
class Trail:
    """What an event carries with it: the id of the event it began as, the run, and the last step, where it was taken."""

    event: bytes
    run: int
    place: str | None = None
    step: bytes | None = None

    def onward(self, place: str, step: bytes) -> Trail:
        return Trail(self.event, self.run, place, step)


class Scheme(Protocol):
    name: str

    def fire(self, place: str, firing: Firing, slow: Iterable[bytes], trail: Trail) -> Trail:
        """A rule fires at a place; gives what the event it makes takes along."""
        ...

    def arrive(self, place: str, fact: Fact, trail: Trail, text: str) -> None:
        """An event, an intermediate one, or an output is at its place."""
        ...

    def step(self, place: str, step: bytes) -> Step | None: ...


class Advanced:
    name = "advanced"

    def __init__(self, tables: Tables, ids: Ids) -> None:
        self._nodes, self._links, self._ids = tables["nodes"], tables["links"], ids

    def fire(self, place: str, firing: Firing, slow: Iterable[bytes], trail: Trail) -> Trail:
        used = list(slow)
        node = self._ids.node_id(firing.rule, used)
        step = self._ids.link_id(node, trail.place, trail.step)
        if self._links.insert((place, step, node, trail.place, trail.step)):
            self._nodes.insert((place, node, firing.rule, used))
        return trail.onward(place, step)

    def arrive(self, place: str, fact: Fact, trail: Trail, text: str) -> None:
        pass

    def step(self, place: str, step: bytes) -> Step | None:
        link = self._links.find(place, step)
        node = None if link is None else self._nodes.find(place, link[2])
        return None if link is None or node is None else Step(node[2], tuple(node[3]), _before(link[3], link[4]))


class Basic:
    name = "basic"

    def __init__(self, tables: Tables, ids: Ids) -> None:
        self._executions, self._ids = tables["executions"], ids

    def fire(self, place: str, firing: Firing, slow: Iterable[bytes], trail: Trail) -> Trail:
        used = list(slow)
        step = self._ids.execution_id(firing.rule, place, used, self.event_id(firing, trail), trail.step)
        self._executions.insert(
            (place, step, firing.rule, used, self.kept_event(firing, trail), trail.place, trail.step)
        )
        return trail.onward(place, step)

    def event_id(self, firing: Firing, trail: Trail) -> bytes:  # noqa: ARG002 - the first event is enough to tell runs apart
        return trail.event

    def kept_event(self, firing: Firing, trail: Trail) -> bytes | None:  # noqa: ARG002
        return trail.event if trail.step is None else None

    def arrive(self, place: str, fact: Fact, trail: Trail, text: str) -> None:
        pass

    def step(self, place: str, step: bytes) -> Step | None:
        row = self._executions.find(place, step)
        return None if row is None else Step(row[2], tuple(row[3]), _before(row[5], row[6]))


class Exspan(Basic):
    name = "exspan"

    def __init__(self, tables: Tables, ids: Ids) -> None:
        super().__init__(tables, ids)
        self._tuples, self._derivations = tables["tuples"], tables["derivations"]

    def event_id(self, firing: Firing, trail: Trail) -> bytes:  # noqa: ARG002
        return self._ids.tuple_id(firing.event)

    def kept_event(self, firing: Firing, trail: Trail) -> bytes:
        return self.event_id(firing, trail)

    def arrive(self, place: str, fact: Fact, trail: Trail, text: str) -> None:
        identity = self._ids.tuple_id(fact)
        self._tuples.insert((place, identity, fact.relation, text))
        self._derivations.insert((place, identity, trail.place, trail.step, trail.run))


class Replay:
    """Keeps what came in, and nothing else."""

    name = "replay"

    def __init__(self, tables: Tables, ids: Ids) -> None:
        pass

    def fire(self, place: str, firing: Firing, slow: Iterable[bytes], trail: Trail) -> Trail:  # noqa: ARG002
        return trail.onward(place, b"")

    def arrive(self, place: str, fact: Fact, trail: Trail, text: str) -> None:
        pass

    def step(self, place: str, step: bytes) -> Step | None:  # noqa: ARG002
        return None


SCHEMES: Mapping[str, Callable[[Tables, Ids], Scheme]] = {
    "exspan": Exspan,
    "basic": Basic,
    "advanced": Advanced,
    "replay": Replay,
}


def _before(place: str | None, step: bytes | None) -> tuple[str, bytes] | None:
    return None if place is None or step is None else (place, step)
