"""The log of epochs: what came in and what changed, in Parquet files that are complete or not there.

A segment holds consecutive epochs. Its name says which, and the checksum of its content. A row is an update or a change of
one relation, with the relation's columns filled; what is known of whole epochs stands in the metadata.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whence.io.changes import Changes, Position, Update
from whence.lang.program import Program, Relation
from whence.lang.types import Tuple
from whence.pipeline.columns import decode_rows, encode_rows
from whence.pipeline.files import Damaged, checksum, read_file, write_file

SUFFIX = ".parquet"
_METADATA = b"whence"
_NAME = re.compile(r"(\d{12,})-(\d{12,})-([0-9a-f]+)\.")
_UPDATE, _CHANGE = "update", "change"


@dataclass(frozen=True, slots=True)
class Entry:
    """An epoch as the log keeps it. `changes` are those of the output relations."""

    epoch: int
    updates: Sequence[Update]
    changes: Changes
    now: float | None = None
    source: Position = field(default_factory=Position)


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    first: int
    last: int
    checksum: str

    @property
    def stem(self) -> str:
        return f"{self.first:012d}-{self.last:012d}-{self.checksum}"

    @property
    def name(self) -> str:
        return self.stem + SUFFIX

    @classmethod
    def named(cls, name: str) -> Segment:
        found = cls.of(name)
        assert found is not None
        return found

    @classmethod
    def of(cls, name: str) -> Segment | None:
        """What a name says; None for that of somebody else's file."""
        found = _NAME.match(name)
        return None if found is None else cls(int(found[1]), int(found[2]), found[3])


def write_segment(folder: Path, entries: Sequence[Entry], program: Program) -> Segment:
    data = encode_entries(entries, program)
    segment = Segment(entries[0].epoch, entries[-1].epoch, checksum(data))
    write_file(folder / segment.name, data)
    return segment


def read_segment(folder: Path, segment: Segment, program: Program) -> list[Entry]:
    """Raises Damaged."""
    return decode_entries(read_file(folder / segment.name, segment.checksum), program)


def list_segments(folder: Path, suffix: str = SUFFIX) -> list[Segment]:
    """Those that follow each other, in order; parts of a longer one, which a crash may have left, are not among them."""
    named = (Segment.of(path.name) for path in folder.glob(f"*{suffix}"))
    found = sorted((each for each in named if each is not None), key=lambda each: (each.first, -each.last))
    chosen: list[Segment] = []
    for each in found:
        if not chosen or each.first > chosen[-1].last:
            chosen.append(each)
    return chosen


def remove_leftovers(folder: Path, used: Iterable[str]) -> None:
    """What is not among the names: parts of merged segments, forgotten epochs, files that were never completed.

    What somebody else put there stays.
    """
    names = set(used)
    for path in folder.iterdir():
        if path.name not in names and path.is_file() and Segment.of(path.name) is not None:
            path.unlink(missing_ok=True)


def chain(
    folder: Path, segments: Sequence[Segment], after: int, last: int = 0, *, without: Collection[int] = ()
) -> list[Segment]:
    """The segments that hold the epochs after one, up to `last` at least, without a gap but for some. Raises Damaged."""

    def following(epoch: int) -> int:
        return following(epoch + 1) if epoch + 1 in without else epoch + 1

    wanted = [each for each in segments if each.last > after]
    expected = following(after)
    for each in wanted:
        if each.first != expected:
            raise Damaged(folder, f"epochs {expected} to {each.first - 1} are missing")
        expected = following(each.last)
    if expected <= last:
        raise Damaged(folder, f"epochs {expected} to {last} are missing")
    return wanted


# -- content ----------------------------------------------------------------------------------------------------------


@dataclass
class _Rows:
    """The rows of one relation in a segment, column by column."""

    epochs: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    tuples: list[Tuple] = field(default_factory=list)

    def add_update(self, epoch: int, update: Update) -> None:
        self.epochs.append(epoch)
        self.kinds.append(_UPDATE)
        self.ops.append(update.op)
        self.times.append(update.time)
        self.tuples.append(update.tuple)

    def add_changes(self, epoch: int, op: str, tuples: Sequence[Tuple]) -> None:
        self.epochs += [epoch] * len(tuples)
        self.kinds += [_CHANGE] * len(tuples)
        self.ops += [op] * len(tuples)
        self.times += [None] * len(tuples)
        self.tuples += tuples

    def table(self, relation: Relation, program: Program) -> pa.Table:
        columns = {
            "epoch": pa.array(self.epochs, pa.int64()),
            "kind": pa.array(self.kinds, pa.string()),
            "relation": pa.repeat(relation.name, len(self.epochs)),
            "op": pa.array(self.ops, pa.string()),
            "time": pa.array(self.times, pa.float64()),
        }
        encoded = encode_rows(self.tuples, relation.fields, program.types)
        return pa.table(columns | dict(zip(_column_names(relation), encoded, strict=True)))


def _column_names(relation: Relation) -> list[str]:
    return [f"{relation.name}.{each.name}" for each in relation.fields]


def encode_entries(entries: Sequence[Entry], program: Program) -> bytes:
    rows: defaultdict[str, _Rows] = defaultdict(_Rows)
    for entry in entries:
        for update in entry.updates:
            rows[update.relation].add_update(entry.epoch, update)
        for op, side in (("-", entry.changes.deleted), ("+", entry.changes.inserted)):
            for relation, tuples in side.items():
                rows[relation].add_changes(entry.epoch, op, tuples)
    tables = [each.table(program.relations[name], program) for name, each in rows.items()]
    table = (
        pa.concat_tables(tables, promote_options="default") if tables else pa.table({"epoch": pa.array([], pa.int64())})
    )
    headers: list[dict[str, object]] = [
        {"epoch": each.epoch, "now": each.now, "source": dict(each.source), "ignored": each.changes.ignored}
        for each in entries
    ]
    buffer = BytesIO()
    pq.write_table(table.replace_schema_metadata({_METADATA: json.dumps(headers)}), buffer, compression="zstd")
    return buffer.getvalue()


def decode_entries(data: bytes, program: Program) -> list[Entry]:
    # Threads cost more than they save: what takes time is the tuples.
    table = pq.ParquetFile(BytesIO(data)).read(use_threads=False)
    updates: defaultdict[int, list[Update]] = defaultdict(list)
    changes: defaultdict[int, _Changed] = defaultdict(_Changed)
    if len(table):
        for name in pc.unique(table.column("relation")).to_pylist():
            for epoch, kind, update in _rows(table, program.relations[name], program):
                if kind == _UPDATE:
                    updates[epoch].append(update)
                else:
                    changes[epoch].add(update)
    return [
        Entry(
            epoch := header["epoch"],
            updates[epoch],
            Changes(changes[epoch].inserted, changes[epoch].deleted, header["ignored"]),
            header["now"],
            header["source"],
        )
        for header in json.loads(table.schema.metadata[_METADATA])
    ]


def _rows(table: pa.Table, relation: Relation, program: Program) -> Iterator[tuple[int, str, Update]]:
    own = table.filter(pc.equal(table.column("relation"), relation.name))
    columns = [own.column(name) for name in _column_names(relation)]
    tuples = decode_rows(columns, relation.fields, program.types) if columns else [()] * len(own)
    epochs, kinds, ops, times = (own.column(name).to_pylist() for name in ("epoch", "kind", "op", "time"))
    for epoch, kind, op, row, time in zip(epochs, kinds, ops, tuples, times, strict=True):
        yield epoch, kind, Update(op, relation.name, row, time)


@dataclass
class _Changed:
    inserted: dict[str, list[Tuple]] = field(default_factory=dict)
    deleted: dict[str, list[Tuple]] = field(default_factory=dict)

    def add(self, change: Update) -> None:
        side = self.inserted if change.op == "+" else self.deleted
        side.setdefault(change.relation, []).append(change.tuple)
