"""Views as PostgreSQL tables, one for each output relation, all brought to the next epoch in one transaction.

A row that PostgreSQL cannot hold (text with a NUL, or too long for a key) is set aside in the table `whence_set_aside`, as JSON,
so that it stops nothing: a view is what its table and the rows set aside hold together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from typing import Any

from whence.io.changes import Changes
from whence.io.json_text import write_json
from whence.io.updates import as_json
from whence.io.values import format_value
from whence.lang.program import Program, Relation, output_names
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    DecimalKind,
    Kind,
    Nullable,
    Tuple,
    Types,
    base,
    is_plain,
)
from whence.pipeline.extras import extra
from whence.pipeline.postgres import Connection, connect, identifier
from whence.pipeline.sinks import Sink, SinkWarning

with extra("postgres"):
    import psycopg
    from psycopg import sql

_COLUMN_TYPES: dict[Kind, str] = {
    NUMBER: "bigint",
    UNSIGNED: "numeric(20)",
    FLOAT: "double precision",
    SYMBOL: "text",
    BOOL: "boolean",
    DATE: "date",
    TIMESTAMP: "timestamp",
}
_LONGEST_NAME = 63  # PostgreSQL cuts longer ones off
_EPOCHS = "whence_epochs"
_SET_ASIDE = "whence_set_aside"
_FOUND_COLUMNS = sql.SQL(
    "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = %s ORDER BY ordinal_position"
)
# What is wrong with a row, not with the database.
_UNFIT = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded, UnicodeEncodeError)


class PostgresSink(Sink):
    """Keeps a table for each output relation equal to its view; tables that are not there are made.

    The table `whence_epochs`, beside them, says which epoch each of them shows. An epoch that arrives again is left out. Epoch 0
    is the beginning: it replaces what the tables held before. `url` is what libpq takes; `schema` is made if need be. Rows that
    PostgreSQL cannot hold are in `whence_set_aside`, with a warning when the first one of a relation comes.
    """

    def __init__(self, url: str, program: Program, *, schema: str = "public") -> None:
        self._url = url
        self._schema = schema
        self._tables = [_Table(program.relations[name], program.types, schema) for name in output_names(program)]
        self._connection: Connection | None = None
        self._warned: set[str] = set()

    def write(self, epoch: int, changes: Changes) -> None:
        try:
            self._write(epoch, changes)
        except psycopg.OperationalError:
            if self._connection is None or not self._connection.closed:
                raise
            # The connection was lost. Whether or not the epoch had arrived, it can be written again.
            self._write(epoch, changes)

    def _write(self, epoch: int, changes: Changes) -> None:
        with self._connect().transaction():
            shown = self._shown_epoch()
            if epoch == 0:
                for table in self._tables:
                    self._run(table.clear())
                self._run(self._beside(_SET_ASIDE, "DELETE FROM {} WHERE relation = ANY(%s)"), self._names())
            elif shown is None or epoch > shown + 1:
                raise ValueError(
                    f"epoch {epoch} cannot follow {'nothing' if shown is None else f'epoch {shown}'} in the tables of schema "
                    f"{self._schema}: let a new state fill them from the beginning"
                )
            elif epoch <= shown:
                return
            for table in self._tables:
                name = table.relation.name
                self._change(table, changes.deleted.get(name, []), changes.inserted.get(name, []))
            self._run(self._beside(_EPOCHS, "UPDATE {} SET epoch = %s WHERE relation = ANY(%s)"), epoch, self._names())

    def _change(self, table: _Table, gone: list[Tuple], come: list[Tuple]) -> None:
        if gone:
            self._each_fitting(table, gone, self._delete, lambda row: self._forget(table, [row]))
        if come:
            self._each_fitting(table, come, self._insert, lambda row: self._set_aside(table, row))

    def _each_fitting(
        self,
        table: _Table,
        rows: list[Tuple],
        act: Callable[[_Table, list[Tuple]], None],
        unfit: Callable[[Tuple], None],
    ) -> None:
        """All rows at once; if that cannot be, halves of them, until only those are left that PostgreSQL cannot hold."""
        pending = [rows]
        while pending:
            some = pending.pop()
            try:
                with self._connect().transaction():
                    act(table, some)
            except _UNFIT:
                if len(some) == 1:
                    unfit(some[0])
                else:
                    middle = len(some) // 2
                    pending += (some[middle:], some[:middle])

    def _insert(self, table: _Table, rows: list[Tuple]) -> None:
        self._run(table.insert(), *table.columns(rows))

    def _delete(self, table: _Table, rows: list[Tuple]) -> None:
        if self._run(table.delete(), *table.columns(rows)).rowcount < len(rows):
            self._forget(table, rows)

    def _set_aside(self, table: _Table, row: Tuple) -> None:
        text = table.text(row)
        query = self._beside(_SET_ASIDE, "INSERT INTO {} VALUES (%s, %s, %s) ON CONFLICT DO NOTHING")
        self._run(query, table.relation.name, _digest(text), text)
        if table.relation.name not in self._warned:
            self._warned.add(table.relation.name)
            where = f"{self._schema}.{_SET_ASIDE}"
            warnings.warn(
                f"PostgreSQL cannot hold some rows of {table.relation.name}: they are in {where}",
                SinkWarning,
                stacklevel=2,
            )

    def _forget(self, table: _Table, rows: list[Tuple]) -> None:
        query = self._beside(_SET_ASIDE, "DELETE FROM {} WHERE relation = %s AND digest = ANY(%s)")
        self._run(query, table.relation.name, [_digest(table.text(row)) for row in rows])

    def _shown_epoch(self) -> int | None:
        """The epoch that all tables show. The rows stay locked, so that two writers cannot do the same epoch."""
        query = self._beside(_EPOCHS, "SELECT epoch FROM {} WHERE relation = ANY(%s) FOR UPDATE")
        found = [row[0] for row in self._run(query, self._names())]
        return None if None in found else min(found, default=None)

    def _connect(self) -> Connection:
        if self._connection is None or self._connection.closed:
            with ExitStack() as unless_ready:
                self._connection = unless_ready.enter_context(connect(self._url, autocommit=True))
                self._prepare()
                unless_ready.pop_all()
        return self._connection

    def _prepare(self) -> None:
        assert self._connection is not None
        with self._connection.transaction():
            self._run(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(identifier(self._schema)))
            self._run(self._beside(_EPOCHS, "CREATE TABLE IF NOT EXISTS {} (relation text PRIMARY KEY, epoch bigint)"))
            self._run(
                self._beside(
                    _SET_ASIDE,
                    "CREATE TABLE IF NOT EXISTS {} (relation text, digest text, tuple text, PRIMARY KEY (relation, digest))",
                )
            )
            for table in self._tables:
                self._run(table.create())
                columns = self._run(_FOUND_COLUMNS, table.relation.name, self._schema)
                table.check([name for (name,) in columns])
            names = self._beside(_EPOCHS, "INSERT INTO {} (relation) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING")
            self._run(names, self._names())

    def _run(self, query: sql.SQL | sql.Composed, *parameters: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        assert self._connection is not None
        return self._connection.execute(query, parameters)

    def _beside(self, table: str, query: str) -> sql.Composed:
        """A query on a table of the sink's own."""
        return sql.SQL(query).format(identifier(self._schema, table))

    def _names(self) -> list[str]:
        return [table.relation.name for table in self._tables]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class _Table:
    """The table of a relation: its statements, and tuples as what they take, which is an array for each column."""

    def __init__(self, relation: Relation, types: Types, schema: str) -> None:
        names = [relation.name, *(field.name for field in relation.fields)]
        too_long = [name for name in names if len(name.encode()) > _LONGEST_NAME]
        if too_long:
            raise ValueError(
                f"{too_long[0]} is longer than the {_LONGEST_NAME} bytes that PostgreSQL allows for a name"
            )
        if not relation.fields:
            raise ValueError(f"{relation.name} has no columns, which the key of a table needs")
        self.relation = relation
        self._types = types
        self._name = identifier(schema, relation.name)
        self._columns = [identifier(field.name) for field in relation.fields]
        self._kinds = [sql.SQL(_column_type(base(field.kind))) for field in relation.fields]

    def create(self) -> sql.Composed:
        columns = [sql.SQL(" ").join(pair) for pair in zip(self._columns, self._kinds, strict=True)]
        if any(isinstance(field.kind, Nullable) for field in self.relation.fields):  # no key has nulls
            return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(self._name, _commas(columns))
        return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({}, PRIMARY KEY ({}))").format(
            self._name, _commas(columns), _commas(self._columns)
        )

    def check(self, found: list[str]) -> None:
        wanted = [field.name for field in self.relation.fields]
        if found != wanted:
            raise ValueError(
                f"there is a table {self.relation.name}({', '.join(found)}), not {self.relation.name}({', '.join(wanted)}): "
                "remove it, or write to another schema"
            )

    def clear(self) -> sql.Composed:
        return sql.SQL("DELETE FROM {}").format(self._name)

    def insert(self) -> sql.Composed:
        return sql.SQL("INSERT INTO {} SELECT * FROM unnest({}) ON CONFLICT DO NOTHING").format(
            self._name, self._arrays()
        )

    def delete(self) -> sql.Composed:
        same = [
            sql.SQL("held.{0} IS NOT DISTINCT FROM gone.{0}" if isinstance(field.kind, Nullable) else "held.{0} = gone.{0}")
            .format(column)
            for column, field in zip(self._columns, self.relation.fields, strict=True)
        ]  # fmt: skip
        return sql.SQL("DELETE FROM {} AS held USING unnest({}) AS gone ({}) WHERE {}").format(
            self._name, self._arrays(), _commas(self._columns), sql.SQL(" AND ").join(same)
        )

    def columns(self, rows: list[Tuple]) -> list[list[Any]]:
        return [
            list(values) if is_plain(field.kind) else [format_value(each, field.kind, self._types) for each in values]
            for values, field in zip(zip(*rows, strict=True), self.relation.fields, strict=True)
        ]

    def text(self, row: Tuple) -> str:
        """The row as JSON, in ASCII: PostgreSQL can hold that, whatever is in it."""
        return write_json(as_json(row, self.relation, self._types), ascii_only=True)

    def _arrays(self) -> sql.Composed:
        return _commas([sql.SQL("%s::{}[]").format(kind) for kind in self._kinds])


def _column_type(kind: Kind) -> str:
    if isinstance(kind, DecimalKind):
        return f"numeric({kind.precision},{kind.scale})"
    return _COLUMN_TYPES.get(kind, "text")


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _commas(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)
