"""Whether a state is what its base tuples make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import pyarrow.parquet as pq

from whence.io.order import sort_rows
from whence.lang.program import Program, output_names
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.folder import Store
from whence.pipeline.manifest import read_manifest
from whence.pipeline.publish import CURRENT, check_published
from whence.pipeline.snapshots import file_name, from_table

_SHOWN = 3

Evaluate = Callable[[Program, Mapping[str, set[Tuple]]], Mapping[str, set[Tuple]]]


def verify(store: Store, evaluate: Evaluate) -> Iterator[str]:
    """What is wrong, one sentence each: damaged files, changes that do not add up, views that are not the evaluator's."""
    found = read_manifest(store.folder)
    damaged = [*(() if found is None else found[1]), *store.damages()]
    yield from damaged
    if damaged:
        return
    for older, newer in pairwise(store.manifest.snapshots):
        for name in output_names(store.program_at(newer.epoch)):
            added_up = store.view_at(name, newer.epoch, start=older)
            yield from _differences(store, name, newer.epoch, added_up, store.view_at(name, newer.epoch))
    epoch = store.last_epoch
    yield from _published(store)
    try:
        for piece in store.pieces():
            expected = evaluate(piece.program, piece.base)
            for name, view in piece.views.items():
                yield from _differences(store, name, epoch, view(), expected[name])
    except StateError as error:
        yield from error.problems


def _published(store: Store) -> Iterator[str]:
    """What is wrong with the tables for others, as far as there are any."""
    current = store.folder / CURRENT
    if not current.is_symlink():
        return
    try:
        check_published(current.resolve())
    except StateError as error:
        yield from error.problems
        return
    epoch = int(current.resolve().name)
    if not store.oldest_epoch <= epoch <= store.last_epoch:
        yield f"{current} shows epoch {epoch}; the state holds epochs {store.oldest_epoch} to {store.last_epoch}"
        return
    program = store.program_at(epoch)
    for name in output_names(program):
        table = pq.read_table(current.resolve() / file_name(name))
        found = set(from_table(table, program.relations[name], program.types))
        for problem in _differences(store, name, epoch, found, store.view_at(name, epoch)):
            yield f"{current}: {problem}"


def _differences(store: Store, name: str, epoch: int, found: set[Tuple], expected: set[Tuple]) -> Iterator[str]:
    relation = store.program_at(epoch).relations[name]
    kinds = [each.kind for each in relation.fields]
    for rows, what in ((expected - found, "lacks"), (found - expected, "holds without reason")):
        if rows:
            shown = ", ".join(str(row) for row in sort_rows(rows, kinds)[:_SHOWN])
            more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
            yield f"{name} after epoch {epoch} {what} {shown}{more}"
