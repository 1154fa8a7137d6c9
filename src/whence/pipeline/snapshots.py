"""Snapshots: the base tuples with their times and the output relations, as they are after an epoch.

A snapshot is a folder with a Parquet file for each relation. It counts once the manifest names it, with checksums.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from whence.io.changes import Position
from whence.io.json_text import Json
from whence.io.updates import reported_writing
from whence.lang.program import Program, Relation
from whence.lang.tables import behind_tables
from whence.lang.types import Tuple, Types
from whence.pipeline.base import Base
from whence.pipeline.columns import decode_rows, encode_rows, encode_view
from whence.pipeline.files import checksum, read_file, reported_reading, sync_folder, write_file
from whence.view import View

_TIME = "whence.time"
_PRESENT = "whence.present"  # what a relation without columns has for one


Rows = Sequence[Tuple] | View


@dataclass(frozen=True)
class Snapshot:
    """`files` are paths below the snapshot's folder with their checksums; `source` is where its last epoch ended."""

    epoch: int
    clock: float
    source: Position
    files: Mapping[str, str]
    tuples: int

    @property
    def name(self) -> str:
        return f"{self.epoch:012d}"

    def as_json(self) -> dict[str, Json]:
        return asdict(self)


def write_snapshot(
    folder: Path,
    base: Base,
    views: Mapping[str, Rows],
    program: Program,
    *,
    epoch: int,
    source: Position,
    part: str = "",
) -> Snapshot:
    """`part` is the folder of one part of the state, if it is kept in parts."""
    own = folder / f"{epoch:012d}"
    with reported_writing(own):
        if (own / part).exists():
            shutil.rmtree(own / part)  # left there by a crash: no manifest names it
        for what in ("base", "views"):
            (own / part / what).mkdir(parents=True)
    files: dict[str, str] = {}
    for name, rows in base.rows.items():
        times = base.windows.times(name)
        listed = list(times) if name in base.windows.kept else list(rows)
        table = as_table(listed, program.relations[name], program.types)
        if name in base.windows.kept:
            table = table.append_column(_TIME, pa.array(times.values(), pa.float64()))
        path = _path(part, "base", name)
        files[path] = write_table(own / path, table)
    for name, view in views.items():
        table = as_table(view, program.relations[name], program.types)
        path = _path(part, "views", name)
        files[path] = write_table(own / path, table)
    sync_folder(own / part)
    sync_folder(own)
    sync_folder(folder)
    count = sum(map(len, base.rows.values()))
    return Snapshot(epoch, base.windows.clock, source, files, count)


def read_base(folder: Path, snapshot: Snapshot, program: Program, part: str = "") -> Base:
    """Raises Damaged."""
    base = Base(program)
    base.windows.advance(snapshot.clock)
    behind = behind_tables(program)
    for name in base.rows:
        relation, path = program.relations[name], _path(part, "base", name)
        if name in behind and path not in snapshot.files:  # of a state that knew nothing of copies
            continue
        table = _read(folder / snapshot.name, path, snapshot)
        rows = from_table(table, relation, program.types)
        times: Iterable[float] = table.column(_TIME).to_pylist() if _TIME in table.column_names else [0.0] * len(rows)
        base.restore(name, zip(rows, times, strict=True))
    return base


def read_view(folder: Path, snapshot: Snapshot, relation: Relation, types: Types, part: str = "") -> set[Tuple]:
    """Raises Damaged."""
    table = _read(folder / snapshot.name, _path(part, "views", relation.name), snapshot)
    return set(from_table(table, relation, types))


def count_view(folder: Path, snapshot: Snapshot, relation: str, part: str = "") -> int:
    """How many rows a view has."""
    path = folder / snapshot.name / _path(part, "views", relation)
    with reported_reading(path):
        rows: int = pq.read_metadata(path).num_rows
    return rows


def remove_others(folder: Path, kept: Iterable[Snapshot]) -> None:
    """Snapshots that are not among those given. What somebody else put there stays."""
    names = {each.name for each in kept}
    for path in folder.iterdir():
        if path.name not in names and path.name.isdecimal() and path.is_dir():
            shutil.rmtree(path)


def check_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Raises Damaged if a file of it is not as it was written."""
    for path, expected in snapshot.files.items():
        read_file(folder / snapshot.name / path, expected)


def as_table(rows: Rows, relation: Relation, types: Types) -> pa.Table:
    if not relation.fields:
        return pa.table({_PRESENT: pa.array([True] * len(rows), pa.bool_())})
    columns = encode_view(rows, types) if isinstance(rows, View) else encode_rows(rows, relation.fields, types)
    return pa.table(columns, names=[each.name for each in relation.fields])


def from_table(table: pa.Table, relation: Relation, types: Types) -> list[Tuple]:
    if not relation.fields:
        return [()] * len(table)
    return decode_rows([table.column(each.name) for each in relation.fields], relation.fields, types)


def write_table(path: Path, table: pa.Table) -> str:
    """Its checksum."""
    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    data = buffer.getvalue()
    write_file(path, data)
    return checksum(data)


def file_name(relation: str) -> str:
    return f"{quote(relation, safe='')}.parquet"


def _path(part: str, what: str, relation: str) -> str:
    return f"{part and part + '/'}{what}/{file_name(relation)}"


def _read(own: Path, path: str, snapshot: Snapshot) -> pa.Table:
    return pq.read_table(BytesIO(read_file(own / path, snapshot.files[path])))
