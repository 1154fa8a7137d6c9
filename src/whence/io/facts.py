"""Relations in and out, as their `.input`, `.output` and `.printsize` directives say."""

from __future__ import annotations

import gzip
import sys
import warnings
from collections.abc import Iterable, Sized
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from whence.io.collector import paused_collector
from whence.io.databases import read_duckdb, read_postgres
from whence.io.errors import FactError, FactWarning
from whence.io.files import decode, encode, read_file, write_file
from whence.io.format_rows import format_rows, header, reads_back
from whence.io.frames import FORMATS, found_beside, read_table_file
from whence.io.json_rows import format_json, parse_json
from whence.io.order import sort_rows
from whence.io.parse_rows import parse_rows
from whence.io.sqlite_rows import read_sqlite, write_table
from whence.lang.program import Relation, Transfer
from whence.lang.transfers import Options, read_options
from whence.lang.types import Tuple, Types

_FRAME = 15
# In bytes: below, it takes longer to load what reads columns.
LARGE_FILE = 1 << 20


@paused_collector()
def read_relation(transfer: Transfer, relation: Relation, types: Types, folder: Path) -> set[Tuple]:
    """The tuples that an `.input` names: in a file, which is looked for in `folder`, or on the standard input."""
    return set(read_rows(transfer, relation, types, folder))


@paused_collector()
def read_rows(transfer: Transfer, relation: Relation, types: Types, folder: Path) -> list[Tuple]:
    """The same in the order in which they are there, and as often."""
    options = _options(transfer, relation)
    if options.database == "postgres":
        return read_postgres(options, relation)
    if options.filename is None:
        name, data = "<stdin>", sys.stdin.buffer.read()
    else:
        path = folder / options.filename
        if options.database:
            read = read_sqlite if options.database == "sqlite" else read_duckdb
            return read(path, options, relation, types, hint=_where_from(path, relation, folder))
        if (other := input_path(transfer, options, folder)) != path:
            # Not Souffle's: a table that comes from elsewhere has names in its first line, and commas.
            path, options = other, replace(options, headers=True, rfc4180=True, delimiter=",")
        if path.suffix in FORMATS:
            return read_table_file(path, relation)
        name, data = str(path), read_file(path, hint=_where_from(path, relation, folder))
    text = decode(data, name)
    if options.json:
        return parse_json(text, relation, types, name)
    return parse_rows(text, options, relation, types, name)


@paused_collector()
def write_relation(
    transfer: Transfer, relation: Relation, types: Types, tuples: Iterable[Tuple], folder: Path | None
) -> None:
    """Writes what an `.output` asks for into `folder`, or prints all of it if there is no folder."""
    options = _options(transfer, relation)
    path = output_path(transfer, relation, folder)
    rows = sort_rows(tuples, [each.kind for each in relation.fields])
    if path is not None:
        _write(path, rows, options, relation, types)
    elif options.json and options.filename is None:
        _print(_lines(format_json(rows, options, relation, types)))
    else:
        _print_framed(rows, options, relation, types)


def output_path(transfer: Transfer, relation: Relation, folder: Path | None) -> Path | None:
    """The file that `write_relation` writes, or None if it prints."""
    filename = _options(transfer, relation).filename
    return None if filename is None or folder is None else folder / filename


def input_path(transfer: Transfer, options: Options, folder: Path) -> Path:
    """The file of an `.input`: where it names none, and there is none of its name, a table that comes from elsewhere."""
    assert options.filename is not None
    path = folder / options.filename
    return path if transfer.params or path.exists() else found_beside(path) or path


def read_from(transfer: Transfer, relation: Relation, folder: Path) -> str:
    """What messages call that which an `.input` names."""
    options = _options(transfer, relation)
    if options.database == "postgres":
        return f"{options.name} of the database"
    return "<stdin>" if options.filename is None else str(input_path(transfer, options, folder))


def is_large(transfer: Transfer, relation: Relation, folder: Path) -> bool:
    """Whether an `.input` names a file that is better read by columns (`text_columns`), if it can be."""
    options = _options(transfer, relation)
    if options.filename is None:
        return False
    path = input_path(transfer, options, folder)
    if path.is_dir():
        return sum(each.stat().st_size for each in path.iterdir()) >= LARGE_FILE
    return path.is_file() and path.stat().st_size >= LARGE_FILE


def print_size(transfer: Transfer, relation: Relation, tuples: Iterable[Tuple]) -> None:
    options = _options(transfer, relation)
    _print(f"{options.name}\t{len(tuples) if isinstance(tuples, Sized) else sum(1 for _ in tuples)}\n")


def _options(transfer: Transfer, relation: Relation) -> Options:
    def refuse(problem: str, advice: str, _: str) -> NoReturn:
        raise FactError([f".{transfer.kind} {relation.name}: {problem}"], hints=[advice])

    return read_options(transfer, relation, refuse)


def _where_from(path: Path, relation: Relation, folder: Path) -> str:
    if not path.is_relative_to(folder):
        return f".input {relation.name} asks for it"
    return f".input {relation.name} asks for it; -F sets the folder to look in, which is {folder} now"


def _write(path: Path, rows: list[Tuple], options: Options, relation: Relation, types: Types) -> None:
    if options.database:
        write_table(path, options.name, rows, relation, types)
        return
    if options.json:
        text = _lines(format_json(rows, options, relation, types))
    else:
        if not reads_back(rows, options, relation):
            message = f"{path}: a symbol of {relation.name} holds a line end or the delimiter, so the file is ambiguous"
            warnings.warn(f"{message}; .output {relation.name}(rfc4180=true) quotes it", FactWarning, stacklevel=3)
        text = _lines(_with_header(rows, options, relation, types))
    data = encode(text, str(path))
    # Without a time stamp, so that the same tuples give the same file.
    write_file(path, gzip.compress(data, mtime=0) if options.compress else data)


def _print_framed(rows: list[Tuple], options: Options, relation: Relation, types: Types) -> None:
    title = [options.name, header(options, relation)] if options.headers else [options.name]
    body = format_rows(rows, options, relation, types)
    _print(_lines(["-" * _FRAME, *title, "=" * _FRAME, *body, "=" * _FRAME]))


def _with_header(rows: list[Tuple], options: Options, relation: Relation, types: Types) -> Iterable[str]:
    lines = format_rows(rows, options, relation, types)
    return [header(options, relation), *lines] if options.headers else lines


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError as error:
        problem = f"cannot print {text[error.start : error.end]!r}: the output's encoding is {error.encoding}"
        raise FactError([problem], hints=["write to files with -D DIR, or set PYTHONIOENCODING=utf-8"]) from None


def _lines(lines: Iterable[str]) -> str:
    return "\n".join([*lines, ""])
