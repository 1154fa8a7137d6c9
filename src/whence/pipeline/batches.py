"""Micro-batches as epochs. A batch that comes again yields only what has not been applied yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from whence.io.changes import Epoch, Position, Update
from whence.io.json_text import write_json
from whence.io.updates import DeadLetter, DeadLetterFile, Schema, as_json
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.frames import Inputs
from whence.pipeline.records import NumberedLine, cut_epochs


class Batches(Protocol):
    def epochs(self, batch: int, rows: pa.Table, done: Position) -> Iterator[Epoch]:
        """The epochs of a batch that come after `done`, which is where the last applied epoch ended."""
        ...


def is_done(batch: int, done: Position) -> bool:
    """Whether nothing of the batch is left."""
    last = done.get("batch")
    return last is not None and (batch < last or (batch == last and done.get("whole", False)))


@dataclass(frozen=True)
class RelationBatches:
    """Rows of relations: a batch is an epoch, unless it is empty."""

    inputs: Inputs
    letters: DeadLetterFile

    def epochs(self, batch: int, rows: pa.Table, done: Position) -> Iterator[Epoch]:
        if is_done(batch, done):
            return
        updates = list(self.inputs.updates(rows, lambda letter: self.letters.add(letter, batch=batch)))
        if updates:
            yield Epoch(updates, source={"batch": batch, "whole": True}, refuse=self._refusing(batch, updates))

    def _refusing(self, batch: int, updates: Sequence[Update]) -> Callable[[int, str], None]:
        relations, types = {each.name: each for each in self.inputs.relations}, self.inputs.types

        def refuse(at: int, reason: str) -> None:
            op, name, row, _ = updates[at]
            record = {"op": op, "relation": name, "tuple": as_json(row, relations[name], types)}
            self.letters.add(DeadLetter(at + 1, reason, write_json(record)), batch=batch)

        return refuse


@dataclass(frozen=True)
class RecordBatches:
    """JSON records in the column `value`: commits end epochs, and so does the end of the batch. `seq` orders them."""

    schema: Schema
    letters: DeadLetterFile

    def epochs(self, batch: int, rows: pa.Table, done: Position) -> Iterator[Epoch]:
        if is_done(batch, done):
            return iter(())
        if "seq" in rows.column_names:
            rows = rows.take(pc.sort_indices(rows, sort_keys=[("seq", "ascending")]))
        lines = rows.column("value").cast(pa.binary()).to_pylist()
        taken = begin = done.get("rows", 0) if done.get("batch") == batch else 0

        def numbered() -> Iterator[NumberedLine]:
            nonlocal taken
            for line in lines[begin:]:
                taken += 1
                yield NumberedLine(taken, line or b"")

        def bury(letter: DeadLetter, _: Position) -> None:
            self.letters.add(letter, batch=batch)

        def place() -> Position:
            return {"batch": batch, "rows": taken, "whole": taken == len(lines)}

        cutter = EpochCutter(place, was_cut=bool(done.get("cut")))
        return cut_epochs(numbered(), cutter, self.schema, bury)
