"""Tuples as Arrow columns and back.

Values that are not made of others are columns of their own type, nil among them is null. The rest are their text, as in fact
files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa

from whence.io.values import format_value, parse_value
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    DecimalKind,
    Field,
    Kind,
    Primitive,
    Tuple,
    Types,
    Value,
    base,
    is_plain,
)
from whence.view import View

_NATIVE: dict[Kind, pa.DataType] = {
    NUMBER: pa.int64(),
    UNSIGNED: pa.uint64(),
    FLOAT: pa.float64(),
    SYMBOL: pa.string(),
    BOOL: pa.bool_(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us"),
}


def column_type(kind: Kind) -> pa.DataType:
    kind = base(kind)
    return (
        pa.decimal128(kind.precision, kind.scale) if isinstance(kind, DecimalKind) else _NATIVE.get(kind, pa.string())
    )


def encode_rows(rows: Sequence[Tuple], fields: Sequence[Field], types: Types) -> list[pa.Array]:
    """One array for each field."""
    columns: Iterable[Sequence[Value]] = zip(*rows, strict=True) if rows else repeat((), len(fields))
    return [_encode(column, each.kind, types) for column, each in zip(columns, fields, strict=True)]


def encode_view(view: View, types: Types) -> list[pa.Array]:
    """What `encode_rows` makes of its tuples, without making them."""
    return view.columns(lambda values, kind: _encode(values, kind, types))


def _encode(values: Sequence[Value], kind: Kind, types: Types) -> pa.Array:
    kind = base(kind)
    if isinstance(kind, Primitive) and kind != SYMBOL:
        return pa.array(values, column_type(kind))
    texts: list[Any] = list(values) if kind == SYMBOL else [format_value(value, kind, types) for value in values]
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8 form: such a column is kept as bytes.
        data = [None if text is None else text.encode(errors="surrogatepass") for text in texts]
        return pa.array(data, pa.binary())


def decode_rows(columns: Sequence[pa.Array | pa.ChunkedArray], fields: Sequence[Field], types: Types) -> list[Tuple]:
    """The rows of as many columns as there are fields, at least one."""
    return list(
        zip(*(_decode(column, each.kind, types) for column, each in zip(columns, fields, strict=True)), strict=True)
    )


def _decode(column: pa.Array | pa.ChunkedArray, kind: Kind, types: Types) -> list[Value]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_binary(column.type):
        values = [None if value is None else value.decode(errors="surrogatepass") for value in values]
    return values if is_plain(kind) else [parse_value(text, kind, types) for text in values]
