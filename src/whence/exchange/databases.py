"""A peer's tables in a database: SQLite, DuckDB or PostgreSQL, beside whatever else is in there.

A relation is a table of its name with a column for each of its own; other columns of the table are left alone. A null of column
`c` is SQL's NULL in `c`, and its text (`$m1_b["Osci"]`) in a column `c_null`, which is added when the first one comes. So
whoever only reads sees plain values, and can join on nulls through their text. An exchange is one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from whence.exchange.instance import Delta
from whence.exchange.model import Relation
from whence.exchange.rows import is_null, sort_rows
from whence.exchange.tables import CsvTables, ParquetTables, PeerTables, cell_text, value_of
from whence.io import FactError
from whence.lang.types import Tuple
from whence.pipeline.extras import extra
from whence.pipeline.files import StateError


class Dialect(NamedTuple):
    """`same` compares two values of which both may be NULL."""

    placeholder: str
    same: str
    types: dict[str, str]


SQLITE = Dialect("?", "IS", {"number": "INTEGER", "unsigned": "INTEGER", "float": "REAL", "symbol": "TEXT"})
DUCKDB = Dialect(
    "?", "IS NOT DISTINCT FROM", {"number": "BIGINT", "unsigned": "UBIGINT", "float": "DOUBLE", "symbol": "VARCHAR"}
)
POSTGRES = Dialect(
    "%s",
    "IS NOT DISTINCT FROM",
    {"number": "BIGINT", "unsigned": "NUMERIC(20)", "float": "DOUBLE PRECISION", "symbol": "TEXT"},
)


class DatabaseTables:
    """`connect` gives a connection as Python's database interface has it."""

    def __init__(self, connect: Callable[[], Any], dialect: Dialect, errors: tuple[type[Exception], ...]) -> None:
        self._connect = connect
        self._dialect = dialect
        self._errors = errors

    def read(self, relations: Sequence[Relation]) -> dict[str, set[Tuple]]:
        problems: list[str] = []
        with self._transaction() as cursor:
            found = {each.full_name: self._read(cursor, each, problems) for each in relations}
        if problems:
            raise FactError(problems, hints=["mend the table; nothing was published"])
        return found

    def apply(self, delta: Delta, relations: Sequence[Relation]) -> None:
        with self._transaction() as cursor:
            for relation in relations:
                name = relation.full_name
                came = sort_rows(delta.inserted.get(name, set()))
                went = sort_rows(delta.deleted.get(name, set()))
                present = self._columns(cursor, relation)
                if not present:
                    self._create(cursor, relation)
                    present = {column.name for column in relation.columns}
                for at, column in enumerate(relation.columns):
                    if f"{column.name}_null" not in present and any(is_null(row[at]) for row in came):
                        text = self._dialect.types["symbol"]
                        cursor.execute(
                            f"ALTER TABLE {_quoted(relation.name)} ADD COLUMN {_quoted(column.name + '_null')} {text}"
                        )
                        present.add(f"{column.name}_null")
                # What comes is taken out first, so that doing it again does not double it.
                self._delete(cursor, relation, [*went, *came], present)
                self._insert(cursor, relation, came, present)

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        try:
            connection = self._connect()
            try:
                cursor = connection.cursor()
                yield cursor
                connection.commit()
            finally:
                connection.close()
        except self._errors as error:
            raise StateError([f"the peer's database: {str(error).strip()}"]) from None

    def _columns(self, cursor: Any, relation: Relation) -> set[str]:
        """The columns of the table; none if there is no such table."""
        if self._dialect is SQLITE:
            cursor.execute(f"PRAGMA table_info({_quoted(relation.name)})")
            return {row[1] for row in cursor.fetchall()}
        mark = self._dialect.placeholder
        cursor.execute(
            f"SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = {mark}",
            (relation.name,),
        )
        return {row[0] for row in cursor.fetchall()}

    def _create(self, cursor: Any, relation: Relation) -> None:
        columns = ", ".join(f"{_quoted(each.name)} {self._dialect.types[each.type]}" for each in relation.columns)
        cursor.execute(f"CREATE TABLE {_quoted(relation.name)} ({columns})")

    def _read(self, cursor: Any, relation: Relation, problems: list[str]) -> set[Tuple]:
        present = self._columns(cursor, relation)
        if not present:
            return set()
        if missing := [each.name for each in relation.columns if each.name not in present]:
            problems.append(f"table {relation.name} has no column {missing[0]}")
            return set()
        names = [each.name for each in relation.columns]
        companions = [f"{name}_null" if f"{name}_null" in present else None for name in names]
        selected = [*names, *(each for each in companions if each)]
        cursor.execute(f"SELECT {', '.join(map(_quoted, selected))} FROM {_quoted(relation.name)}")
        rows: set[Tuple] = set()
        for number, found in enumerate(cursor.fetchall(), 1):
            nulls = iter(found[len(names) :])
            try:
                row = [
                    value_of(value, next(nulls) if companion else None, column.type, column.name)
                    for value, companion, column in zip(found, companions, relation.columns, strict=False)
                ]
            except ValueError as error:
                problems.append(f"table {relation.name}, row {number}: {error}")
            else:
                rows.add(tuple(row))
        return rows

    def _cells(self, relation: Relation, row: Tuple, present: set[str]) -> list[tuple[str, object]]:
        cells: list[tuple[str, object]] = []
        for column, value in zip(relation.columns, row, strict=True):
            cells.append((column.name, None if is_null(value) else value))
            if f"{column.name}_null" in present:
                cells.append((f"{column.name}_null", cell_text(value) if is_null(value) else None))
        return cells

    def _delete(self, cursor: Any, relation: Relation, rows: Sequence[Tuple], present: set[str]) -> None:
        for row in rows:
            if any(
                is_null(value) and f"{column.name}_null" not in present
                for column, value in zip(relation.columns, row, strict=True)
            ):
                continue
            where, values = self._where(relation, row, present)
            cursor.execute(f"DELETE FROM {_quoted(relation.name)} WHERE {where}", values)

    def _has(self, cursor: Any, relation: Relation, row: Tuple, present: set[str]) -> bool:
        where, values = self._where(relation, row, present)
        cursor.execute(f"SELECT 1 FROM {_quoted(relation.name)} WHERE {where} LIMIT 1", values)
        return cursor.fetchone() is not None

    def _where(self, relation: Relation, row: Tuple, present: set[str]) -> tuple[str, list[object]]:
        """That a line of the table is the row. NULL-safe, and by `=` where it can be: that finds an index."""
        cells = self._cells(relation, row, present)
        mark, same = self._dialect.placeholder, self._dialect.same
        tests = (f"{_quoted(name)} {same if value is None else '='} {mark}" for name, value in cells)
        return " AND ".join(tests), [value for _, value in cells]

    def _insert(self, cursor: Any, relation: Relation, rows: Sequence[Tuple], present: set[str]) -> None:
        for row in rows:
            cells = self._cells(relation, row, present)
            names = ", ".join(_quoted(name) for name, _ in cells)
            marks = ", ".join(self._dialect.placeholder for _ in cells)
            cursor.execute(
                f"INSERT INTO {_quoted(relation.name)} ({names}) VALUES ({marks})", [value for _, value in cells]
            )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def open_tables(where: str | None, folder: Path) -> PeerTables:
    """The tables at an address: `sqlite:FILE`, `duckdb:FILE`, `parquet:FOLDER` or a PostgreSQL URL; without one, CSV files.


    Files are taken relative to the peer's folder. Raises StateError for another address.
    """
    if where is None:
        return CsvTables(folder / "tables")
    kind, _, rest = where.partition(":")
    if kind == "sqlite":
        return DatabaseTables(lambda: sqlite3.connect(folder / rest), SQLITE, (sqlite3.Error, OverflowError))
    if kind == "duckdb":
        with extra("duckdb"):
            import duckdb  # noqa: PLC0415

        return DatabaseTables(lambda: duckdb.connect(str(folder / rest)).begin(), DUCKDB, (duckdb.Error,))
    if kind in ("postgresql", "postgres"):
        with extra("postgres"):
            from whence.exchange.captured import CapturedTables  # noqa: PLC0415

        return CapturedTables(where)
    if kind == "parquet":
        return ParquetTables(folder / rest)
    hint = "sqlite:FILE, duckdb:FILE, parquet:FOLDER or postgresql://…"
    raise StateError([f"there are no tables at {where}"], hints=[hint])
