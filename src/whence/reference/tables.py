"""Sets of tuples that can be looked up by some of their columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from whence.lang.types import Tuple, Value


class TupleSet:
    """A set of tuples. An index on some columns is built when first asked for and kept up to date."""

    def __init__(self, rows: Iterable[Tuple] = ()) -> None:
        self.rows: set[Tuple] = set(rows)
        self._indexes: dict[tuple[int, ...], defaultdict[Tuple, list[Tuple]]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: Tuple) -> bool:
        """Whether the row is new."""
        if row in self.rows:
            return False
        self.rows.add(row)
        for columns, index in self._indexes.items():
            index[tuple([row[column] for column in columns])].append(row)
        return True

    def replace(self, rows: set[Tuple]) -> None:
        self.rows = rows
        self._indexes.clear()

    def lookup(self, columns: tuple[int, ...], key: tuple[Value, ...]) -> Collection[Tuple]:
        """The rows with these values in these columns."""
        if not columns:
            return list(self.rows)
        if columns not in self._indexes:
            index = self._indexes[columns] = defaultdict(list)
            for row in self.rows:
                index[tuple([row[column] for column in columns])].append(row)
        return tuple(self._indexes[columns].get(key, ()))
