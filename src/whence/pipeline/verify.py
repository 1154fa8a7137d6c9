"""Whether a state is what its base tuples make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from whence.io.order import sort_rows
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.folder import StateFolder

_SHOWN = 3

Evaluate = Callable[[Program, Mapping[str, set[Tuple]]], Mapping[str, set[Tuple]]]


def verify(store: StateFolder, evaluate: Evaluate) -> Iterator[str]:
    """What is wrong, one sentence each: damaged files, changes that do not add up, views that are not the evaluator's."""
    damaged = list(store.damages())
    yield from damaged
    if damaged:
        return
    for older, newer in pairwise(store.manifest.snapshots):
        for name in store.outputs:
            added_up = store.view_at(name, newer.epoch, start=older)
            yield from _differences(store, name, newer.epoch, added_up, store.view_at(name, newer.epoch))
    epoch = store.last_epoch
    try:
        for piece in store.pieces():
            expected = evaluate(piece.program, piece.base)
            for name, view in piece.views.items():
                yield from _differences(store, name, epoch, view(), expected[name])
    except StateError as error:
        yield from error.problems


def _differences(store: StateFolder, name: str, epoch: int, found: set[Tuple], expected: set[Tuple]) -> Iterator[str]:
    relation = store.program.relations[name]
    kinds = [each.kind for each in relation.fields]
    for rows, what in ((expected - found, "lacks"), (found - expected, "holds without reason")):
        if rows:
            shown = ", ".join(str(row) for row in sort_rows(rows, kinds)[:_SHOWN])
            more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
            yield f"{name} after epoch {epoch} {what} {shown}{more}"
