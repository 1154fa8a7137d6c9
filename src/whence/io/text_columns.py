"""Large files of plain text as columns, in and out: a tuple for each row would take longer than anything done with it.

What is not as plain as can be is left to the modules that know every form and can say what is wrong (`parse_rows`): both
directions give up, and say so, rather than differ from them.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from whence.io.errors import FactError
from whence.io.facts import input_path
from whence.io.files import write_file
from whence.io.frame_columns import columns_of_table
from whence.io.frames import FORMATS, table_in
from whence.io.plain_columns import Coded, PlainColumns, Words, packed, unpacked
from whence.lang.program import Relation, Transfer
from whence.lang.transfers import Options, read_options
from whence.lang.types import NUMBER, SYMBOL, UNSIGNED, Kind

if TYPE_CHECKING:
    import pyarrow as pa

A = TypeVar("A", bound=np.generic)
# Fewer rows are written sooner one by one.
MANY_ROWS = 50_000


def read_columns(transfer: Transfer, relation: Relation, folder: Path) -> PlainColumns | None:
    """The rows that an `.input` names, if they are in a file of plain text or in a table; None if it takes more to read it.

    Raises FactError.
    """
    options = _options(transfer, relation)
    if options is None or options.filename is None:
        return None
    path = input_path(transfer, options, folder)
    if path.suffix in FORMATS and path.exists() and not options.database:
        return columns_of_table(table_in(path, relation), relation, str(path))
    if not path.is_file() or path != folder / options.filename:
        return None
    if not _is_plain(options, relation):
        return None
    data = path.read_bytes()
    # Compressed, marked, with ends of lines of two kinds, with numbers in another base, with quotes that mean something.
    if data.startswith((b"\x1f\x8b", b"\xef\xbb\xbf")) or any(each in data for each in (b"\r", b"0x", b"0X")):
        return None
    if options.rfc4180 and b'"' in data:
        return None
    return _parsed(data, options, relation)


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


def _parsed(data: bytes, options: Options, relation: Relation) -> PlainColumns | None:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and small files do without
    from pyarrow import csv  # noqa: PLC0415

    types: dict[Kind, pa.DataType] = {
        NUMBER: pa.int64(), UNSIGNED: pa.uint64(), SYMBOL: pa.dictionary(pa.int32(), pa.string())
    }  # fmt: skip
    names = [str(at) for at in range(relation.arity)]
    try:
        table = csv.read_csv(
            BytesIO(data),
            csv.ReadOptions(column_names=names),
            csv.ParseOptions(delimiter=options.delimiter, quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(
                column_types={name: types[each.kind] for name, each in zip(names, relation.fields, strict=True)},
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if any(column.null_count for column in table.columns):
        return None
    return PlainColumns(tuple(_column(each) for each in table.columns))


def _column(column: pa.ChunkedArray) -> Words | Coded:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(column.type):
        whole = column.unify_dictionaries().combine_chunks()
        whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
        return Coded(_values(whole.indices, np.int32), whole.dictionary.to_pylist())
    return np.concatenate([_values(each, np.int64) for each in column.chunks])


def _values(array: pa.Array, kind: type[A]) -> NDArray[A]:
    """Those of an array without nulls. Asking Arrow for them would import pandas, which takes longer than a small evaluation."""
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * np.dtype(kind).itemsize)


def write_columns(transfer: Transfer, relation: Relation, columns: PlainColumns, folder: Path | None) -> bool:
    """Writes what an `.output` asks for, if that is many plain rows in a plain file; whether it did. Each row has to be there
    once."""
    options = _options(transfer, relation)
    if options is None or folder is None or options.filename is None or len(columns) < MANY_ROWS:
        return False
    if options.rfc4180 or not _is_plain(options, relation):
        return False
    if not all(_is_unambiguous(each.values, options) for each in columns.columns if isinstance(each, Coded)):
        return False
    write_file(folder / options.filename, _text(_in_order(columns, relation), options, relation))
    return True


def _is_unambiguous(values: list[str], options: Options) -> bool:
    """Whether the texts can stand as they are, and be written in UTF-8."""
    together = "\0".join(values)
    try:
        together.encode()
    except UnicodeEncodeError:
        return False
    return not any(each in together for each in (options.delimiter, '"', "\n", "\r"))


def _in_order(columns: PlainColumns, relation: Relation) -> list[pa.Array]:
    """The columns with rows in the order of their values."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    keys: list[Any] = []
    texts: list[pa.Array | None] = []
    for at, field in enumerate(relation.fields):
        column = columns.whole(at)
        if isinstance(column, Coded):
            # By their bytes, which is the order of their characters.
            values = pa.array(column.values, pa.string())
            by_text = pc.array_sort_indices(values)
            rank = np.empty(len(values), dtype=np.int64)
            rank[by_text.to_numpy()] = np.arange(len(values))
            keys.append(rank[column.places])
            texts.append(values.take(by_text))
        else:
            keys.append(column.view(np.uint64) if field.kind == UNSIGNED else column)
            texts.append(None)
    together = packed(keys)
    if together is not None:
        together.sort()
        keys = unpacked(together, keys)
    else:
        order = np.lexsort(keys[::-1])
        keys = [key[order] for key in keys]
    return [
        pa.array(key) if values is None else values.take(pa.array(key)) for key, values in zip(keys, texts, strict=True)
    ]


def _text(columns: list[pa.Array], options: Options, relation: Relation) -> bytes:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    table = pa.Table.from_arrays(columns, names=[each.name for each in relation.fields])
    sink = BytesIO()
    csv.write_csv(
        table, sink, csv.WriteOptions(include_header=False, delimiter=options.delimiter, quoting_style="none")
    )
    return sink.getvalue()
