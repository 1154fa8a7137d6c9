"""A store of events: takes events and changes of slow relations in their order, and keeps what is needed to say why.

The first event of a class walks through the rules. With `advanced`, the others take its path as long as no slow relation
changes: their outputs are worked out from it, and all that is written of them is the event and one row an output. The table of
classes is a cache, bounded, and nothing but a fast path: without it the same rows are written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, cast

from whence.events.digests import ChainedIds, Ids
from whence.events.history import History
from whence.events.keys import equivalence_keys
from whence.events.paths import NotCarried, Path, path_of
from whence.events.program import EventProgram, event_program
from whence.events.schemes import SCHEMES, Scheme, Trail
from whence.events.tables import Tables, read_manifest
from whence.events.texts import Texts
from whence.events.walk import HOPS, Walker
from whence.io.changes import Position
from whence.lang import load
from whence.lang.load import Functions
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.lock import StateLock
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof
from whence.reference.solve import Solver

CLASSES = 100_000
SHORT = 4  # bytes of an id that outputs are looked up by: what is found is run again and compared


@dataclass(frozen=True)
class Way:
    """An output of a class: how it is worked out, and the step that made it."""

    path: Path
    place: str
    step: bytes


class EventStore:
    """Without a folder, it is kept in memory. `classes` bounds the fast path; 0 takes it out."""

    def __init__(
        self,
        events: EventProgram,
        folder: FilePath | None = None,
        *,
        scheme: str = "advanced",
        ids: Ids | None = None,
        hops: int = HOPS,
        classes: int = CLASSES,
        writing: bool = True,
    ) -> None:
        if scheme not in SCHEMES:
            raise ValueError(f"there is no scheme {scheme}; there are {', '.join(SCHEMES)}")
        self.events = events
        self.folder = folder
        self.lock = None
        if folder is not None and writing:
            folder.mkdir(parents=True, exist_ok=True)
            self.lock = StateLock(folder)
        try:
            self.tables = Tables(folder, _about(events.program, scheme), writing=writing)
            self._refuse_another(scheme)
        except StateError:
            self.close()
            raise
        self.ids = ids or ChainedIds(events.description)
        self.texts = Texts(events)
        self.scheme: Scheme = SCHEMES[scheme](self.tables, self.ids)
        self.keys = equivalence_keys(events).columns
        self.hops = hops
        self.walker = Walker(events)
        self.history = History(self.tables["history"], self.ids, self.texts)
        self.history.load()
        self.history.configuration = max(self.history.configuration, self.tables.about.get("configuration", 0))
        self.history.restore(self.walker.slow)
        self.runs: int = self.tables.about.get("runs", 0)
        self._solver = Solver(events.program, {})
        self._classes: OrderedDict[Tuple, list[Way] | None] = OrderedDict()
        self._most = classes if scheme == "advanced" else 0

    @classmethod
    def read(cls, folder: FilePath, functions: Functions | None = None) -> EventStore:
        """The store in a folder, to ask it. Raises StateError."""
        about = read_manifest(folder)["about"]
        program = load(about["program"]["text"], name=about["program"]["name"], functions=functions)
        return cls(event_program(program), folder, scheme=about["scheme"], writing=False)

    def _refuse_another(self, scheme: str) -> None:
        about = self.tables.about
        if about["scheme"] != scheme:
            hint = f"go on with --scheme {about['scheme']}, or begin another store"
            raise StateError([f"{self.folder} is kept by {about['scheme']}, not by {scheme}"], hints=[hint])
        if about["version"] != _version(self.events):
            hint = "trees are made by running the rules again: begin another store for other rules"
            raise StateError([f"{self.folder} was made by other rules"], hints=[hint])

    # -- what comes in

    def load(self, facts: Mapping[str, Iterable[Tuple]]) -> None:
        """Slow tuples that are there from the start."""
        for name, rows in facts.items():
            for row in sorted(rows, key=repr):
                self.change("+", name, row)

    def change(self, op: str, relation: str, row: Tuple, time: float | None = None) -> bool:
        """A slow tuple comes or goes. Whether that changed anything."""
        table = self.walker.slow[relation]
        changed = table.add(row) if op == "+" else table.remove(row)
        if changed:
            self.history.change(op, Fact(relation, row), time)
            self._classes.clear()
        return changed

    def event(self, row: Tuple, time: float | None = None) -> list[Fact]:
        """An event comes in; gives its outputs. Raises EndlessRun, and keeps nothing of the event then."""
        event = Fact(self.events.event, row)
        known = self.ways(row)
        if known is None:
            outputs = self._walk(event)[0]
        else:
            outputs = [(way.path.output(row, self._solver), way.place, way.step) for way in known]
        trail = self.admit(event, time)
        for output, place, step in outputs:
            self.arrived(output, trail.onward(place, step))
        return [output for output, _, _ in outputs]

    def ways(self, row: Tuple) -> list[Way] | None:
        """How events of this one's class come out, its steps written down; None if each has to walk by itself.

        Raises EndlessRun.
        """
        if not self._most:
            return None
        key = self.class_of(row)
        if key in self._classes:
            self._classes.move_to_end(key)
            return self._classes[key]
        found, trees = self._walk(Fact(self.events.event, row))
        try:
            ways = [
                Way(path_of(tree, self.events), place, step)
                for tree, (_, place, step) in zip(trees, found, strict=True)
            ]
        except NotCarried:
            ways = None
        self._classes[key] = ways
        if len(self._classes) > self._most:
            self._classes.popitem(last=False)
        return ways

    def class_of(self, row: Tuple) -> Tuple:
        return tuple(row[column] for column in self.keys)

    def admit(self, event: Fact, time: float | None) -> Trail:
        """Keeps an event that has come in; gives what it takes along."""
        identity = self.ids.tuple_id(event)
        place, text = self.texts.place(event), self.texts.text(event)
        self.tables["events"].insert(
            (place, self.runs, event.relation, text, identity[:SHORT], time, self.history.configuration)
        )
        trail = Trail(identity, self.runs)
        self.runs += 1
        return trail

    def _walk(self, event: Fact) -> tuple[list[tuple[Fact, str, bytes]], list[Proof]]:
        """The whole run of an event, written down step by step: its outputs, each with the step that made it, and their trees."""
        hops = self.walker.run(event, hops=self.hops)
        start = Trail(self.ids.tuple_id(event), self.runs)
        self.scheme.arrive(self.texts.place(event), event, start, self.texts.text(event))
        found: list[tuple[Fact, str, bytes]] = []
        trees: list[Proof] = []
        trails: list[Trail] = []
        for firing, tree, parent in hops:
            place = self.texts.place(firing.event)
            before = start if parent is None else trails[parent]
            trail = self.scheme.fire(place, firing, map(self.ids.tuple_id, firing.slow), before)
            trails.append(trail)
            self.scheme.arrive(self.texts.place(firing.head), firing.head, trail, self.texts.text(firing.head))
            if firing.head.relation in self.events.outputs:
                assert trail.step is not None
                found.append((firing.head, place, trail.step))
                trees.append(tree)
        return found, trees

    @property
    def kept(self) -> tuple[str, ...]:
        """The relations whose trees are in the tables."""
        return () if self.scheme.name == "replay" else self.events.outputs

    def arrived(self, output: Fact, trail: Trail) -> None:
        """An output is at its place."""
        if output.relation not in self.kept:
            return
        short = self.ids.tuple_id(output)[:SHORT]
        self.tables["outputs"].insert((self.texts.place(output), short, trail.place, trail.step, trail.run))

    def commit(self, position: Position | None = None) -> None:
        """Once it returns, everything up to here survives whatever happens to the process."""
        about: dict[str, Any] = {"runs": self.runs, "configuration": self.history.configuration}
        if position is not None:
            about["position"] = dict(position)
        self.tables.commit(**about)

    @property
    def position(self) -> Position:
        """How far into its source the store had come with its last commit."""
        return cast("Position", self.tables.about.get("position", {}))

    def close(self) -> None:
        if self.lock is not None:
            self.lock.release()

    def __enter__(self) -> EventStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _about(program: Program, scheme: str) -> dict[str, Any]:
    name = program.source.segments[0].file.name if program.source.segments else "<program>"
    version = _version(event_program(program))
    return {"program": {"name": name, "text": program.source.text}, "scheme": scheme, "version": version}


def _version(events: EventProgram) -> str:
    return ChainedIds(events.description).version.hex()
