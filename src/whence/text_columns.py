"""Large files of plain text as columns, in and out: a tuple for each row would take longer than anything done with it.

What is not as plain as can be is left to the modules that know every form and can say what is wrong (`io.parse_rows`): both
directions give up, and say so, rather than differ from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from whence.backends.local.text_in import read_lines, read_padded
from whence.backends.local.text_out import lines_in_order
from whence.io.errors import FactError
from whence.io.facts import input_path
from whence.io.files import write_pieces
from whence.io.frames import FORMATS, table_in
from whence.io.plain_columns import PlainColumns
from whence.lang.program import Relation, Transfer
from whence.lang.transfers import Options, read_options
from whence.lang.types import NUMBER, SYMBOL, UNSIGNED

# Fewer rows are written sooner one by one.
MANY_ROWS = 50_000
# What begins a file that is compressed, or marked.
MARKS = (b"\x1f\x8b", b"\xef\xbb\xbf")
QUOTE = ord('"')


def read_columns(transfer: Transfer, relation: Relation, folder: Path) -> PlainColumns | None:
    """The rows that an `.input` names, if they are in a file of plain text or in a table; None if it takes more to read it.

    Raises FactError.
    """
    options = _options(transfer, relation)
    if options is None or options.filename is None:
        return None
    path = input_path(transfer, options, folder)
    if path.suffix in FORMATS and path.exists() and not options.database:
        from whence.io.frame_columns import columns_of_table  # noqa: PLC0415 - brings Arrow

        return columns_of_table(table_in(path, relation), relation, str(path))
    if not path.is_file() or path != folder / options.filename:
        return None
    if not _is_plain(options, relation):
        return None
    data = read_padded(path)
    if data is None or data[:3].tobytes().startswith(MARKS):
        return None
    if options.rfc4180 and (data == QUOTE).any():
        return None
    return read_lines(data, ord(options.delimiter), [each.kind for each in relation.fields])


def _options(transfer: Transfer, relation: Relation) -> Options | None:
    def refuse(*_: str) -> NoReturn:
        raise FactError([])

    try:
        options = read_options(transfer, relation, refuse)
    except FactError:
        return None  # whoever reads it in the other way says what is wrong
    return options if options.filename is not None else None


def _is_plain(options: Options, relation: Relation) -> bool:
    return (
        relation.arity > 0
        and not (options.database or options.json or options.headers or options.compress or options.columns)
        and len(options.delimiter) == 1
        and options.delimiter.isascii()
        and all(each.kind in (NUMBER, UNSIGNED, SYMBOL) for each in relation.fields)
    )


def write_columns(transfer: Transfer, relation: Relation, columns: PlainColumns, folder: Path | None) -> bool:
    """Writes what an `.output` asks for, if that is many plain rows in a plain file; whether it did. Each row has to be there
    once."""
    options = _options(transfer, relation)
    if options is None or folder is None or options.filename is None or len(columns) < MANY_ROWS:
        return False
    if options.rfc4180 or not _is_plain(options, relation):
        return False
    pieces = lines_in_order(columns, [each.kind for each in relation.fields], options.delimiter)
    if pieces is None:
        return False
    write_pieces(folder / options.filename, pieces)
    return True
