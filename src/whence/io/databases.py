"""Relations from DuckDB files and PostgreSQL servers: a table or view of the relation's name, or what a query gives.

Columns are found by name, as in every table that speaks Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from whence.io.errors import FactError
from whence.io.frames import rows_of_table
from whence.lang.program import Relation
from whence.lang.transfers import Options
from whence.lang.types import Tuple, Types


def read_duckdb(path: Path, options: Options, relation: Relation, _: Types, *, hint: str) -> list[Tuple]:
    """Raises FactError."""
    with _extra("duckdb"):
        import duckdb  # noqa: PLC0415

    if not path.is_file():
        problem = "it is not a file" if path.exists() else "there is no such file"
        raise FactError([f"cannot read {path}: {problem}"], hints=[hint])
    try:
        with closing(duckdb.connect(str(path), read_only=True)) as database:
            table = database.sql(_query(options)).to_arrow_table()
    except duckdb.Error as error:
        raise FactError([f"{path}: {_first_line(error)}"], hints=[hint]) from None
    return rows_of_table(table, relation, f"{_what(options)} of {path}")


def read_postgres(options: Options, relation: Relation) -> list[Tuple]:
    """From the server of `url`, or the one that libpq's environment names (PGHOST, PGSERVICE, …). Raises FactError."""
    with _extra("postgres"):
        import psycopg  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    where = f".input {relation.name}"
    try:
        with psycopg.connect(options.url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute(_query(options).encode())
            if cursor.description is None:
                raise FactError([f"{where}: the query gives no rows"], hints=["write a SELECT"])
            names = [each.name for each in cursor.description]
            rows = cursor.fetchall()
    except psycopg.Error as error:
        hint = "a password may be in PGPASSWORD or in ~/.pgpass; url takes what libpq takes"
        raise FactError([f"{where}: {_first_line(error)}"], hints=[hint]) from None
    columns = [pa.array([row[at] for row in rows]) for at in range(len(names))]
    return rows_of_table(pa.table(columns, names=names), relation, f"{_what(options)} of {where}")


def _query(options: Options) -> str:
    name = options.name.replace('"', '""')
    return options.query or f'SELECT * FROM "{name}"'  # noqa: S608 - a quoted name


def _what(options: Options) -> str:
    return "the query" if options.query else options.name


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


@contextmanager
def _extra(name: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise FactError([f"{error.name} is not installed"], hints=[f"pip install 'whence[{name}]'"]) from None
