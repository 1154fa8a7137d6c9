"""Streaming DataFrames of updates, brought to one shape, and their micro-batches as updates.

A DataFrame for a relation has the relation's columns, by name, and may have `op` (`+` or `-`; without it rows are
insertions), `time`, and `seq`, which orders the rows of a micro-batch. Without `seq` the order is the one in which Spark
hands them over. A name that the relation declares is the relation's column and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from whence.io.changes import Update
from whence.io.json_rows import fields_from_json
from whence.io.updates import DeadLetter
from whence.lang.program import Program, Relation
from whence.lang.scalars import text_of
from whence.lang.tables import taking_updates
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    RESERVED,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    DecimalKind,
    Field,
    Kind,
    Nullable,
    Types,
    base,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPECIAL = ("op", "time", "seq")
_ACCEPTED: Mapping[Kind, Callable[[pa.DataType], bool]] = {
    NUMBER: pa.types.is_signed_integer,
    UNSIGNED: lambda found: pa.types.is_integer(found) or pa.types.is_decimal(found),
    FLOAT: lambda found: pa.types.is_integer(found) or pa.types.is_floating(found),
    SYMBOL: lambda found: pa.types.is_string(found) or pa.types.is_large_string(found),
    BOOL: pa.types.is_boolean,
    DATE: pa.types.is_date32,
    TIMESTAMP: lambda found: found == pa.timestamp("us"),
}


class BadInput(ValueError):
    """A DataFrame that does not fit its relation."""


@dataclass(frozen=True)
class Inputs:
    """The DataFrames of some relations as one, with a column of structs for each; a row has a value in one of them.

    The DataFrame of a single relation is taken as it is: Spark plans every micro-batch anew, and what is simple soon.
    """

    relations: tuple[Relation, ...]
    types: Types

    @classmethod
    def of(cls, program: Program, names: Mapping[str, DataFrame]) -> Inputs:
        base = taking_updates(program)
        for name in names:
            if name not in base:
                known = ", ".join(base)
                raise BadInput(f"{name} is not a base relation of the program; its base relations are {known}")
        return cls(tuple(program.relations[name] for name in names), program.types)

    def union(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        from pyspark.sql import functions as f  # noqa: PLC0415

        for relation in self.relations:
            _check_columns(relation, frames[relation.name].columns)
        if len(self.relations) == 1:
            return frames[self.relations[0].name]

        def shaped(relation: Relation) -> DataFrame:
            frame = frames[relation.name]
            return frame.select(f.struct(*(f.col(f"`{name}`") for name in frame.columns)).alias(relation.name))

        parts = [shaped(relation) for relation in self.relations]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)

    def updates(self, batch: pa.Table, bury: Callable[[DeadLetter], None]) -> Iterator[Update]:
        """The updates of a micro-batch, relation by relation; rows that do not fit are buried with their number in it."""
        before = 0
        for relation in self.relations:
            table = batch if len(self.relations) == 1 else _part(batch, relation.name)
            if len(table):
                declared = {each.name for each in relation.fields}
                if "seq" in table.column_names and "seq" not in declared:
                    table = table.take(pc.sort_indices(table, sort_keys=[("seq", "ascending")]))
                yield from _Rows(relation, self.types, table, before).updates(bury)
                before += len(table)


def _check_columns(relation: Relation, found: list[str]) -> None:
    declared = [each.name for each in relation.fields]
    problems = [f"has no column {name}" for name in declared if name not in found]
    problems += [
        f"has a column {name} that {relation.name} lacks" for name in found if name not in (*declared, *_SPECIAL)
    ]
    problems += [f"has two columns {name}" for name in dict.fromkeys(found) if found.count(name) > 1]
    if not found:
        problems.append("has no columns: give it op")
    if problems:
        raise BadInput(f"the DataFrame for {relation.name}({', '.join(declared)}) {problems[0]}")


def _part(batch: pa.Table, relation: str) -> pa.Table:
    """The rows of a relation among those of several."""
    structs = batch.column(relation).combine_chunks()
    structs = structs.filter(structs.is_valid())
    return pa.table(dict(zip([field.name for field in structs.type], structs.flatten(), strict=True)))


@dataclass(frozen=True)
class _Rows:
    relation: Relation
    types: Types
    table: pa.Table
    before: int  # rows of other relations

    def updates(self, bury: Callable[[DeadLetter], None]) -> Iterator[Update]:
        name = self.relation.name
        ops, times = self._special("op"), self._special("time")
        if self._is_plain(ops, times):
            columns = [_plain(self.table.column(each.name), each.kind) for each in self.relation.fields]
            tuples = zip(*columns, strict=True) if columns else [()] * len(self.table)
            ops = ["+"] * len(self.table) if ops is None else ops
            times = [None] * len(self.table) if times is None else times
            yield from (Update(op, name, row, time) for op, row, time in zip(ops, tuples, times, strict=True))
            return
        for number, row in enumerate(self.table.to_pylist(), self.before + 1):
            try:
                yield self._update(row)
            except ValueError as error:
                bury(DeadLetter(number, f"{name}: {error}", json.dumps(row, ensure_ascii=False, default=str)))

    def _special(self, name: str) -> list[Any] | None:
        declared = {each.name for each in self.relation.fields}
        if name in declared or name not in self.table.column_names:
            return None
        column: list[Any] = self.table.column(name).to_pylist()
        return column

    def _is_plain(self, ops: list[Any] | None, times: list[Any] | None) -> bool:
        """Whether every row is an update and every column converts as a whole."""
        return (
            (ops is None or set(ops) <= {"+", "-"})
            and (times is None or all(time is None or (isinstance(time, float) and isfinite(time)) for time in times))
            and all(_converts(self.table.column(each.name), each.kind) for each in self.relation.fields)
        )

    def _update(self, row: dict[str, Any]) -> Update:
        declared = [each.name for each in self.relation.fields]
        op = row.get("op", "+") if "op" not in declared else "+"
        if op not in ("+", "-"):
            raise ValueError(f"op: {op!r} is neither '+' nor '-'")
        time = row.get("time") if "time" not in declared else None
        if time is not None and not (isinstance(time, int | float) and isfinite(time)):
            raise ValueError(f"time: {time!r} is not a finite number")
        values = [_as_json(row[each.name], each) for each in self.relation.fields]
        when = None if time is None else float(time)
        return Update(op, self.relation.name, fields_from_json(values, self.relation.fields, self.types), when)


def _converts(column: pa.ChunkedArray, kind: Kind) -> bool:
    if isinstance(kind, Nullable):
        if kind.of in RESERVED:  # one of these numbers is refused: row by row
            return False
        kind = kind.of
    elif column.null_count:
        return False
    if kind not in _ACCEPTED or not _ACCEPTED[kind](column.type):
        return False
    if kind == FLOAT and pa.types.is_floating(column.type):
        return not pc.any(pc.is_nan(column)).as_py()
    return kind != UNSIGNED or (pa.types.is_integer(column.type) and (pc.min(column).as_py() or 0) >= 0)


def _plain(column: pa.ChunkedArray, kind: Kind) -> list[Any]:
    values: list[Any] = (column.cast(pa.float64()) if base(kind) == FLOAT else column).to_pylist()
    return values


def _as_json(value: Any, field: Field) -> Any:
    """What Arrow gives for a cell, as JSON would have it."""
    if value is None and field.kind in _ACCEPTED:
        raise ValueError(f"{field.name}: null is not a value")
    if isinstance(value, float) and isnan(value):
        raise ValueError(f"{field.name}: nan is not a value")
    if base(field.kind) == UNSIGNED and value is not None and not isinstance(value, bool | str):
        return int(value)
    if isinstance(value, Decimal) and isinstance(base(field.kind), DecimalKind):
        return text_of(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return text_of(value) if isinstance(value, date) and base(field.kind) in (DATE, TIMESTAMP) else value
