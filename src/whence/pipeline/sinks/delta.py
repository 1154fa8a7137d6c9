"""Views and changes as Delta Lake tables, one for each output relation.

Each commit to a table carries the epoch as Delta's transaction version, so that an epoch that arrives again is left out.
Epoch 0 is the beginning: it replaces what the table held before, and the epochs after it follow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import quote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from whence.io.changes import Changes
from whence.lang.program import Program, Relation
from whence.lang.types import Tuple
from whence.pipeline.columns import encode_rows
from whence.pipeline.folder import output_names

APPLICATION = "whence"


class _DeltaTables:
    """A Delta table at `FOLDER/RELATION` for each output relation. The folder may be a URL of an object store."""

    def __init__(self, folder: str | Path, program: Program, *, storage_options: dict[str, str] | None = None) -> None:
        self._folder = str(folder).rstrip("/")
        self._types = program.types
        self._options = storage_options
        self._outputs = [program.relations[name] for name in output_names(program)]
        for relation in self._outputs:
            if not relation.fields:
                raise ValueError(f"{relation.name} has no columns, which a Delta table needs")

    def _open(self, relation: Relation) -> DeltaTable:
        return DeltaTable(self._path(relation), storage_options=self._options)

    def _epoch_of(self, relation: Relation) -> int:
        """The last epoch that changed the table."""
        epoch = self._open(relation).transaction_version(APPLICATION)
        if epoch is None:
            raise ValueError(f"{self._path(relation)} is a table of somebody else")
        return epoch

    def _path(self, relation: Relation) -> str:
        return f"{self._folder}/{quote(relation.name, safe='')}"

    def _columns(self, relation: Relation, rows: list[Tuple]) -> dict[str, pa.Array]:
        columns = encode_rows(rows, relation.fields, self._types)
        # Delta has no unsigned numbers.
        fitting = [each.cast(pa.decimal128(20, 0)) if each.type == pa.uint64() else each for each in columns]
        return dict(zip((field.name for field in relation.fields), fitting, strict=True))

    def _write(
        self, relation: Relation, epoch: int, columns: dict[str, pa.Array], *, mode: Literal["append", "overwrite"]
    ) -> None:
        write_deltalake(
            self._path(relation),
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

    def write(self, epoch: int, changes: Changes) -> None:
        for relation in self._outputs:
            gone, come = changes.deleted.get(relation.name, []), changes.inserted.get(relation.name, [])
            if epoch == 0 or ((gone or come) and epoch > self._epoch_of(relation)):
                ops = pa.array(["-"] * len(gone) + ["+"] * len(come), pa.string())
                columns = {"epoch": pa.repeat(epoch, len(ops)), "op": ops, **self._columns(relation, [*gone, *come])}
                self._write(relation, epoch, columns, mode="append" if epoch else "overwrite")


class DeltaViewsSink(_DeltaTables):
    """Keeps each table equal to its view: deletions and insertions of an epoch are one version of the table."""

    def write(self, epoch: int, changes: Changes) -> None:
        for relation in self._outputs:
            gone, come = changes.deleted.get(relation.name, []), changes.inserted.get(relation.name, [])
            if epoch == 0:
                self._write(relation, epoch, self._columns(relation, come), mode="overwrite")
            elif (gone or come) and epoch > self._epoch_of(relation):
                self._merge(relation, epoch, gone, come)

    def _merge(self, relation: Relation, epoch: int, gone: list[Tuple], come: list[Tuple]) -> None:
        names = [field.name for field in relation.fields]
        mark = _other_than(names)
        marks = pa.array([False] * len(gone) + [True] * len(come))
        changes = pa.table({**self._columns(relation, [*gone, *come]), mark: marks})
        (
            self._open(relation)
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
