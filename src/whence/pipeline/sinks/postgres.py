"""Views as PostgreSQL tables, one for each output relation, all brought to the next epoch in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import psycopg
from psycopg import sql

from whence.io.changes import Changes
from whence.io.values import format_value
from whence.lang.program import Program, Relation
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind, Tuple, Types
from whence.pipeline.folder import output_names

_COLUMN_TYPES: dict[Kind, str] = {NUMBER: "bigint", UNSIGNED: "numeric(20)", FLOAT: "double precision", SYMBOL: "text"}
_LONGEST_NAME = 63  # PostgreSQL cuts longer ones off
_EPOCHS = "whence_epochs"
_FOUND_COLUMNS = sql.SQL(
    "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = %s ORDER BY ordinal_position"
)


class PostgresSink:
    """Keeps a table for each output relation equal to its view; tables that are not there are made.

    The table `whence_epochs`, beside them, says which epoch each of them shows. An epoch that arrives again is left out. Epoch 0
    is the beginning: it replaces what the tables held before. `url` is what libpq takes; `schema` is made if need be.
    """

    def __init__(self, url: str, program: Program, *, schema: str = "public") -> None:
        self._url = url
        self._schema = schema
        self._tables = [_Table(program.relations[name], program.types, schema) for name in output_names(program)]
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

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
            self._run(self._of_epochs("UPDATE {} SET epoch = %s WHERE relation = ANY(%s)"), epoch, self._names())

    def _change(self, table: _Table, gone: list[Tuple], come: list[Tuple]) -> None:
        if gone:
            self._run(table.delete(), *table.columns(gone))
        if come:
            self._run(table.insert(), *table.columns(come))

    def _shown_epoch(self) -> int | None:
        """The epoch that all tables show. The rows stay locked, so that two writers cannot do the same epoch."""
        query = self._of_epochs("SELECT epoch FROM {} WHERE relation = ANY(%s) FOR UPDATE")
        found = [row[0] for row in self._run(query, self._names())]
        return None if None in found else min(found, default=None)

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            with ExitStack() as unless_ready:
                self._connection = unless_ready.enter_context(psycopg.connect(self._url, autocommit=True))
                self._prepare()
                unless_ready.pop_all()
        return self._connection

    def _prepare(self) -> None:
        assert self._connection is not None
        with self._connection.transaction():
            self._run(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._schema)))
            self._run(self._of_epochs("CREATE TABLE IF NOT EXISTS {} (relation text PRIMARY KEY, epoch bigint)"))
            for table in self._tables:
                self._run(table.create())
                columns = self._run(_FOUND_COLUMNS, table.relation.name, self._schema)
                table.check([name for (name,) in columns])
            names = self._of_epochs("INSERT INTO {} (relation) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING")
            self._run(names, self._names())

    def _run(self, query: sql.SQL | sql.Composed, *parameters: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        assert self._connection is not None
        return self._connection.execute(query, parameters)

    def _of_epochs(self, query: str) -> sql.Composed:
        return sql.SQL(query).format(sql.Identifier(self._schema, _EPOCHS))

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
        self._name = sql.Identifier(schema, relation.name)
        self._columns = [sql.Identifier(field.name) for field in relation.fields]
        self._kinds = [sql.SQL(_COLUMN_TYPES.get(field.kind, "text")) for field in relation.fields]

    def create(self) -> sql.Composed:
        columns = [sql.SQL(" ").join(pair) for pair in zip(self._columns, self._kinds, strict=True)]
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
        same = [sql.SQL("held.{0} = gone.{0}").format(column) for column in self._columns]
        return sql.SQL("DELETE FROM {} AS held USING unnest({}) AS gone ({}) WHERE {}").format(
            self._name, self._arrays(), _commas(self._columns), sql.SQL(" AND ").join(same)
        )

    def columns(self, rows: list[Tuple]) -> list[list[Any]]:
        return [
            list(values)
            if field.kind in _COLUMN_TYPES
            else [format_value(each, field.kind, self._types) for each in values]
            for values, field in zip(zip(*rows, strict=True), self.relation.fields, strict=True)
        ]

    def _arrays(self) -> sql.Composed:
        return _commas([sql.SQL("%s::{}[]").format(kind) for kind in self._kinds])


def _commas(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)
