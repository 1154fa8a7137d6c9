"""One relation of a session: its tuples one by one, or all at once as an Arrow table or a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from whence.backends.local.arrays import Ids
from whence.backends.local.backend import LocalBackend
from whence.backends.local.words import Words
from whence.html import SHOWN_ROWS, shown_block, shown_note, shown_table, shown_title
from whence.io.order import sort_rows
from whence.io.plain_columns import Coded, PlainColumns
from whence.lang.program import Relation
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    LEAST,
    NUMBER,
    SYMBOL,
    UNSIGNED,
    DecimalKind,
    Kind,
    Nullable,
    Tuple,
    Types,
    Value,
    base,
    is_whole,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_SORTED = 10_000  # of more rows the first at hand are shown
_BITS: dict[Kind, type[np.generic]] = {NUMBER: np.int64, UNSIGNED: np.uint64, FLOAT: np.float64}


class View:
    """A relation as it is whenever it is looked at; the order of its tuples means nothing.

    >>> from whence import Session, load
    >>> view = Session(load('.decl size(name:symbol, cm:number) size("ant", 1). size("bee", 2). .output size')).relation("size")
    >>> len(view), ("ant", 1) in view
    (2, True)
    >>> view.arrow().schema.names
    ['name', 'cm']
    """

    def __init__(self, relation: Relation, types: Types, backend: Callable[[], LocalBackend]) -> None:
        self.name = relation.name
        self.fields = relation.fields
        self._types = types
        self._current = backend

    @property
    def _backend(self) -> LocalBackend:
        return self._current()

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}:{field.type}" for field in self.fields)
        return f"<{self.name}({columns}), {len(self)} tuples>"

    def __len__(self) -> int:
        return len(self._backend.table(self.name))

    def _repr_html_(self) -> str:
        ids = self._backend.table(self.name).ids()
        rows = self._backend.decode(self.name, ids if len(ids) <= _SORTED else ids[:SHOWN_ROWS])
        shown = sort_rows(rows, [field.kind for field in self.fields])[:SHOWN_ROWS]
        left = len(ids) - len(shown)
        return shown_block(
            shown_title(self.name, f"{len(ids):,} tuples"),
            shown_table([field.name for field in self.fields], shown),
            shown_note(f"{left:,} more") if left else "",
        )

    def __iter__(self) -> Iterator[Tuple]:
        return iter(self._backend.decode(self.name, self._backend.table(self.name).ids()))

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, tuple) or len(row) != len(self.fields):
            return False
        words = [
            self._backend.dictionary.find(value, field.kind) for value, field in zip(row, self.fields, strict=True)
        ]
        if None in words:
            return False
        return bool(self._backend.table(self.name).find(np.array([words], dtype=np.int64))[0] >= 0)

    def arrow(self) -> pa.Table:
        """The columns as declared: `int64`, `uint64`, `double`, `string`, `bool`, dates and times, structs, lists."""
        # Slow to import, and most sessions do without.
        import pyarrow as pa  # noqa: PLC0415

        from whence.io.arrow import arrow_array, arrow_schema  # noqa: PLC0415

        if not self.fields:
            rows = pa.array([{}] * len(self), pa.struct([]))
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
        columns = self.columns(lambda values, kind: arrow_array(values, kind, self._types))
        return pa.Table.from_arrays(columns, schema=arrow_schema(self.fields, self._types))

    def columns(self, encode: Callable[[list[Value], Kind], pa.Array]) -> list[pa.Array]:
        """An array for each column. What is not a number is made by `encode`, each value of a column once."""
        table = self._backend.table(self.name)
        ids = table.ids()
        return [self._column(table.column(ids, at), field.kind, encode) for at, field in enumerate(self.fields)]

    def plain_columns(self) -> PlainColumns | None:
        """Numbers and texts by column; None if there are columns of other kinds."""
        if not self.fields or any(field.kind not in (NUMBER, UNSIGNED, SYMBOL) for field in self.fields):
            return None
        table = self._backend.table(self.name)
        ids = table.ids()
        found: list[Words | Coded] = []
        for at, field in enumerate(self.fields):
            words = table.column(ids, at)
            if field.kind != SYMBOL:
                found.append(words)
                continue
            distinct, place = self._distinct(words, field.kind)
            texts = self._backend.dictionary.decode_column(distinct, field.kind)
            found.append(Coded(place[words], texts))  # type: ignore[arg-type]
        return PlainColumns(tuple(found))

    def pandas(self) -> pd.DataFrame:
        table = self.arrow()
        frame = table.to_pandas()
        return frame if self.fields else frame.reindex(range(table.num_rows))

    def _column(self, words: Words, kind: Kind, encode: Callable[[list[Value], Kind], pa.Array]) -> pa.Array:
        import pyarrow as pa  # noqa: PLC0415

        if base(kind) in _BITS:
            absent = words == LEAST if isinstance(kind, Nullable) else None
            return pa.array(words.view(_BITS[base(kind)]), mask=absent)
        if is_whole(base(kind)):
            return self._whole(words, kind)
        # Each value that occurs is made once, then repeated where its word stands.
        distinct, place = self._distinct(words, kind)
        values = self._backend.dictionary.decode_column(distinct, kind)
        return encode(values, kind).take(pa.array(place[words]))

    def _distinct(self, words: Words, kind: Kind) -> tuple[Words, Ids]:
        """The words that occur, and for each of them its place among those."""
        occurs = np.zeros(self._backend.dictionary.bound(kind), dtype=np.bool_)
        occurs[words] = True
        distinct = np.flatnonzero(occurs)
        place: Ids = np.zeros(len(occurs), dtype=np.int32)
        place[distinct] = np.arange(len(distinct))
        return distinct, place

    def _whole(self, words: Words, kind: Kind) -> pa.Array:
        """Dates and the like: as NumPy has them, where it takes nil for no date."""
        import pyarrow as pa  # noqa: PLC0415

        absent = words == LEAST if isinstance(kind, Nullable) else None
        if base(kind) == BOOL:
            return pa.array(words == 1, mask=absent)
        if isinstance(base(kind), DecimalKind):
            return _decimals(words, kind)
        return pa.array(words.astype("datetime64[D]" if base(kind) == DATE else "datetime64[us]"), mask=absent)


def _decimals(words: Words, kind: Kind) -> pa.Array:
    """Whole numbers of 64 bits as Arrow's decimals of 128, without a value in between."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    of = base(kind)
    assert isinstance(of, DecimalKind)
    halves = np.stack([words, words >> 63], axis=1)
    made = pa.Array.from_buffers(
        pa.decimal128(of.precision, of.scale), len(words), [None, pa.py_buffer(halves.tobytes())]
    )
    return (
        pc.if_else(pa.array(words != LEAST), made, pa.scalar(None, made.type)) if isinstance(kind, Nullable) else made
    )
