"""Relations as tables of SQLite databases.

An input is a table, a view or a query with as many columns as the relation, taken in their order. An output is a table of its
own, which takes the place of one with its name; other tables of the file stay. What SQLite has no type for is text, as in fact
files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from whence.io.errors import FactError
from whence.io.values import HIGHEST, LOWEST, format_value, parse_value, quoted
from whence.lang.program import Relation
from whence.lang.transfers import Options
from whence.lang.types import BOOL, FLOAT, NUMBER, SYMBOL, UNSIGNED, Field, Kind, Nullable, Tuple, Types, Value, base

# A column of unsigned numbers has no type: SQLite would make floats of those that its integers cannot hold.
_COLUMN_TYPES: dict[Kind, str] = {NUMBER: " INTEGER", UNSIGNED: "", FLOAT: " REAL", BOOL: " INTEGER"}


def read_sqlite(path: Path, options: Options, relation: Relation, types: Types, *, hint: str) -> list[Tuple]:
    if not path.is_file():
        problem = "it is not a file" if path.exists() else "there is no such file"
        raise FactError([f"cannot read {path}: {problem}"], hints=[hint])
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as database:
            return _rows(database, path, options, relation, types)
    except sqlite3.Error as error:
        raise FactError([f"cannot read {path}: {error}"], hints=[hint]) from None


def _rows(database: sqlite3.Connection, path: Path, options: Options, relation: Relation, types: Types) -> list[Tuple]:
    tables, table = _tables(database), "the query" if options.query else options.name
    if not options.query and table not in tables:
        held = f"it holds {', '.join(tables)}" if tables else "it holds none"
        hint = f'{held}; .input {relation.name}(IO=sqlite, name="…") names another'
        raise FactError([f"{path} has no table or view {table}"], hints=[hint])
    found = database.execute(options.query or f"SELECT * FROM {_name(table)}")  # noqa: S608 - a quoted name
    columns = [each[0] for each in found.description]
    own = ", ".join(f"{each.name}: {each.type}" for each in relation.fields)
    if len(columns) != relation.arity:
        problem = (
            f"{path}: {table} has the columns {', '.join(columns)}, but {relation.name}({own}) has {relation.arity}"
        )
        hint = f'name the columns wanted: .input {relation.name}(IO=sqlite, query="SELECT …")'
        raise FactError([problem], hints=[hint])
    rows: list[Tuple] = []
    problems: list[str] = []
    for number, cells in enumerate(found, 1):
        try:
            rows.append(tuple(_value(*pair, types) for pair in zip(cells, relation.fields, strict=True)))
        except ValueError as error:
            problems.append(f"{path}: {table}, row {number}: {error}")
    if problems:
        raise FactError(problems, hints=[f"{relation.name} has the columns {own}"])
    return rows


def _tables(database: sqlite3.Connection) -> dict[str, str]:
    """The tables and views, each with which of the two it is."""
    return dict(database.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"))


def _value(cell: object, field: Field, types: Types) -> Value:
    kind = field.kind
    if isinstance(cell, int) and kind in (NUMBER, UNSIGNED) and LOWEST[kind] <= cell <= HIGHEST[kind]:
        return cell
    if isinstance(cell, str) and kind == SYMBOL:
        return cell
    if cell is None and isinstance(kind, Nullable):
        return None
    if isinstance(cell, int) and base(kind) == BOOL and cell in (0, 1):
        return bool(cell)
    if isinstance(cell, str) and isinstance(kind, Nullable) and kind.of == SYMBOL:
        return cell
    if isinstance(cell, int | float | str):
        try:
            return parse_value(repr(cell) if isinstance(cell, float) and kind != SYMBOL else str(cell), kind, types)
        except ValueError as error:
            raise ValueError(f"column {field.name}: {error}") from None
    if cell is None:
        raise ValueError(f"column {field.name}: NULL, which a column declared as {field.type}? could hold")
    raise ValueError(f"column {field.name}: bytes, which no column can hold")


def write_table(path: Path, table: str, rows: Sequence[Tuple], relation: Relation, types: Types) -> None:
    """The whole table or nothing: readers see the old one until the new one is complete."""
    fields = relation.fields
    columns = ", ".join(
        f"{name}{_COLUMN_TYPES.get(base(each.kind), ' TEXT')}"
        for name, each in zip(_columns(fields), fields, strict=True)
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            if kind := {name.lower(): kind for name, kind in _tables(database).items()}.get(table.lower()):
                database.execute(f"DROP {kind} {_name(table)}")
            database.execute(f"CREATE TABLE {_name(table)} ({columns})")
            insert = f"INSERT INTO {_name(table)} VALUES ({', '.join('?' * len(fields))})"  # noqa: S608 - a quoted name
            database.executemany(insert, _cells(rows, fields, types))
            database.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise FactError([f"cannot write {path}: {error}"], hints=[f".output {relation.name} asks for it"]) from None
    except UnicodeEncodeError as error:
        problem = f"cannot write {path}: {quoted(error.object[error.start : error.end])} has no UTF-8 form"
        raise FactError(
            [problem], hints=["half of a surrogate pair is not a character: look where it comes from"]
        ) from None


def _columns(fields: Sequence[Field]) -> Iterator[str]:
    """The names of the attributes, told apart where SQLite, which does not look at case, would take them for one."""
    taken: set[str] = set()
    for at, each in enumerate(fields, 1):
        name = each.name if each.name.lower() not in taken else f"{each.name}_{at}"
        taken.add(name.lower())
        yield _name(name)


def _cells(rows: Sequence[Tuple], fields: Sequence[Field], types: Types) -> Iterator[tuple[Value, ...]]:
    for row in rows:
        yield tuple(_cell(value, each.kind, types) for value, each in zip(row, fields, strict=True))


def _cell(value: Value, kind: Kind, types: Types) -> Value:
    if isinstance(kind, Nullable):
        return None if value is None else _cell(value, kind.of, types)
    if kind in (NUMBER, FLOAT, SYMBOL, BOOL):
        return value
    if kind == UNSIGNED:
        return value if value <= HIGHEST[NUMBER] else str(value)  # type: ignore[operator]
    return format_value(value, kind, types)


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
