"""What change capture has written in a PostgreSQL database, and how far it can be read.

Changes are numbered in order but become visible when their transactions commit, in any order, so a reader must not pass a
number that may still appear. The newest number is *settled* once every transaction that was running when it was seen has ended:
only then is it read, and what lies before it never changes again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from whence.pipeline.extras import extra
from whence.pipeline.postgres import Connection, connect
from whence.pipeline.sources.capture import TableName

with extra("postgres"):
    import psycopg


class Horizon:
    """How far the changes of some tables are settled."""

    def __init__(self, url: str, tables: Sequence[TableName]) -> None:
        self._url = url
        self._tables = [str(table) for table in tables]
        self._connection = connect(url, autocommit=True)
        # Numbers that were the newest, each with a transaction id above all that were running then.
        self._waiting: deque[tuple[int, int]] = deque()
        self.newest = 0
        self._settled = 0

    def advance(self) -> int:
        newest = self._ask(
            "SELECT coalesce(max(seq), 0) FROM whence_capture.changes WHERE relation = ANY(%s)", self._tables
        )
        if newest > self.newest:
            # A transaction gets its id before it draws a number; the id asked for here comes after all of those.
            self._waiting.append((newest, self._ask("SELECT pg_current_xact_id()::text::bigint")))
            self.newest = newest
        oldest_running = (
            self._ask("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint") if self._waiting else 0
        )
        while self._waiting and self._waiting[0][1] < oldest_running:
            self._settled = self._waiting.popleft()[0]
        return self._settled

    def _ask(self, query: str, *parameters: Any) -> int:
        """The one number that the query gives; once more on a new connection if the old one is gone."""
        try:
            found = self._connection.execute(query, parameters).fetchone()
        except psycopg.OperationalError:
            if not self._connection.closed:
                raise
            self._connection = connect(self._url, autocommit=True)
            found = self._connection.execute(query, parameters).fetchone()
        assert found is not None
        return int(found[0])

    def close(self) -> None:
        self._connection.close()


def captured(connection: Connection, table: TableName) -> tuple[int, int]:
    """The number before the first rows of the table, and the last number that was forgotten."""
    found = find_captured(connection, table)
    if found is None:
        raise RuntimeError(f"{table} is not captured: whence capture {table} prints what to run in the database")
    return found


def find_captured(connection: Connection, table: TableName) -> tuple[int, int] | None:
    is_there = connection.execute("SELECT to_regclass('whence_capture.tables') IS NOT NULL").fetchone()
    if is_there != (True,):
        return None
    query = "SELECT snapshot, forgotten FROM whence_capture.tables WHERE relation = %s"
    found = connection.execute(query, (str(table),)).fetchone()
    return None if found is None else (found[0], found[1])
