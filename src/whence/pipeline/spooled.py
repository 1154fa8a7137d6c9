"""Lines of update records maintained on Spark, with the epochs that the lines themselves make."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from whence.io.changes import Epoch, Position
from whence.io.updates import Schema
from whence.pipeline.batches import is_done
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.keeper import Keeper
from whence.pipeline.lines import Lines
from whence.pipeline.parts.keeping import Keeping
from whence.pipeline.records import Bury, NumberedLine, cut_epochs
from whence.pipeline.spool import EpochEnds, FilePlace, Spool
from whence.pipeline.streaming import Maintenance, query_id, read_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKED = 0.5


@dataclass(frozen=True)
class SpoolBatches:
    """The files of a spool, by name; each of them holds whole epochs."""

    spool: Spool
    schema: Schema
    size: int | None
    bury: Bury

    def epochs(self, batch: int, rows: pa.Table, done: Position) -> Iterator[Epoch]:
        ordered = rows.take(pc.sort_indices(rows, sort_keys=[("file", "ascending"), ("block", "ascending")]))
        names = [Path(name).name for name in ordered.column("file").to_pylist()]
        if not is_done(batch, done):
            lines = zip(names, ordered.column("value").to_pylist(), strict=True)
            files = {name: [line for _, line in each] for name, each in groupby(lines, key=lambda each: each[0])}
            yield from self._epochs(batch, files, done)
        self.spool.taken(set(names))

    def _epochs(self, batch: int, files: Mapping[str, list[bytes]], done: Position) -> Iterator[Epoch]:
        begin = done.get("rows", 0) if done.get("batch") == batch else 0
        total = sum(map(len, files.values()))
        taken = 0
        current = FilePlace(next(iter(files.values())))

        def numbered() -> Iterator[NumberedLine | None]:
            nonlocal taken, current
            for name, lines in files.items():
                current = FilePlace(lines, self.spool.records(name))
                taken += 1
                for each in current:
                    taken += 1
                    if taken > begin:
                        yield each
                if taken > begin:
                    yield None

        def place() -> Position:
            return {**current.source, "batch": batch, "rows": taken, "whole": taken == total}

        cutter = EpochCutter(place, self.size, was_cut=bool(done.get("cut")))
        return cut_epochs(numbered(), cutter, self.schema, self.bury)


@dataclass(frozen=True)
class SpooledRun:
    """Takes lines through Spark. `folder` holds the spool and Spark's checkpoint."""

    keeping: Keeping
    keeper: Keeper
    folder: Path
    schema: Schema
    size: int | None
    bury: Bury

    def begin(self) -> Position:
        """Where reading goes on: after the last line in the spool, or after the last epoch."""
        checkpoint = self.folder / "checkpoint"
        query = self.keeper.source.get("query")
        if self.keeper.epoch and (query is None or query != query_id(checkpoint)):
            # The last epoch did not come through this checkpoint: what is left of it is older.
            for path in (checkpoint, self.folder / "spool"):
                shutil.rmtree(path, ignore_errors=True)
        return Spool(self.folder / "spool").end() or self.keeper.source

    def run(self, lines: Lines, spark: SparkSession) -> Keeper:
        """Until the lines end. Gives the keeper that came to the end. Raises what an epoch raises."""
        spool = Spool(self.folder / "spool")
        batches = SpoolBatches(spool, self.schema, self.size, self.bury)
        frame = read_folder(spark, spool.folder)
        maintenance = Maintenance(self.keeping, self.keeper, frame, batches, self.folder / "checkpoint")
        try:
            lines.stopped = _either(lines.stopped, _has_ended(maintenance))
            spool.fill(lines, EpochEnds(self.schema, self.size), lines.stopped)
            maintenance.finish()
        finally:
            maintenance.stop()
        return maintenance.keeper


def _either(one: Callable[[], bool], other: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: one() or other()


def _has_ended(maintenance: Maintenance) -> Callable[[], bool]:
    """Asked for every line, but Java is not."""
    checked = time.monotonic()
    ended = False

    def has_ended() -> bool:
        nonlocal checked, ended
        if time.monotonic() - checked >= _CHECKED:
            checked, ended = time.monotonic(), not maintenance.query.isActive
        return ended

    return has_ended
