"""Strata evaluated inside tasks, on the local backend: one Spark job whatever the depth of the recursion.

One task gets all rows. A stratum that decomposes runs in several: each gets the rows of its part, found by the hash of the column
that the rules carry through, and a copy of what the rules need whole. What a part derives stays in the part, so that nothing is
exchanged between rounds. Relations so small that Spark would broadcast them for a join come to all tasks by way of the driver,
and a task leaves out the rows of other parts; larger ones are shuffled, with a copy for each part of what is needed whole.
What a recursion begins with is often one of the relations that it reads: such rows are collected and sent once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from whence.backends.local import parallel
from whence.backends.local.arrays import Lines
from whence.backends.local.backend import LocalBackend
from whence.backends.local.shared import Shared
from whence.backends.local.words import Dictionary
from whence.backends.spark.arrow import Texts, from_words, to_words
from whence.backends.spark.packing import TAG, Packing
from whence.backends.spark.shapes import Shapes
from whence.backends.spark.sizes import estimated_size
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer
from whence.io.arrow import as_stream, from_stream
from whence.lang.program import Program
from whence.limits import Limits
from whence.plan import compile_plan

# Rows that a task hands to Spark at a time.
PORTION = 1 << 16
PART = "part"
_NO_RELATION = -1


@dataclass(frozen=True)
class Sent:
    """A relation that all tasks get: a stream of Arrow, and the column that says which part a row belongs to, if it is split."""

    stream: bytes
    part: str | None


@dataclass(frozen=True)
class Fragment:
    """Part of a program, to be evaluated in a task: what is shipped to the executors.

    `is_alone` if no other task of the job has anything to do meanwhile, so that this one may take a second core. `is_whole` if
    rows come in for base relations only, so that the others are derived no further than what goes out needs them. `broadcast`
    are relations that all tasks get.
    """

    program: Program
    incoming: Packing
    outgoing: Packing
    limits: Limits
    is_alone: bool = True
    is_whole: bool = False
    broadcast: Broadcast[dict[str, Sent]] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shapes, shared = Shapes(self.program.types), Shared()
        shared.dictionary.learn(self.program.types)
        rows = self._read(batches, shared.dictionary, shapes)
        sizes = {name: len(lines) for name, lines in rows.items()}
        wanted = self.outgoing.relations if self.is_whole else None
        plan = compile_plan(self.program, wanted, sizes, lean=self.is_whole)
        backend = LocalBackend(plan.program, shared)
        maintainer = Maintainer(plan, backend, Guard(self.program, self.limits))
        with warnings.catch_warnings(), nullcontext() if self.is_alone else parallel.on_one_core():
            # There is nobody to read them here; what is undefined derives nothing, as everywhere.
            warnings.simplefilter("ignore")
            maintainer.apply_encoded({}, rows)
        yield from self._write(backend, shapes)

    def _read(self, batches: Iterator[pa.RecordBatch], dictionary: Dictionary, shapes: Shapes) -> dict[str, Lines]:
        portions: dict[str, list[Lines]] = {}
        for name, batch in self._relations(batches):
            lines: Lines = np.empty((batch.num_rows, batch.num_columns), dtype=np.int64)
            kinds = (each.kind for each in self.incoming.relations[name].fields)
            for at, (array, kind) in enumerate(zip(batch.columns, kinds, strict=True)):
                lines[:, at] = to_words(array, kind, shapes, dictionary)
            portions.setdefault(name, []).append(lines)
        return {name: np.concatenate(found) for name, found in portions.items()}

    def _relations(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        part = None
        for batch in batches:
            if self.broadcast is not None and part is None and batch.num_rows:
                part = batch.column(PART)[0]
            yield from self.incoming.split(batch)
        for name, sent in ({} if self.broadcast is None else self.broadcast.value).items():
            rows = from_stream(sent.stream)
            if sent.part is not None:
                rows = rows.filter(pc.equal(rows[sent.part], part))
            own = [f"c{at}" for at in range(len(self.incoming.places[name]))]
            yield from ((name, batch.select(own)) for batch in rows.to_batches() if batch.num_rows)

    def _write(self, backend: LocalBackend, shapes: Shapes) -> Iterator[pa.RecordBatch]:
        texts = Texts(backend.dictionary)
        for name in self.outgoing.relations:
            table = backend.table(name)
            every = table.ids()
            for start in range(0, len(every), PORTION):
                ids = every[start : start + PORTION]
                arrays = [
                    from_words(table.column(ids, at), kind, shapes, backend.dictionary, texts)
                    for at, kind in enumerate(backend.kinds[name])
                ]
                yield self.outgoing.batch(name, arrays, len(ids))


def run_in_task(spark: SparkSession, fragment: Fragment, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """The packed results of a fragment that one task evaluates."""
    packing = fragment.incoming
    # Without a row to begin with there may be no task at all.
    frames = [_starts(spark, packing, 1), *(packing.pack(name, frame) for name, frame in inputs.items())]
    packed = reduce(DataFrame.union, frames)
    return packed.coalesce(1).mapInArrow(fragment.__call__, fragment.outgoing.ddl)


def run_in_parts(
    spark: SparkSession, fragment: Fragment, inputs: Mapping[str, DataFrame], split: Mapping[str, int], parts: int
) -> DataFrame:
    """The packed results of a fragment, in parts: `split` names the column by which a relation's rows are told apart."""
    packing = fragment.incoming
    hashes = {name: f"int(pmod(xxhash64(c{column}), {parts}))" for name, column in split.items()}
    limit = _limit_of_broadcasts(spark)
    broadcast: dict[str, Sent] = {}
    # So that each task knows which part is its own.
    packed = _starts(spark, packing, parts, [f"int(id) as {PART}"])
    for frame, names in _by_frame(inputs):
        if estimated_size(frame) <= limit:
            broadcast |= _collected(frame, names, hashes)
            continue
        for name in names:
            part = hashes.get(name, f"explode(sequence(0, {parts - 1}))")
            packed = packed.union(packing.pack(name, frame, [f"{part} as {PART}"]))
    if len(broadcast) < len(inputs):
        packed = packed.repartitionById(parts, PART)
    sent = spark.sparkContext.broadcast(broadcast) if broadcast else None
    return packed.mapInArrow(replace(fragment, is_alone=parts == 1, broadcast=sent).__call__, fragment.outgoing.ddl)


def _by_frame(inputs: Mapping[str, DataFrame]) -> Iterable[tuple[DataFrame, list[str]]]:
    """Each DataFrame, with the relations whose rows it has."""
    found: dict[int, tuple[DataFrame, list[str]]] = {}
    for name, frame in inputs.items():
        found.setdefault(id(frame), (frame, []))[1].append(name)
    return found.values()


def _collected(frame: DataFrame, names: Sequence[str], hashes: Mapping[str, str]) -> dict[str, Sent]:
    """Relations that have the same rows."""
    distinct = dict.fromkeys(hashes[name] for name in names if name in hashes)
    columns = {hashed: f"{PART}{at}" for at, hashed in enumerate(distinct)}
    stream = as_stream(
        frame.selectExpr("*", *(f"{hashed} as {column}" for hashed, column in columns.items())).toArrow()
    )
    return {name: Sent(stream, columns[hashes[name]] if name in hashes else None) for name in names}


def _starts(spark: SparkSession, packing: Packing, tasks: int, extra: Sequence[str] = ()) -> DataFrame:
    """A row of no relation for each task."""
    nulls = (f"cast(null as {each}) as p{at}" for at, each in enumerate(packing.sql_types))
    return spark.range(0, tasks, 1, tasks).selectExpr(f"{_NO_RELATION} as {TAG}", *nulls, *extra)


def _limit_of_broadcasts(spark: SparkSession) -> int:
    """Bytes, or -1 for none, as `spark.sql.autoBroadcastJoinThreshold` says."""
    return int(spark._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())  # noqa: SLF001 - Spark offers no other way
