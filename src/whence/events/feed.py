"""Lines of update records into a store: events, and changes of slow relations between them, in their order.

What cannot be taken goes to the dead letters with the reason, as for any run. So does, in a copy, an event that led to no
output: it is kept all the same, and `whynot` explains it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from whence.events.shortfall import first_shortfall
from whence.events.store import EventStore
from whence.events.walk import EndlessRun
from whence.io.changes import Position, Update
from whence.io.updates import DeadLetter, Schema, Tick, parse_record
from whence.pipeline.lines import Lines
from whence.provenance.graph import Fact

COMMIT_EVERY = 20_000


@dataclass
class Feed:
    """`bury` gets the dead letters, `deliver` the outputs of each event as it has been run."""

    store: EventStore
    bury: Callable[[DeadLetter, str], object]
    deliver: Callable[[int, list[Fact]], object] = lambda _run, _outputs: None
    commit_every: int = COMMIT_EVERY
    events: int = 0
    outputs: int = 0
    changes: int = 0
    ignored: int = 0
    _since: int = 0
    _clock: float | None = None
    _buried: list[tuple[DeadLetter, str]] = field(default_factory=list)

    def take(self, lines: Lines) -> None:
        """All lines, from where the store had come to."""
        program = self.store.events.program
        base = frozenset((self.store.events.event, *self.store.events.slow))
        schema = Schema(program.relations, base, program.types)
        for numbered in lines.numbered():
            if numbered is None:
                continue
            number, line = numbered.number, numbered.text
            record = parse_record(line, number, schema)
            if isinstance(record, DeadLetter):
                self._buried.append((record, lines.name))
            elif isinstance(record, Tick):
                self._clock = record.time
            elif isinstance(record, Update):
                self._update(record, number, line, lines.name)
            self._since += 1
            if self._since >= self.commit_every:
                self._commit(lines.place())
        self._commit(lines.place())

    def _update(self, update: Update, number: int, line: bytes, name: str) -> None:
        time = self._clock if update.time is None else update.time
        text = line.decode(errors="backslashreplace").strip()
        if update.relation != self.store.events.event:
            changed = self.store.change(update.op, update.relation, update.tuple, time)
            self.changes += changed
            self.ignored += not changed
            return
        if update.op == "-":
            reason = f"{update.relation} is an event: what has happened cannot be taken back"
            self._buried.append((DeadLetter(number, reason, text), name))
            return
        event = Fact(update.relation, update.tuple)
        try:
            outputs = self.store.event(update.tuple, time)
        except EndlessRun as error:
            self._buried.append((DeadLetter(number, str(error), text), name))
            return
        self.events += 1
        self.outputs += len(outputs)
        if not outputs:
            self._buried.append((DeadLetter(number, first_shortfall(self.store, event), text), name))
        self.deliver(self.store.runs - 1, outputs)

    def _commit(self, position: Position) -> None:
        # What is buried twice after a crash is better than what is not buried at all.
        for letter, name in self._buried:
            self.bury(letter, name)
        self._buried = []
        self.store.commit(position)
        self._since = 0


def output_line(run: int, fact: Fact, store: EventStore) -> str:
    values = json.loads(store.texts.text(fact))
    return json.dumps({"run": run, "relation": fact.relation, "tuple": values}, ensure_ascii=False)
