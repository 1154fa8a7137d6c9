"""A peer's tables in PostgreSQL, whose changes are captured: only rows that were touched since the last time are looked at.

`whence capture TABLE` makes the database record every change of a user's own table. A row is what the table has of it now,
whoever touched it in between; so what the exchange wrote itself may be looked at again and changes nothing. No change can
appear any more behind the position. Tables that are not captured are read whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from whence.exchange.databases import POSTGRES, DatabaseTables
from whence.exchange.model import Relation
from whence.exchange.tables import value_of
from whence.io import FactError
from whence.lang.types import Tuple
from whence.pipeline.postgres import connect
from whence.pipeline.sources.capture import TableName
from whence.pipeline.sources.captured import Horizon, find_captured

_TOUCHED = "SELECT row FROM whence_capture.changes WHERE relation = %s AND seq > %s"


class CapturedTables(DatabaseTables):
    def __init__(self, url: str) -> None:
        super().__init__(lambda: connect(url), POSTGRES, (psycopg.Error,))
        self._url = url

    def read_since(
        self, relations: Sequence[Relation], before: Mapping[str, set[Tuple]], position: int | None
    ) -> tuple[dict[str, set[Tuple]], int | None]:
        """All rows, given those at a position, and a position to go on from; None if nothing is captured."""
        problems: list[str] = []
        found: dict[str, set[Tuple]] = {}
        with self._transaction() as cursor:
            tables = self._captured(cursor, relations)
        settled = self._settled(list(tables.values()))
        with self._transaction() as cursor:
            cursor.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            for relation in relations:
                table = tables.get(relation.full_name)
                if table is None or position is None or self._is_forgotten(cursor, table, position):
                    found[relation.full_name] = self._read(cursor, relation, problems)
                else:
                    touched = self._touched(cursor, relation, table, position, problems)
                    kept = before.get(relation.full_name, set()) - touched
                    found[relation.full_name] = kept | self._present(cursor, relation, touched)
        if problems:
            raise FactError(problems, hints=["mend the table; nothing was published"])
        return found, settled

    def _captured(self, cursor: Any, relations: Sequence[Relation]) -> dict[str, TableName]:
        cursor.execute("SELECT current_schema()")
        (schema,) = cursor.fetchone()
        named = {each.full_name: TableName(schema, each.name) for each in relations}
        return {name: table for name, table in named.items() if find_captured(cursor.connection, table) is not None}

    def _settled(self, tables: Sequence[TableName]) -> int | None:
        if not tables:
            return None
        horizon = Horizon(self._url, tables)
        try:
            return horizon.advance()
        finally:
            horizon.close()

    def _is_forgotten(self, cursor: Any, table: TableName, position: int) -> bool:
        known = find_captured(cursor.connection, table)
        return known is None or position < max(known)

    def _touched(
        self, cursor: Any, relation: Relation, table: TableName, position: int, problems: list[str]
    ) -> set[Tuple]:
        cursor.execute(_TOUCHED, (str(table), position))
        rows: set[Tuple] = set()
        for (content,) in cursor.fetchall():
            try:
                rows.add(
                    tuple(
                        value_of(content.get(each.name), content.get(f"{each.name}_null"), each.type, each.name)
                        for each in relation.columns
                    )
                )
            except ValueError as error:
                problems.append(f"table {relation.name}: {error}")
        return rows

    def _present(self, cursor: Any, relation: Relation, rows: set[Tuple]) -> set[Tuple]:
        columns = self._columns(cursor, relation)
        return {row for row in rows if self._has(cursor, relation, row, columns)}
