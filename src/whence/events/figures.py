"""What a store holds, in numbers."""

from __future__ import annotations

from typing import Any

from whence.events.store import EventStore


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
