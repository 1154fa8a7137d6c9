"""Events of a streaming DataFrame: a micro-batch is run in tasks, without a shuffle, and becomes part of the store as a whole.

A task has the program and the slow tuples of the moment. It runs its share of the events, writes files beside the store's own,
by place and day, and says which; steps that are new travel back as rows, for they are few. The driver puts the steps in and
replaces the manifest, which names the micro-batch too: one that Spark repeats after a crash is not taken again, and what it had
written before is removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from whence.events.columns import TYPES, ColumnRunner, Letter, Made
from whence.events.program import EventProgram
from whence.events.store import EventStore
from whence.events.tables import LAYOUTS, write_unsynced
from whence.io.arrow import as_stream, from_stream
from whence.io.changes import Changes, Update
from whence.io.updates import DeadLetter, DeadLetterFile
from whence.lang.program import Relation
from whence.lang.types import Tuple
from whence.pipeline.files import StateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_RESULT = "table string, path string, checksum string, rows long, payload binary"
_RESULT_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("path", pa.string()),
        ("checksum", pa.string()),
        ("rows", pa.int64()),
        ("payload", pa.binary()),
    ]
)
_RUNS = 40  # bits for the runs of a micro-batch; of these, for the runs of a task:
_TASK_RUNS = 28


@dataclass(frozen=True)
class BatchReport:
    """What a micro-batch did."""

    batch: int
    events: int
    outputs: int
    letters: int


class EventStream:
    """Puts micro-batches into a store.

    `changes` is asked before each micro-batch for what has changed in slow relations since the last: changes of a session that
    derives them, or updates. Outputs go to `facts_to`, a folder of Parquet files by relation, if it is given.
    """

    def __init__(
        self,
        store: EventStore,
        *,
        changes: Callable[[int], Iterable[Update] | Changes] | None = None,
        facts_to: Path | None = None,
        time: str | None = None,
        on_batch: Callable[[BatchReport], object] | None = None,
    ) -> None:
        if store.folder is None or store.scheme.name != "advanced":
            raise ValueError("events on Spark are kept by the scheme advanced, in a folder")
        relation = store.events.program.relations[store.events.event]
        odd = [each.name for each in relation.fields if each.kind not in TYPES]
        if odd:
            raise ValueError(
                f"column {odd[0]} of {relation.name} is not a symbol or a number: Spark's events have no others"
            )
        self.store = store
        self._changes = changes
        self._facts_to = facts_to
        self._time = time
        self._on_batch = on_batch
        self._letters = DeadLetterFile(
            store.folder / "dead-letters.jsonl", resume=store.tables.commits > 0, repeats=False
        )

    def start(self, events: DataFrame, checkpoint: Path | None = None, **trigger: Any) -> StreamingQuery:
        """A streaming query on a DataFrame that has the columns of the event relation; `trigger` is Spark's."""
        assert self.store.folder is not None
        self._check(events)
        location = checkpoint or self.store.folder / "checkpoint"
        writer = events.writeStream.foreachBatch(self.take).option("checkpointLocation", str(location))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _check(self, events: DataFrame) -> None:
        relation = self.store.events.program.relations[self.store.events.event]
        wanted = [each.name for each in relation.fields] + ([] if self._time is None else [self._time])
        missing = [name for name in wanted if name not in events.columns]
        if missing:
            hint = f"it has the columns {', '.join(events.columns)}"
            raise StateError([f"the DataFrame of events has no column {missing[0]}"], hints=[hint])

    def take(self, events: DataFrame, batch: int) -> None:
        """One micro-batch. One that the store has already is passed over."""
        if batch <= self.store.tables.about.get("batch", -1):
            return
        if self._changes is not None:
            self._apply(self._changes(batch))
        task = _Task(
            self.store.events,
            {name: frozenset(table.rows) for name, table in self.store.walker.slow.items()},
            str(self.store.folder),
            None if self._facts_to is None else str(self._facts_to),
            batch,
            self.store.history.configuration,
            self.store.hops,
            self._time,
        )
        found = events.mapInArrow(task, _RESULT).toArrow()
        self._put_in(found, batch)

    def _apply(self, changes: Iterable[Update] | Changes) -> None:
        for op, relation, row, time in changes:
            if relation in self.store.events.slow:
                self.store.change(op, relation, row, time)

    def _put_in(self, found: pa.Table, batch: int) -> None:
        counts = {"events": 0, "outputs": 0}
        letters = 0
        for row in found.to_pylist():
            name = row["table"]
            if row["path"] is not None and name in LAYOUTS:
                self.store.tables[name].files[row["path"]] = row["checksum"]
                counts[name] += row["rows"]
            elif name in LAYOUTS:
                for each in _rows(row["payload"]):
                    self.store.tables[name].insert(each)
            elif name == "letter":
                letter = json.loads(row["payload"])
                more = f" ({letter['events']:,} events of its class)" if letter["events"] > 1 else ""
                self._letters.add(DeadLetter(0, letter["reason"] + more, letter["record"]), batch=batch)
                letters += letter["events"]
        self.store.runs += counts["events"]
        self.store.tables.commit(runs=self.store.runs, configuration=self.store.history.configuration, batch=batch)
        if self._on_batch is not None:
            self._on_batch(BatchReport(batch, counts["events"], counts["outputs"], letters))


@dataclass(frozen=True)
class _Task:
    """What a task does with its share of a micro-batch."""

    events: EventProgram
    slow: dict[str, frozenset[Tuple]]
    folder: str
    facts_to: str | None
    batch: int
    configuration: int
    hops: int
    time: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - on a worker

        context = TaskContext.get()
        share = 0 if context is None else context.partitionId()
        store = EventStore(self.events, hops=self.hops)
        for name, rows in self.slow.items():
            for row in rows:
                store.walker.slow[name].add(row)
        runner = ColumnRunner(store, self.configuration)
        first = (self.batch << _RUNS) | (share << _TASK_RUNS)
        results: list[dict[str, Any]] = []
        waiting = Made()
        for given in batches:
            batch, refused = self._without_nulls(given)
            results += refused
            made = runner.run(self._columns(batch), self._times(batch), first)
            first += made.runs
            waiting.events += made.events
            waiting.outputs += made.outputs
            for name, tables in made.facts.items():
                waiting.facts.setdefault(name, []).extend(tables)
            results += map(_letter, made.letters)
        results += self._write(waiting, share)
        os.sync()  # before the manifest names any of the files
        results += [
            _result(name, payload=_packed(store.tables[name].fresh, name))
            for name in ("nodes", "links")
            if store.tables[name].fresh
        ]
        yield pa.RecordBatch.from_pylist(results, schema=_RESULT_SCHEMA)

    def _columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [batch.column(each.name).cast(TYPES[each.kind]) for each in self._relation.fields]

    @property
    def _relation(self) -> Relation:
        return self.events.program.relations[self.events.event]

    def _without_nulls(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[dict[str, Any]]]:
        """The rows that have all values, and a letter for each column that lacks some."""
        letters = []
        for each in self._relation.fields:
            missing = batch.column(each.name).is_null()
            if number := pc.sum(missing).as_py():
                example = {name: str(batch.filter(missing).column(name)[0].as_py()) for name in batch.schema.names}
                letter = Letter(json.dumps(example, ensure_ascii=False), f"{each.name} is null", number)
                letters.append(_letter(letter))
                batch = batch.filter(pc.invert(missing))
        return batch, letters

    def _times(self, batch: pa.RecordBatch) -> pa.Array:
        if self.time is None:
            return pa.nulls(len(batch), pa.float64())
        column = batch.column(self.time)
        if pa.types.is_timestamp(column.type):
            return pc.divide(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).cast(pa.float64()), 1e6)
        return column.cast(pa.float64())

    def _write(self, made: Made, share: int) -> Iterator[dict[str, Any]]:
        name = f"{self.batch:08d}-{share:05d}-{uuid4().hex[:8]}.parquet"
        for table, rows in (("events", made.events), ("outputs", made.outputs)):
            if not rows:
                continue
            times = _days(rows, made.events)
            for (place, day), part in _parts(pa.concat_tables(rows), times):
                path = f"place={_safe(place)}/day={day}/{name}"
                total = write_unsynced(part, Path(self.folder) / table / path)
                yield _result(table, path=path, checksum=total, rows=len(part))
        for relation, tables in made.facts.items() if self.facts_to is not None else ():
            rows_of = pa.concat_tables(tables)
            write_unsynced(rows_of, Path(str(self.facts_to)) / relation / name)
            yield _result("fact", path=f"{relation}/{name}", rows=len(rows_of))


def _days(rows: list[pa.Table], events: list[pa.Table]) -> pa.Array:
    """The day of each row: of an event its own, of an output that of its event."""
    if "time" in rows[0].schema.names:
        return _day_texts(pa.concat_tables(rows).column("time"))
    by_run = pa.concat_tables(events).select(["run", "time"])
    runs = pa.concat_tables(rows).column("run")
    at = pc.index_in(runs, by_run.column("run").combine_chunks())
    return _day_texts(by_run.column("time").take(at))


def _day_texts(times: pa.ChunkedArray) -> pa.Array:
    days = pc.floor(pc.divide(times, 86_400.0)).combine_chunks().dictionary_encode()
    names = [
        "unknown" if day is None else datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()
        for day in days.dictionary.to_pylist()
    ]
    if not names:
        return pa.repeat("unknown", len(times))
    return pc.fill_null(pa.array(names).take(days.indices), "unknown")


def _parts(rows: pa.Table, days: pa.Array) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """The rows by place and day."""
    keyed = rows.append_column("#day", days)
    order = pc.sort_indices(keyed, sort_keys=[("place", "ascending"), ("#day", "ascending")])
    ordered = keyed.take(order)
    places, on = ordered.column("place").to_pylist(), ordered.column("#day").to_pylist()
    start = 0
    for at in range(1, len(places) + 1):
        if at == len(places) or (places[at], on[at]) != (places[start], on[start]):
            yield (places[start], on[start]), ordered.slice(start, at - start).drop_columns(["#day"])
            start = at


def _safe(place: str) -> str:
    """A place as part of a path, as Spark and others write such names."""
    return "".join(each if each.isalnum() or each in "-_." else f"%{ord(each):02X}" for each in place) or "%00"


def _letter(letter: Letter) -> dict[str, Any]:
    return _result("letter", payload=json.dumps(asdict(letter)).encode())


def _result(table: str, **values: Any) -> dict[str, Any]:
    return {"table": table, "path": None, "checksum": None, "rows": None, "payload": None, **values}


def _packed(rows: list[tuple[Any, ...]], name: str) -> bytes:
    schema = LAYOUTS[name].schema
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(each, kind.type) for each, kind in zip(columns, schema, strict=True)]
    return as_stream(pa.Table.from_arrays(arrays, schema=schema))


def _rows(payload: bytes) -> Iterator[tuple[Any, ...]]:
    yield from zip(*(column.to_pylist() for column in from_stream(payload).columns), strict=True)
