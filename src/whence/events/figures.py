"""What a store holds, in numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whence.events.store import EventStore
from whence.events.tables import Row, as_parquet


def figures_of(store: EventStore) -> dict[str, Any]:
    """Rows and bytes on disk: of tuples, of the rows that say why, and of the history of slow relations."""
    rows = {table.name: len(table) for table in store.tables if len(table)}
    sizes = {table.name: table.sizes() for table in store.tables if table.files}
    slow = sum(sizes.pop("history", {}).values())
    tuples = sum(columns.get("tuple", 0) for columns in sizes.values())
    total = sum(sum(columns.values()) for columns in sizes.values())
    return {
        "scheme": store.scheme.name,
        "runs": store.runs,
        "configuration": store.history.configuration,
        "rows": rows,
        "bytes": {"total": total, "tuples": tuples, "rows": total - tuples, "slow": slow},
    }


def sizes_by_place(store: EventStore) -> dict[str, dict[str, int]]:
    """The bytes that each place keeps, in files of its own: of tuples, and of the rows that say why.

    Slow relations are not counted: whatever is written down of events, they have a history.
    """
    found: dict[str, dict[str, int]] = {}
    for table in store.tables:
        if table.name == "history":
            continue
        by_place: dict[str, list[Row]] = {}
        for row in table:
            by_place.setdefault(row[0], []).append(row[1:])
        schema = pa.schema(list(table.layout.schema)[1:])
        for place, rows in by_place.items():
            sizes = _column_sizes(rows, schema)
            own = found.setdefault(place, {"tuples": 0, "rows": 0})
            own["tuples"] += sizes.pop("tuple", 0)
            own["rows"] += sum(sizes.values())
    return found


def _column_sizes(rows: list[Row], schema: pa.Schema) -> dict[str, int]:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    metadata = pq.read_metadata(pa.BufferReader(as_parquet(pa.Table.from_arrays(arrays, schema=schema))))
    found: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            column = metadata.row_group(group).column(at)
            name = column.path_in_schema.split(".")[0]
            found[name] = found.get(name, 0) + column.total_compressed_size
    return found
