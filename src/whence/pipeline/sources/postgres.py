"""A streaming source for Spark that reads the changes of a PostgreSQL table.

An offset is the number of the last change read, as far as changes are settled (`captured.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from whence.pipeline.extras import extra
from whence.pipeline.postgres import connect, identifier
from whence.pipeline.sources.capture import TableName
from whence.pipeline.sources.captured import Horizon, captured

with extra("postgres"):
    import psycopg
    from psycopg import sql

FETCHED_AT_ONCE = 10_000

# What a column of PostgreSQL is in Spark, and the type it is cast to on the way; other columns come as their text.
_SPARK_TYPES = {
    "int2": "bigint",
    "int4": "bigint",
    "int8": "bigint",
    "float4": "double",
    "float8": "double",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}
_CASTS = {
    "bigint": "bigint",
    "int": "int",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp_ntz": "timestamp",
    "timestamp": "timestamptz",
    "string": "text",
}


class PostgresSource(DataSource):
    """`spark.readStream.format("whence-postgres")`: a row for each change of a captured table.

    Options: `url` (what libpq takes), `table`, and, if wanted, `maxRowsPerEpoch`. The columns are `op`, `seq` (the number of
    the change), `time` (its second), then the table's own, which take the place of `seq` and `time` if they are called so.
    `.schema(…)` picks some of them, or other types.
    """

    @classmethod
    def name(cls) -> str:
        return "whence-postgres"

    def schema(self) -> str:
        options = _Options(self.options)
        fields = {name: kind for name, (_, kind) in _OWN.items()}
        for name, kind in _columns(options).items():
            if name == "op":
                raise ValueError(f"{options.table} has a column op, which is what the source calls + and -: rename it")
            if kind in _INEXACT:
                raise ValueError(f"{options.table}.{name} is {kind}: say with .schema(…) what to read it as")
            fields[name] = _SPARK_TYPES.get(kind, "string")
        return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in fields.items())

    def streamReader(self, schema: StructType) -> PostgresReader:
        options = _Options(self.options)
        return PostgresReader(options, _changes_query(options.table, frozenset(_columns(options)), schema))


# The source's own columns: how they are asked for, and their types.
_OWN = {
    "op": ("change.op", "string"),
    "seq": ("change.seq", "bigint"),
    "time": ("extract(epoch FROM change.at)::double precision", "double"),
}
_COLUMNS = """
    SELECT attname, typname FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_INEXACT = frozenset({"numeric", "money", "bytea"})


class _Options:
    """The options of the source, checked."""

    def __init__(self, options: Mapping[str, str]) -> None:
        missing = [name for name in ("url", "table") if name not in options]
        if missing:
            raise ValueError(f"whence-postgres needs the option {' and '.join(missing)}")
        self.url = options["url"]
        self.table = TableName.parse(options["table"])
        self.max_rows = _positive(options.get("maxRowsPerEpoch"))


def _positive(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise ValueError(f"maxRowsPerEpoch is a number of rows, 1 or more, not {text!r}")
    return int(text)


def _columns(options: _Options) -> dict[str, str]:
    """The columns of the table, in order, with their types."""
    with connect(options.url) as connection:
        columns: dict[str, str] = dict(connection.execute(_COLUMNS, (options.table.quoted,)).fetchall())
    if not columns:
        raise ValueError(f"there is no table {options.table} in the database")
    return columns


class _Range(InputPartition):
    """Changes numbered after `start`, up to `end`."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class PostgresReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: _Options, query: sql.Composed) -> None:
        self._options = options
        self._query = query
        self._horizon: Horizon | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        with connect(self._options.url) as connection:
            snapshot, forgotten = captured(connection, self._options.table)
        if forgotten > snapshot:
            raise RuntimeError(
                f"changes of {self._options.table} up to number {forgotten} were forgotten, so that a new query cannot tell "
                "what the table held: release the table and capture it again, which takes its rows as they are"
            )
        return {"seq": snapshot}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
        end = max(start["seq"], self._settled())
        if isinstance(limit, ReadMaxRows):
            end = self._cut(start["seq"], end, limit.max_rows)
        return {"seq": end}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_rows) if self._options.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._settled()

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        return [_Range(start["seq"], end["seq"])] if start["seq"] < end["seq"] else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _Range)
        with connect(self._options.url) as connection:
            # One snapshot for the check and the rows: nothing can be forgotten in between.
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            kept_from = max(captured(connection, self._options.table))
            if partition.start < kept_from:
                raise RuntimeError(
                    f"changes of {self._options.table} up to number {kept_from} are no longer there, and this query has read up "
                    f"to {partition.start} only: start it anew, with a state of its own, after capturing the table again"
                )
            with connection.cursor(name="whence_changes") as cursor:
                cursor.itersize = FETCHED_AT_ONCE
                cursor.execute(self._query, (str(self._options.table), partition.start, partition.end))
                yield from cursor

    def stop(self) -> None:
        if self._horizon is not None:
            self._horizon.close()

    def _settled(self) -> int:
        if self._target is not None:
            return self._target
        if self._horizon is None:
            self._horizon = Horizon(self._options.url, [self._options.table])
        return self._horizon.advance()

    def _cut(self, start: int, end: int, rows: int) -> int:
        with connect(self._options.url) as connection:
            found = connection.execute(_NTH, (str(self._options.table), start, end, rows - 1)).fetchone()
        return int(found[0]) if found else end

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_horizon": None}  # connections stay where they are


_NTH = "SELECT seq FROM whence_capture.changes WHERE relation = %s AND seq > %s AND seq <= %s ORDER BY seq OFFSET %s LIMIT 1"


def _changes_query(table: TableName, names: frozenset[str], schema: StructType) -> sql.Composed:
    """The wanted columns of the changes in a range of numbers, in the order in which they happened."""
    columns = [_column(table, names, field.name, field.dataType.simpleString()) for field in schema.fields]
    return sql.SQL(
        "SELECT {columns} FROM whence_capture.changes AS change, jsonb_populate_record(NULL::{table}, change.row) AS held "
        "WHERE change.relation = %s AND change.seq > %s AND change.seq <= %s ORDER BY change.seq"
    ).format(columns=sql.SQL(", ").join(columns), table=identifier(table.schema, table.table))


def _column(table: TableName, names: frozenset[str], name: str, kind: str) -> sql.Composable:
    if name not in names:
        if name not in _OWN:
            raise ValueError(f"{table} has no column {name}; it has {', '.join(sorted(names))}")
        return sql.SQL(_OWN[name][0])
    if kind not in _CASTS:
        raise ValueError(f"column {name} cannot be read as {kind}, only as {', '.join(_CASTS)}")
    return sql.SQL("held.{name}::{kind}").format(name=identifier(name), kind=sql.SQL(_CASTS[kind]))
