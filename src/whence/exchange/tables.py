"""A peer's own tables: where its users see and edit their rows.

`PeerTables` is all that exchange needs of them. Edits are found by comparing the tables with what they held after the last
exchange, so users edit with whatever they like.
"""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from whence.exchange.instance import Delta
from whence.exchange.model import Relation
from whence.exchange.rows import fitted, sort_rows, value_from_json, value_to_json
from whence.io import FactError
from whence.io.updates import reported_writing
from whence.lang.types import Tuple, Value, Variant
from whence.pipeline.files import StateError, write_file

_ARROW = {"number": pa.int64(), "unsigned": pa.uint64(), "float": pa.float64(), "symbol": pa.string()}


class PeerTables(Protocol):
    """The tables of one peer, by the full names of its relations."""

    def read(self, relations: Sequence[Relation]) -> dict[str, set[Tuple]]:
        """All rows; a table that is not there is empty. Raises FactError for what cannot be read."""
        ...

    def apply(self, delta: Delta, relations: Sequence[Relation]) -> None:
        """Takes rows out and puts rows in. Done again, it changes nothing: what is gone is gone, what is there is there."""
        ...


@runtime_checkable
class TablesWithChanges(PeerTables, Protocol):
    """Tables that need not be read whole to tell what they hold."""

    def read_since(
        self, relations: Sequence[Relation], before: Mapping[str, set[Tuple]], position: int | None
    ) -> tuple[dict[str, set[Tuple]], int | None]:
        """All rows, given those at a position, and a position to go on from; without one, everything is read."""
        ...


class FolderTables(ABC):
    """A file for each relation."""

    suffix: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def _read(self, relation: Relation, problems: list[str]) -> set[Tuple]: ...

    @abstractmethod
    def _content(self, relation: Relation, rows: Sequence[Tuple]) -> bytes: ...

    def read(self, relations: Sequence[Relation]) -> dict[str, set[Tuple]]:
        problems: list[str] = []
        found = {relation.full_name: self._read(relation, problems) for relation in relations}
        if problems:
            raise FactError(problems, hints=["mend the table; nothing was published"])
        return found

    def apply(self, delta: Delta, relations: Sequence[Relation]) -> None:
        for relation in relations:
            name = relation.full_name
            came, went = delta.inserted.get(name, set()), delta.deleted.get(name, set())
            path = self._path(relation)
            if came or went or not path.exists():
                problems: list[str] = []
                rows = self._read(relation, problems)
                if problems:
                    raise FactError(problems, hints=["mend the table, and call it again"])
                self._write(relation, (rows - went) | came)

    def _path(self, relation: Relation) -> Path:
        return self.folder / f"{relation.name}{self.suffix}"

    def _write(self, relation: Relation, rows: set[Tuple]) -> None:
        with reported_writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self._path(relation), self._content(relation, sort_rows(rows)))


class CsvTables(FolderTables):
    """`R.csv`, with a header. Nulls are written as `cell_text` has it."""

    suffix = ".csv"

    def _read(self, relation: Relation, problems: list[str]) -> set[Tuple]:
        path = self._path(relation)
        if not path.exists():
            return set()
        names = [column.name for column in relation.columns]
        rows: set[Tuple] = set()
        reader = csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""), strict=True)
        try:
            header = next(reader, None)
            if header != names:
                problems.append(f"{path}:1: expected the columns {','.join(names)}")
                return rows
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(names):
                    problems.append(f"{path}:{reader.line_num}: {len(cells)} columns, not {len(names)}")
                    continue
                try:
                    pairs = zip(cells, relation.columns, strict=True)
                    rows.add(tuple(cell_value(cell, column.type) for cell, column in pairs))
                except ValueError as error:
                    problems.append(f"{path}:{reader.line_num}: {error}")
        except csv.Error as error:
            problems.append(f"{path}:{reader.line_num}: {error}")
        return rows

    def _content(self, relation: Relation, rows: Sequence[Tuple]) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.name for column in relation.columns])
        writer.writerows([cell_text(value) for value in row] for row in rows)
        return text.getvalue().encode()


class ParquetTables(FolderTables):
    """`R.parquet`, a file or a folder of them; what an exchange writes is one file. Nulls are as in databases: null, and a
    column `c_null` with their text beside `c`."""

    suffix = ".parquet"

    def _read(self, relation: Relation, problems: list[str]) -> set[Tuple]:
        path = self._path(relation)
        if not path.exists():
            return set()
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            problems.append(f"{path}: {str(error).splitlines()[0]}")
            return set()
        if missing := [each.name for each in relation.columns if each.name not in table.column_names]:
            problems.append(f"{path}: there is no column {missing[0]}")
            return set()
        columns = [table.column(each.name).to_pylist() for each in relation.columns]
        nulls = [
            table.column(name).to_pylist()
            if (name := f"{each.name}_null") in table.column_names
            else [None] * len(table)
            for each in relation.columns
        ]
        rows: set[Tuple] = set()
        for number, cells in enumerate(zip(*columns, *nulls, strict=True), 1):
            try:
                rows.add(
                    tuple(
                        value_of(value, null, each.type, each.name)
                        for value, null, each in zip(cells, cells[len(columns) :], relation.columns, strict=False)
                    )
                )
            except ValueError as error:
                problems.append(f"{path}: row {number}: {error}")
        return rows

    def _content(self, relation: Relation, rows: Sequence[Tuple]) -> bytes:
        arrays: dict[str, pa.Array] = {}
        for at, column in enumerate(relation.columns):
            values = [row[at] for row in rows]
            plain = [None if isinstance(value, Variant) else value for value in values]
            arrays[column.name] = pa.array(plain, _ARROW[column.type])
            if None in plain:
                nulls = [cell_text(value) if isinstance(value, Variant) else None for value in values]
                arrays[f"{column.name}_null"] = pa.array(nulls, pa.string())
        buffer = io.BytesIO()
        pq.write_table(pa.table(arrays), buffer, compression="zstd")
        return buffer.getvalue()

    def _write(self, relation: Relation, rows: set[Tuple]) -> None:
        if (path := self._path(relation)).is_dir():
            hint = "put its rows into one file of that name"
            raise StateError([f"{path} is a folder, which an exchange cannot replace at once"], hints=[hint])
        super()._write(relation, rows)


def value_of(value: object, null: object, type_: str, name: str) -> Value:
    """A cell of a database, with that of the column of nulls. Raises ValueError."""
    if null is not None:
        return cell_value(str(null), type_)
    if value is None:
        raise ValueError(f"{name} is NULL, and no mapping invented that")
    return fitted(int(value) if isinstance(value, Decimal) else value, type_)


def cell_text(value: Value) -> str:
    """A value as one cell of text. A null is its function and its arguments as JSON, which any tool can keep and compare.

    >>> cell_text(Variant("m1_b", ("Osci", 7))), cell_text("$5"), cell_text(7)
    ('$m1_b["Osci",7]', '$$5', '7')
    """
    if isinstance(value, Variant):
        args = json.dumps([value_to_json(arg) for arg in value.args], ensure_ascii=False, separators=(",", ":"))
        return f"${value.branch}{args}"
    if isinstance(value, str):
        return f"${value}" if value.startswith("$") else value
    return repr(value)


def cell_value(cell: str, type_: str) -> Value:
    """What `cell_text` wrote. Raises ValueError.

    >>> cell_value('$m1_b["Osci",7]', "number")
    Variant(branch='m1_b', args=('Osci', 7))
    """
    if cell.startswith("$$"):
        return fitted(cell[1:], type_)
    if cell.startswith("$"):
        name, bracket, args = cell[1:].partition("[")
        try:
            parsed = json.loads(bracket + args)
        except ValueError:
            parsed = None
        if not name or not isinstance(parsed, list):
            raise ValueError(f"{cell} is not a null; text that begins with $ is written with $$")
        return Variant(name, tuple(value_from_json(arg) for arg in parsed))
    if type_ == "symbol":
        return cell
    try:
        return fitted(float(cell) if type_ == "float" else int(cell), type_)
    except ValueError:
        raise ValueError(f"{cell!r} is not a {type_}") from None
