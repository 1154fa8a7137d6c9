"""The tables of an event store: rows that are never changed, in Parquet files that a manifest names.

What has been put in becomes durable with `commit`: new rows go to new files, and then the manifest is replaced as a whole. A
process that ends in between leaves files that no manifest names; they are removed when the store is next opened to write.
Every row has a place and an id; in tables whose ids are digests of their rows, a row is put in once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from whence.io.updates import reported_writing
from whence.pipeline.files import Damaged, StateError, checksum, reported_reading, write_file

FORMAT = 1
MANIFEST = "manifest.json"
_ID = pa.binary(20)
_LEVEL = 3
_FEW = 200_000  # rows of a table that are kept in memory once one of them is looked up

Row = tuple[Any, ...]


class Layout(NamedTuple):
    """The columns of a table; `unique` says that a row's place and id name its content."""

    schema: pa.Schema
    unique: bool


def _layout(*columns: tuple[str, pa.DataType], unique: bool = True) -> Layout:
    return Layout(pa.schema(columns), unique)


_PLACE, _IDS, _TEXT, _RUN = pa.string(), pa.list_(_ID), pa.string(), pa.int64()
_SHORT = pa.binary(4)
LAYOUTS: Mapping[str, Layout] = {
    # What came in, one row a run. `short` is how the tuple's id begins: enough to look it up, for what is found is compared.
    "events": _layout(
        ("place", _PLACE), ("run", _RUN), ("relation", _TEXT), ("tuple", _TEXT), ("short", _SHORT), ("time", pa.float64()),
        ("configuration", pa.int64()), unique=False,
    ),
    # What came out: the beginning of the tuple's id, the step that made it, and the run.
    "outputs": _layout(
        ("place", _PLACE), ("short", _SHORT), ("at_place", _PLACE), ("at", _ID), ("run", _RUN), unique=False
    ),
    # Slow relations: `configuration` counts the changes of all of them.
    "history": _layout(
        ("place", _PLACE), ("id", _ID), ("relation", _TEXT), ("tuple", _TEXT), ("op", _TEXT),
        ("configuration", pa.int64()), ("time", pa.float64()), unique=False,
    ),
    # advanced: steps that events share, and the chains that they make.
    "nodes": _layout(("place", _PLACE), ("id", _ID), ("rule", _TEXT), ("slow", _IDS)),
    "links": _layout(("place", _PLACE), ("id", _ID), ("node", _ID), ("next_place", _PLACE), ("next", _ID)),
    # basic and exspan: steps of one event.
    "executions": _layout(
        ("place", _PLACE), ("id", _ID), ("rule", _TEXT), ("slow", _IDS), ("event", _ID), ("next_place", _PLACE), ("next", _ID)
    ),
    # exspan: every tuple, and what made it.
    "tuples": _layout(("place", _PLACE), ("id", _ID), ("relation", _TEXT), ("tuple", _TEXT)),
    "derivations": _layout(
        ("place", _PLACE), ("id", _ID), ("at_place", _PLACE), ("at", _ID), ("run", _RUN), unique=False
    ),
}  # fmt: skip


@dataclass
class StoredTable:
    """Rows on disk, and those put in since the last commit."""

    name: str
    folder: Path | None
    files: dict[str, str] = field(default_factory=dict)  # with their checksums
    fresh: list[Row] = field(default_factory=list)
    _known: set[tuple[str, bytes]] | None = None
    _by_id: dict[tuple[str, bytes], Row] | None = None
    _fresh_by_id: dict[tuple[str, bytes], Row] = field(default_factory=dict)
    _indexes: dict[str, dict[object, list[Row]]] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.name]

    def insert(self, row: Row) -> bool:
        """Whether the row was not there yet."""
        if self.layout.unique:
            key = row[0], row[1]
            known = self._all_known()
            if key in known:
                return False
            known.add(key)
            self._fresh_by_id[key] = row
        self.fresh.append(row)
        return True

    def find(self, place: str, identity: bytes) -> Row | None:
        """The row of a table whose ids are unique."""
        key = place, identity
        if (row := self._fresh_by_id.get(key)) is not None:
            return row
        if self._by_id is None and self.stored() <= _FEW:
            self._by_id = {(row[0], row[1]): row for row in self._read()}
        if self._by_id is not None:
            return self._by_id.get(key)
        condition = (ds.field("place") == place) & (ds.field("id") == pa.scalar(identity, _ID))
        return next(self._read(condition), None)

    def where(self, column: str, value: object) -> list[Row]:
        """The rows with a value in a column."""
        at = self.layout.schema.get_field_index(column)
        return [*self._stored_where(column, at, value), *(row for row in self.fresh if row[at] == value)]

    def _stored_where(self, column: str, at: int, value: object) -> Iterable[Row]:
        if column in self._indexes or self.stored() <= _FEW:
            if column not in self._indexes:
                index: dict[object, list[Row]] = {}
                for row in self._read():
                    index.setdefault(row[at], []).append(row)
                self._indexes[column] = index
            return self._indexes[column].get(value, ())
        return self._read(ds.field(column) == pa.scalar(value, self.layout.schema.field(at).type))

    def __iter__(self) -> Iterator[Row]:
        yield from self._read()
        yield from self.fresh

    def __len__(self) -> int:
        return self.stored() + len(self.fresh)

    def stored(self) -> int:
        total = 0
        for name in self.files:
            with reported_reading(self.path / name):
                total += pq.read_metadata(self.path / name).num_rows
        return total

    @property
    def path(self) -> Path:
        assert self.folder is not None
        return self.folder / self.name

    def sizes(self) -> dict[str, int]:
        """Bytes on disk, by column."""
        found = dict.fromkeys(self.layout.schema.names, 0)
        for name in self.files:
            metadata = pq.read_metadata(self.path / name)
            for group in range(metadata.num_row_groups):
                for at in range(metadata.num_columns):
                    column = metadata.row_group(group).column(at)
                    found[column.path_in_schema.split(".")[0]] += column.total_compressed_size
        return found

    def _all_known(self) -> set[tuple[str, bytes]]:
        if self._known is None:
            self._known = {(row[0], row[1]) for row in self._read(columns=("place", "id"))}
        return self._known

    def _read(self, condition: ds.Expression | None = None, columns: Sequence[str] | None = None) -> Iterator[Row]:
        if not self.files:
            return
        paths = [str(self.path / name) for name in sorted(self.files)]
        for name in self.files:
            with reported_reading(self.path / name):
                (self.path / name).stat()
        try:
            source = ds.dataset(paths, schema=self.layout.schema, format="parquet")
            for batch in source.to_batches(filter=condition, columns=columns and list(columns)):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
        except pa.ArrowInvalid as error:
            raise Damaged(self.path, f"the files cannot be read: {error}") from None

    def write(self, rows: Iterable[Row], name: str) -> None:
        """A new file with the rows, which is part of the store once the manifest names it."""
        columns = list(zip(*rows, strict=True))
        arrays = [pa.array(column, each.type) for column, each in zip(columns, self.layout.schema, strict=True)]
        self.files[name] = write_table(pa.Table.from_arrays(arrays, schema=self.layout.schema), self.path / name)

    def forget(self) -> None:
        """The files are others than before."""
        self._known = self._by_id = None
        self._indexes = {}

    def written(self) -> None:
        """What was fresh is on disk now."""
        if self._by_id is not None:
            self._by_id.update(self._fresh_by_id)
        self._indexes = {}
        self.fresh, self._fresh_by_id = [], {}


def as_parquet(rows: pa.Table) -> bytes:
    """Runs grow, so they are written as differences; ids and texts of events hardly repeat, everything else does."""
    names = rows.schema.names
    deltas = {name: "DELTA_BINARY_PACKED" for name in ("run", "configuration") if name in names}
    repeated = [name for name in names if name not in (*deltas, "short", "tuple")]
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[_leaf(rows.schema.field(name)) for name in repeated],
        column_encoding=deltas,
        write_statistics=["short", "run", "time"] if "short" in names else True,
    )
    return bytes(sink.getvalue())


def _leaf(column: pa.Field) -> str:
    return f"{column.name}.list.element" if pa.types.is_list(column.type) else column.name


def write_table(rows: pa.Table, path: Path) -> str:
    """Writes a file of a table; gives its checksum."""
    data = as_parquet(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, data)
    return checksum(data)


def write_unsynced(rows: pa.Table, path: Path) -> str:
    """The same, to survive a power failure only once `os.sync` has been called: cheaper where there are many files."""
    data = as_parquet(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with reported_writing(path):
        path.write_bytes(data)
    return checksum(data)


class Tables:
    """All tables of a store. Without a folder they are kept in memory only."""

    def __init__(self, folder: Path | None, about: Mapping[str, Any], *, writing: bool = True) -> None:
        self.folder = folder
        self.about = dict(about)
        self.commits = 0
        self._tables = {name: StoredTable(name, folder) for name in LAYOUTS}
        if folder is not None and (folder / MANIFEST).exists():
            self._open(folder)
            if writing:
                self._remove_leftovers()

    def __getitem__(self, name: str) -> StoredTable:
        return self._tables[name]

    def __iter__(self) -> Iterator[StoredTable]:
        return iter(self._tables.values())

    def commit(self, **about: Any) -> None:
        """Makes durable what has been put in, with what is said about the store from now on."""
        self.about |= about
        if self.folder is None:
            return
        self.commits += 1
        name = f"{self.commits:08d}.parquet"
        for table in self:
            if table.fresh:
                table.write(table.fresh, name)
        self._publish()
        for table in self:
            table.written()

    def replace(self, rows: Mapping[str, Iterable[Row]]) -> None:
        """Other rows for some tables, all of them at once. Nothing may be fresh."""
        assert self.folder is not None
        self.commits += 1
        old: list[Path] = []
        for name, kept in rows.items():
            table = self._tables[name]
            old += [table.path / each for each in table.files]
            table.files = {}
            if listed := list(kept):
                table.write(listed, f"{self.commits:08d}.parquet")
            table.forget()
        self._publish()
        for path in old:
            path.unlink(missing_ok=True)

    def _publish(self) -> None:
        assert self.folder is not None
        files = {table.name: table.files for table in self if table.files}
        content = {"format": FORMAT, "commits": self.commits, "about": self.about, "files": files}
        body = json.dumps(content, sort_keys=True)
        data = json.dumps({**content, "checksum": checksum(body.encode())}, indent=1, ensure_ascii=False)
        write_file(self.folder / MANIFEST, data.encode())

    def _open(self, folder: Path) -> None:
        content = read_manifest(folder)
        self.commits, self.about = content["commits"], content["about"]
        for name, files in content["files"].items():
            self._tables[name].files = files

    def _remove_leftovers(self) -> None:
        for table in self:
            for path in table.path.rglob("*") if table.path.is_dir() else ():
                if path.is_file() and str(path.relative_to(table.path)) not in table.files:
                    path.unlink()

    def damages(self) -> Iterator[str]:
        """Files that are not as they were written."""
        for table in self:
            for name, expected in table.files.items():
                path = table.path / name
                try:
                    with reported_reading(path):
                        data = path.read_bytes()
                except Damaged as error:
                    yield error.problems[0]
                    continue
                if checksum(data) != expected:
                    yield f"{path}: the content is not what was written there"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Raises StateError if the folder does not hold an event store."""
    path = folder / MANIFEST
    if not path.exists():
        raise StateError(
            [f"{folder} does not hold an event store"], hints=["whence events run … --store DIR makes one"]
        )
    with reported_reading(path):
        data = path.read_bytes()
    content: dict[str, Any] = {}
    try:
        content = json.loads(data)
        expected = content.pop("checksum")
        whole = checksum(json.dumps(content, sort_keys=True).encode()) == expected and content["format"] == FORMAT
    except (ValueError, KeyError, AttributeError, TypeError):
        whole = False
    if not whole:
        raise Damaged(path, "it is not what was written there, or not an event store's")
    return content
