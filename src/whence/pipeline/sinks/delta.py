"""Views and changes as Delta Lake tables, one for each output relation.

Each commit to a table carries the epoch as Delta's transaction version, so that an epoch that arrives again is left out.
Epoch 0 is the beginning: it replaces what the table held before, and the epochs after it follow. Rows with text that has no UTF-8
form, which no table can hold, are changes of the table `whence_set_aside` instead.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import pyarrow as pa

from whence.io.changes import Changes
from whence.io.json_text import write_json
from whence.io.updates import as_json
from whence.lang.program import Program, Relation, output_names
from whence.lang.types import Tuple
from whence.pipeline.columns import encode_rows
from whence.pipeline.extras import extra
from whence.pipeline.sinks import Sink, SinkWarning

with extra("delta"):
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

APPLICATION = "whence"
SET_ASIDE = "whence_set_aside"


class _DeltaTables(Sink, ABC):
    """A Delta table at `FOLDER/RELATION` for each output relation. The folder may be a URL of an object store."""

    def __init__(self, folder: str | Path, program: Program, *, storage_options: dict[str, str] | None = None) -> None:
        self._folder = str(folder).rstrip("/")
        self._types = program.types
        self._options = storage_options
        self._outputs = [program.relations[name] for name in output_names(program)]
        for relation in self._outputs:
            if not relation.fields:
                raise ValueError(f"{relation.name} has no columns, which a Delta table needs")

    def write(self, epoch: int, changes: Changes) -> None:
        aside: list[tuple[str, Relation, Tuple]] = []
        for relation in self._outputs:
            gone, come = changes.deleted.get(relation.name, []), changes.inserted.get(relation.name, [])
            if any(pa.types.is_binary(each.type) for each in self._columns(relation, [*gone, *come]).values()):
                (gone, lost), (come, new) = self._told_apart(relation, gone), self._told_apart(relation, come)
                aside += [("-", relation, row) for row in lost] + [("+", relation, row) for row in new]
            if epoch == 0 or ((gone or come) and epoch > self._epoch_of(relation.name)):
                self._change(relation, epoch, gone, come)
        self._set_aside(epoch, aside)

    @abstractmethod
    def _change(self, relation: Relation, epoch: int, gone: list[Tuple], come: list[Tuple]) -> None:
        """Brings the table of a relation to an epoch that it does not show yet."""

    def _told_apart(self, relation: Relation, rows: list[Tuple]) -> tuple[list[Tuple], list[Tuple]]:
        """The rows that a table can hold, and the others."""
        sides: tuple[list[Tuple], list[Tuple]] = ([], [])
        for row in rows:
            columns = encode_rows([row], relation.fields, self._types)
            sides[any(pa.types.is_binary(each.type) for each in columns)].append(row)
        return sides

    def _set_aside(self, epoch: int, changes: list[tuple[str, Relation, Tuple]]) -> None:
        is_there = DeltaTable.is_deltatable(self._path(SET_ASIDE), self._options)
        if not changes and not (is_there and epoch == 0):
            return
        if is_there and 0 < epoch <= self._epoch_of(SET_ASIDE):
            return
        columns = {
            "epoch": pa.repeat(epoch, len(changes)),
            "op": pa.array([op for op, _, _ in changes], pa.string()),
            "relation": pa.array([relation.name for _, relation, _ in changes], pa.string()),
            "tuple": pa.array(
                [write_json(as_json(row, relation, self._types), ascii_only=True) for _, relation, row in changes],
                pa.string(),
            ),
        }
        self._write(SET_ASIDE, epoch, columns, mode="append" if epoch and is_there else "overwrite")
        if changes:
            names = ", ".join(dict.fromkeys(relation.name for _, relation, _ in changes))
            warnings.warn(
                f"Delta cannot hold some rows of {names}: they are in {self._path(SET_ASIDE)}",
                SinkWarning,
                stacklevel=2,
            )

    def _open(self, name: str) -> DeltaTable:
        return DeltaTable(self._path(name), storage_options=self._options)

    def _epoch_of(self, name: str) -> int:
        """The last epoch that changed the table."""
        epoch = self._open(name).transaction_version(APPLICATION)
        if epoch is None:
            raise ValueError(f"{self._path(name)} is a table of somebody else")
        return epoch

    def _path(self, name: str) -> str:
        return f"{self._folder}/{quote(name, safe='')}"

    def _columns(self, relation: Relation, rows: list[Tuple]) -> dict[str, pa.Array]:
        columns = encode_rows(rows, relation.fields, self._types)
        # Delta has no unsigned numbers.
        fitting = [each.cast(pa.decimal128(20, 0)) if each.type == pa.uint64() else each for each in columns]
        return dict(zip((field.name for field in relation.fields), fitting, strict=True))

    def _write(
        self, name: str, epoch: int, columns: dict[str, pa.Array], *, mode: Literal["append", "overwrite"]
    ) -> None:
        write_deltalake(
            self._path(name),
            pa.table(columns),
            mode=mode,
            schema_mode="overwrite" if mode == "overwrite" else None,
            commit_properties=_commit(epoch),
            storage_options=self._options,
        )


def _commit(epoch: int) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(APPLICATION, epoch)])


class DeltaChangesSink(_DeltaTables):
    """Appends the changes of each epoch: the columns `epoch`, `op` and those of the relation."""

    def __init__(self, folder: str | Path, program: Program, *, storage_options: dict[str, str] | None = None) -> None:
        super().__init__(folder, program, storage_options=storage_options)
        for relation in self._outputs:
            taken = {"epoch", "op"} & {field.name for field in relation.fields}
            if taken:
                raise ValueError(f"{relation.name} has a column {min(taken)}, as the table of changes has: rename it")

    def _change(self, relation: Relation, epoch: int, gone: list[Tuple], come: list[Tuple]) -> None:
        ops = pa.array(["-"] * len(gone) + ["+"] * len(come), pa.string())
        columns = {"epoch": pa.repeat(epoch, len(ops)), "op": ops, **self._columns(relation, [*gone, *come])}
        self._write(relation.name, epoch, columns, mode="append" if epoch else "overwrite")


class DeltaViewsSink(_DeltaTables):
    """Keeps each table equal to its view: deletions and insertions of an epoch are one version of the table."""

    def _change(self, relation: Relation, epoch: int, gone: list[Tuple], come: list[Tuple]) -> None:
        if epoch == 0:
            self._write(relation.name, epoch, self._columns(relation, come), mode="overwrite")
        else:
            self._merge(relation, epoch, gone, come)

    def _merge(self, relation: Relation, epoch: int, gone: list[Tuple], come: list[Tuple]) -> None:
        names = [field.name for field in relation.fields]
        mark = _other_than(names)
        marks = pa.array([False] * len(gone) + [True] * len(come))
        changes = pa.table({**self._columns(relation, [*gone, *come]), mark: marks})
        (
            self._open(relation.name)
            .merge(
                changes,
                predicate=" AND ".join(f'held."{name}" = new."{name}"' for name in names),
                source_alias="new",
                target_alias="held",
                commit_properties=_commit(epoch),
            )
            .when_matched_delete(predicate=f'NOT new."{mark}"')
            .when_not_matched_insert({f'"{name}"': f'new."{name}"' for name in names}, predicate=f'new."{mark}"')
            .execute()
        )


def _other_than(names: list[str]) -> str:
    mark = "inserted"
    while mark in names:
        mark += "_"
    return mark
