"""Captured PostgreSQL tables as a source: each base relation follows the table of its name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from whence.io import FactError
from whence.io.changes import Epoch, Position, Update
from whence.io.json_rows import fields_from_json
from whence.io.json_text import Json, read_json
from whence.io.updates import POLL, DeadLetter
from whence.io.values import parse_value
from whence.lang.program import Program, Relation
from whence.lang.types import Field, ListKind, RecordKind, Tuple, Types
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.extras import extra
from whence.pipeline.postgres import Connection, connect
from whence.pipeline.records import Bury, refusable
from whence.pipeline.sources import Source
from whence.pipeline.sources.capture import TableName
from whence.pipeline.sources.captured import Horizon, find_captured

with extra("postgres"):
    import psycopg

_FETCHED_AT_ONCE = 10_000
_CHANGES = """
    SELECT seq, relation, op, row::text, extract(epoch FROM at)::double precision FROM whence_capture.changes
    WHERE relation = ANY(%s) AND seq > %s AND seq <= %s ORDER BY seq
"""
_KEY = """
    SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey)
    WHERE indrelid = to_regclass(%s) AND indisprimary
"""


class TableSource(Source):
    """The changes of tables that are captured, in the order in which they were made.

    What is settled is an epoch, of `size` updates at most. A position is the number of a change. To `follow` is to wait for more.
    """

    def __init__(
        self,
        url: str,
        program: Program,
        bury: Bury,
        *,
        schema: str = "public",
        size: int | None = None,
        follow: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._url = url
        self._types = program.types
        self._relations = {str(TableName(schema, name)): program.relations[name] for name in program.base_relations}
        self._schema = schema
        self._bury = bury
        self._size = size
        self._follow = follow
        self._stopped = stopped
        self._horizon: Horizon | None = None

    def epochs(self, begin: Position) -> Iterator[Epoch]:
        done = begin.get("seq", 0)
        with connect(self._url) as connection:
            after = self._captured(connection, done)
        horizon = self._horizon = Horizon(
            self._url, [TableName(self._schema, name.rpartition(".")[2]) for name in after]
        )
        settled = horizon.advance()
        newest = horizon.newest
        while not self._stopped():
            if settled > done:
                yield from self._epochs(after, done, settled)
                done = settled
            if done >= newest and not self._follow:
                return
            time.sleep(POLL)
            settled = max(done, horizon.advance())

    def close(self) -> None:
        if self._horizon is not None:
            self._horizon.close()

    def _captured(self, connection: Connection, done: int) -> dict[str, int]:
        """The tables that are followed, each with the number after which its rows come. Raises FactError."""
        after = {}
        for name, relation in self._relations.items():
            table = TableName(self._schema, relation.name)
            found = find_captured(connection, table)
            if found is None:
                continue
            snapshot, forgotten = found
            if forgotten > max(done, snapshot):
                problem = (
                    f"changes of {table} up to number {forgotten} were forgotten, and only those up to {done} were read"
                )
                raise FactError([problem], hints=["release the table, capture it again, and start with a new state"])
            if 0 < done < snapshot:
                problem = f"{table} was captured anew since it was last read"
                raise FactError([problem], hints=["start with a new state"])
            key = {row[0] for row in connection.execute(_KEY, (table.quoted,))}
            missing = sorted(key - {each.name for each in relation.fields})
            if missing:
                problem = f"{relation.name} lacks the column {missing[0]}, which is in the key of {table}"
                raise FactError([problem], hints=["without it a tuple could stand for several rows"])
            after[name] = snapshot
        if not after:
            names = ", ".join(self._relations)
            hint = f"whence capture {' '.join(each.name for each in self._relations.values())} prints what to run in the database"
            raise FactError([f"none of the tables {names} is captured"], hints=[hint])
        return after

    def _epochs(self, after: dict[str, int], done: int, settled: int) -> Iterator[Epoch]:
        at = done

        def place() -> Position:
            return {"seq": at}

        cutter = EpochCutter(place, self._size)
        origins: list[tuple[int, bytes]] = []
        with connect(self._url) as connection, connection.cursor(name="whence_changes") as cursor:
            # One snapshot for the check and the rows: nothing can be forgotten in between.
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._captured(connection, done)
            cursor.itersize = _FETCHED_AT_ONCE
            cursor.execute(_CHANGES, (list(after), done, settled))
            for seq, table, op, row, when in cursor:
                if seq <= after[table]:
                    continue
                at = seq
                relation = self._relations[table]
                try:
                    update = Update(op, relation.name, _tuple(read_json(row), relation, self._types), when)
                except ValueError as error:
                    self._bury(DeadLetter(seq, f"{relation.name}: {error}", row), {"file": table, "seq": seq})
                    continue
                origins.append((seq, row.encode()))
                ended = cutter.take(update)
                if ended is not None:
                    yield refusable(ended, origins, self._bury)
                    origins = []
        at = settled
        ended = cutter.cut()
        if ended is not None:
            yield refusable(ended, origins, self._bury)


def _tuple(row: Json, relation: Relation, types: Types) -> Tuple:
    if not isinstance(row, dict):
        raise ValueError("this is not a row")  # noqa: TRY004 - every reason is a ValueError
    for each in relation.fields:
        if each.name not in row:
            raise ValueError(f"the table has no column {each.name}")
    values: list[Json] = []
    texts: dict[int, tuple[str, Field]] = {}
    for at, each in enumerate(relation.fields):
        value = row[each.name]
        # Records and lists are columns of text, as sinks write them.
        if isinstance(value, str) and isinstance(each.kind, RecordKind | ListKind):
            texts[at] = (value, each)
            value = None if isinstance(each.kind, RecordKind) else []
        values.append(value)
    found = list(fields_from_json(values, relation.fields, types))
    for at, (text, field) in texts.items():
        found[at] = parse_value(text, field.kind, types)
    return tuple(found)
