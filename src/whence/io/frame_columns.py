"""Tables that speak Arrow as columns of words, without a tuple for each row: Parquet files of millions of rows.

What is to be converted, or refused, goes row by row (`frames`), which says what is wrong.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from whence.io.frames import places
from whence.io.plain_columns import Coded, Pieces, PlainColumns, Words
from whence.lang.program import Relation
from whence.lang.types import FLOAT, LEAST, NUMBER, SYMBOL, UNSIGNED, Field, Kind, Nullable, base


def columns_of_table(table: pa.Table, relation: Relation, name: str) -> PlainColumns | None:
    """None if columns are of other kinds, or hold what takes more to say. Raises FactError, with `name` for the table."""
    if not relation.fields:
        return None
    found: list[Words | Coded | Pieces] = []
    for at, field in places(table.column_names, relation, name):
        column = _plain(table.column(at), field)
        if column is None:
            return None
        found.append(column)
    return PlainColumns(tuple(found))


def _plain(column: pa.ChunkedArray, field: Field) -> Words | Coded | Pieces | None:
    """A column as it is kept, if it is of the very type that its kind has; what is to be converted or refused goes row by row."""
    kind, is_nullable = base(field.kind), isinstance(field.kind, Nullable)
    if column.null_count and not is_nullable:
        return None
    if kind == SYMBOL:
        return _coded(column)
    if kind not in (NUMBER, UNSIGNED, FLOAT) or not _is_within(column.type, kind):
        return None
    wanted = {NUMBER: pa.int64(), UNSIGNED: pa.uint64(), FLOAT: pa.float64()}[kind]
    pieces: list[Words] = []
    for chunk in column.cast(wanted).chunks:
        words = _words(chunk, kind, is_nullable=is_nullable)
        if words is None:
            return None
        pieces.append(words)
    return pieces[0] if len(pieces) == 1 else Pieces(tuple(pieces))


def _words(values: pa.Array, kind: Kind, *, is_nullable: bool) -> Words | None:
    """Where Arrow has them, if they are words there already."""
    present = (values.fill_null(0) if values.null_count else values).to_numpy()
    if kind == FLOAT:
        if not np.isfinite(present).all():
            return None
        if (present.view(np.int64) == LEAST).any():
            present = present + 0.0  # -0.0 is 0.0
    words: Words = present.view(np.int64)
    if not is_nullable:
        return words
    if (words == LEAST).any():
        return None  # the one number that a column with nil cannot hold
    if values.null_count:
        words = np.where(pc.is_null(values).to_numpy(zero_copy_only=False), LEAST, words)
    return words


def _coded(column: pa.ChunkedArray) -> Coded | None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    if pa.types.is_dictionary(column.type) and not _has_null(column):
        return _of_dictionaries(column)
    # In one piece: null is one of the texts.
    whole = column.cast(kind).combine_chunks().dictionary_encode(null_encoding="encode")
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    return Coded(whole.indices.to_numpy(zero_copy_only=False), whole.dictionary.to_pylist())


def _has_null(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count) or any(chunk.dictionary.null_count for chunk in column.chunks)


def _of_dictionaries(column: pa.ChunkedArray) -> Coded:
    """The chunks of a row group share one dictionary: those of each are looked at once, not once for every chunk."""
    values = pa.array([], column.type.value_type)
    places = np.empty(len(column), dtype=np.int32)
    known: dict[tuple[int, ...], NDArray[np.int32]] = {}
    at = 0
    for chunk in column.chunks:
        own = chunk.dictionary
        identity = (own.offset, len(own), *(0 if each is None else each.address for each in own.buffers()))
        if identity not in known:
            new = own.filter(pc.invert(pc.is_in(own, value_set=values))).unique()
            values = pa.concat_arrays([values, new])
            known[identity] = pc.index_in(own, value_set=values).to_numpy()
        places[at : at + len(chunk)] = known[identity][chunk.indices.to_numpy()]
        at += len(chunk)
    return Coded(places, values.to_pylist())


def _is_within(found: pa.DataType, kind: Kind) -> bool:
    """Whether all values of a type are of the kind."""
    if kind == FLOAT:
        return bool(pa.types.is_float64(found) or pa.types.is_float32(found))
    if kind == UNSIGNED:
        return bool(pa.types.is_unsigned_integer(found))
    return bool(pa.types.is_signed_integer(found) or (pa.types.is_unsigned_integer(found) and found.bit_width < 64))
