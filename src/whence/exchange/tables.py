"""A peer's own tables: where its users see and edit their rows.

`PeerTables` is all that exchange needs of them. Edits are found by comparing the tables with what they held after the last
exchange, so users edit with whatever they like.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from whence.exchange.instance import Delta
from whence.exchange.model import Relation
from whence.exchange.rows import fitted, sort_rows, value_from_json, value_to_json
from whence.io import FactError
from whence.io.updates import reported_writing
from whence.lang.types import Tuple, Value, Variant
from whence.pipeline.files import write_file

Tables = Mapping[str, set[Tuple]]


class PeerTables(Protocol):
    """The tables of one peer, by the full names of its relations."""

    def read(self, relations: Sequence[Relation]) -> dict[str, set[Tuple]]:
        """All rows; a table that is not there is empty. Raises FactError for what cannot be read."""
        ...

    def apply(self, delta: Delta, relations: Sequence[Relation]) -> None:
        """Takes rows out and puts rows in. Done again, it changes nothing: what is gone is gone, what is there is there."""
        ...


class CsvTables:
    """A file `R.csv` for each relation, with a header. Nulls are written as `cell_text` has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
        return self.folder / f"{relation.name}.csv"

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

    def _write(self, relation: Relation, rows: set[Tuple]) -> None:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.name for column in relation.columns])
        writer.writerows([cell_text(value) for value in row] for row in sort_rows(rows))
        with reported_writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self._path(relation), text.getvalue().encode())


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
