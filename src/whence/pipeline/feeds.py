"""Tables of updates, as lines of update records: CSV, Parquet and Arrow files with the columns of a relation.

A column `op` says what happens to a row (`+` or `-`; without it rows come), `epoch` which rows belong together, `time` when it
happened, `relation` what it is a row of. Without that, the relation is the one that the file or its folder is named after, or
the one behind its name: `links.csv#relation=link`. So what a Parquet sink writes can be read again.

Rows become the lines that JSON feeds have, one each, and everything behind them is the same: epochs, dead letters, Spark, and
places to go on from. A row's number is its line, and what came before it is compared when a run goes on.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from whence.io import FactError
from whence.io.changes import Position
from whence.io.updates import Schema, as_json
from whence.io.values import parse_value
from whence.lang.program import Relation
from whence.pipeline.lines import Lines, Tail, reported_reading

_OPS = {"+": "+", "insert": "+", "i": "+", "-": "-", "delete": "-", "d": "-"}
_OWN = ("op", "epoch", "time", "relation")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_BATCH = 10_000

Row = Sequence[Any]
Columns = tuple[list[str], Iterator[Row]]


def _csv(path: Path) -> Columns:
    def rows() -> Iterator[Row]:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from csv.reader(file, strict=True)

    found = rows()
    return list(next(found, ())), (row for row in found if row)


def _parquet(path: Path) -> Columns:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, and most do without

    file = pq.ParquetFile(path)
    return file.schema_arrow.names, _rows(file.iter_batches(_BATCH))


def _arrow(path: Path) -> Columns:
    from pyarrow import feather  # noqa: PLC0415

    table = feather.read_table(path)
    return table.column_names, _rows(table.to_batches(_BATCH))


def _rows(batches: Any) -> Iterator[Row]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


READERS: Mapping[str, Callable[[Path], Columns]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}


def is_feed(path: Path) -> bool:
    """Whether it is a table, or a folder that begins with one. Raises FactError."""
    if path.is_dir():
        with reported_reading(path):
            listed = sorted(path.iterdir())
        return next((is_feed(each) for each in listed if _is_shown(each)), False)
    return path.suffix in READERS


def _is_shown(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


class FeedLines(Lines):
    """The rows of a table, or of the tables of a folder by their names, from a place on."""

    def __init__(
        self,
        path: Path,
        begin: Position,
        schema: Schema,
        relation: str | None = None,
        *,
        follow: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(path, begin, follow=follow, stopped=stopped)
        self._schema = schema
        self._relation = relation

    def _read(self, path: Path, *, follow: bool) -> Iterator[bytes | None]:  # noqa: ARG002 - a table is complete
        import pyarrow as pa  # noqa: PLC0415

        read = self.number
        self.number = self.offset = 0
        self.tail = Tail()
        try:
            with reported_reading(path):
                names, rows = READERS.get(path.suffix, _unknown)(path)
                yield from self._translated(path, names, rows, read)
        except (pa.ArrowException, csv.Error, UnicodeDecodeError) as error:
            raise FactError([f"{path}, after row {self.number}: {str(error).splitlines()[0]}"]) from None

    def _translated(self, path: Path, names: list[str], rows: Iterator[Row], read: int) -> Iterator[bytes | None]:
        feed = _Feed(path, names, self._schema, self._relation)
        before = None
        for row in rows:
            if self.stopped():
                return
            epoch = feed.epoch_of(row)
            if self.number > read and epoch != before:
                yield None
            before = epoch
            line = feed.line(row)
            self.number += 1
            self.offset += len(line) + 1
            self.before = self.tail.data
            self.tail.add(line)
            if self.number > read:
                yield line
            elif self.number == read:
                self._refuse_other(path)
        if self.number < read:
            problem = f"{path} has {self.number} rows, of which {read} were read before"
            raise FactError([problem], hints=["append to it, or start again with another file"])

    def _refuse_other(self, path: Path) -> None:
        if self._digest is not None and self.tail.digest() != self._digest:
            problem = f"{path} is not what was read before: its rows up to {self.number} have changed"
            raise FactError([problem], hints=["append to it, or start again with another file"])
        self._digest = None


def _unknown(path: Path) -> Columns:
    problem = f"{path} is not a table as the others are"
    raise FactError([problem], hints=[f"a folder of tables holds {', '.join(READERS)} files alone"])


class _Feed:
    """What the columns of one file are for. `line` is the record that a row stands for, right or wrong."""

    def __init__(self, path: Path, names: list[str], schema: Schema, relation: str | None) -> None:
        self._schema = schema
        self._names = [name.strip().casefold() for name in names]
        self._is_text = path.suffix == ".csv"
        self._named = self._column("relation") if relation is None else None
        self._places: dict[str, list[int] | None] = {}
        self._only = "" if self._named is not None else relation or _named_after(path, schema)
        own = [] if self._named is not None else _columns_of(self._only, path, schema)
        self._op, self._epoch, self._time = (
            None if name in own else self._column(name) for name in ("op", "epoch", "time")
        )
        self._rest = [at for at, name in enumerate(self._names) if name in own or name not in _OWN]
        if self._named is None and self._placed(schema.relations[self._only]) is None:
            missing = next(name for name in own if name not in self._names)
            raise FactError(
                [f"{path} has no column {missing}"], hints=[f"{self._only} has the columns {', '.join(own)}"]
            )

    def epoch_of(self, row: Row) -> object:
        return None if self._epoch is None or self._epoch >= len(row) else row[self._epoch]

    def line(self, row: Row) -> bytes:
        name = self._only if self._named is None or self._named >= len(row) else row[self._named]
        record: dict[str, Any] = {"op": self._what(row), "relation": name, "tuple": self._tuple(row, name)}
        if self._time is not None and self._time < len(row) and row[self._time] not in ("", None):
            record["time"] = _number(row[self._time])
        return json.dumps(record, default=_as_text).encode("utf-8", "surrogatepass")

    def _tuple(self, row: Row, name: object) -> Any:
        relation = self._schema.relations.get(name) if isinstance(name, str) else None
        places = None if relation is None or len(row) != len(self._names) else self._placed(relation)
        if relation is None or places is None:
            return [row[at] for at in self._rest if at < len(row)]
        cells = [row[at] for at in places]
        if self._is_text:
            with suppress(ValueError):  # what a cell cannot be is said where records are read
                pairs = zip(cells, relation.fields, strict=True)
                values = tuple(parse_value(cell, field.kind, self._schema.types) for cell, field in pairs)
                return as_json(values, relation, self._schema.types)
        return cells

    def _what(self, row: Row) -> object:
        found = "+" if self._op is None or self._op >= len(row) else row[self._op]
        return _OPS.get(found.strip().lower(), found) if isinstance(found, str) else found

    def _column(self, name: str) -> int | None:
        return self._names.index(name) if name in self._names else None

    def _placed(self, relation: Relation) -> list[int] | None:
        """By name, or in order where no name fits; None if there are more or fewer."""
        if relation.name not in self._places:
            wanted = [field.name.casefold() for field in relation.fields]
            if all(name in self._names for name in wanted):
                self._places[relation.name] = [self._names.index(name) for name in wanted]
            else:
                self._places[relation.name] = self._rest if len(self._rest) == len(wanted) else None
        return self._places[relation.name]


def _columns_of(name: str, path: Path, schema: Schema) -> list[str]:
    if name not in schema.relations:
        raise FactError([f"{path}: there is no relation {name}"])
    return [field.name.casefold() for field in schema.relations[name].fields]


def _number(value: Any) -> Any:
    """What reads as a number is one; the rest is judged where records are read."""
    return json.loads(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


def _named_after(path: Path, schema: Schema) -> str:
    for name in (path.stem, path.parent.name):
        if name in schema.relations:
            return name
    problem = f"{path} has no column relation, and there is no relation {path.stem}"
    raise FactError([problem], hints=[f"say what its rows are: --updates '{path}#relation=NAME'"])


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
