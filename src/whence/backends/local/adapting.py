"""What adapting a view needs of tables: what is known of a relation, and what is left of derivations that go and come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.table import Table
from whence.lang.types import NUMBER, UNSIGNED, Kind

if TYPE_CHECKING:
    from whence.reasoning.costs import Observed

SAMPLE = 5_000


def observed(table: Table, kinds: Sequence[Kind]) -> Observed:
    """How many rows there are and, by a sample of them, how many values are in each column, and between which numbers."""
    from whence.reasoning.costs import Observed  # noqa: PLC0415 - brings what reasons about rules

    ids = table.ids()
    sample = np.ascontiguousarray(ids[:: max(1, len(ids) // SAMPLE)])
    columns = [table.column(sample, at) for at in range(len(kinds))]
    ranges = tuple(
        (float(column.min()), float(column.max())) if len(column) and kind in (NUMBER, UNSIGNED) else None
        for column, kind in zip(columns, kinds, strict=True)
    )
    return Observed(len(ids), tuple(_distinct(column, len(ids)) for column in columns), ranges)


def _distinct(sample: NDArray[np.int64], rows: int) -> int:
    """How many values a column is likely to have, by those of a sample: the more there are only once, the more are not in it.

    This is the first-order jackknife of Haas, Naughton, Seshadri and Stokes (VLDB 1995).
    """
    if not len(sample):
        return 0
    _, counts = np.unique(sample, return_counts=True)
    singles = int((counts == 1).sum())
    missed = (1 - len(sample) / rows) * singles / len(sample)
    return min(rows, round(len(counts) / (1 - missed)) if missed < 1 else rows)


def repeated(keys: Lines, counts: Sequence[Ids], times: int) -> Lines:
    """Each line as often as all its counts multiplied."""
    total: NDArray[np.int64] = np.full(len(keys), times, dtype=np.int64)
    for each in counts:
        total *= each
    return np.ascontiguousarray(np.repeat(keys, total, axis=0))


def net(table: Table, gone: Sequence[Lines], come: Sequence[Lines], columns: int) -> tuple[Lines, Lines]:
    """What is left of lines that go and lines that come: none of them is in both."""
    none: Lines = np.empty((0, columns), dtype=np.int64)
    away, new = (np.concatenate(side) if side else none for side in (gone, come))
    if not len(away) or not len(new):
        return away, new
    old, known = table.find(away), table.find(new)
    size = int(max(old.max(), known.max())) + 1
    change = np.bincount(known[known >= 0], minlength=size) - np.bincount(old[old >= 0], minlength=size)
    less, more = (np.flatnonzero(sign * change > 0).astype(np.int32) for sign in (-1, 1))
    left = _left_of_unknown(away[old < 0], new[known < 0])
    lost = np.repeat(table.keys(less), -change[less], axis=0)
    gained = np.concatenate([np.repeat(table.keys(more), change[more], axis=0), left])
    return np.ascontiguousarray(lost), np.ascontiguousarray(gained)


def _left_of_unknown(away: Lines, new: Lines) -> Lines:
    """Of rows that are not there, derivations that come and do not go again: no row can have less than none."""
    if not len(away):
        return new
    if not new.shape[1]:
        return new[len(away) :]
    every, places = np.unique(np.concatenate([away, new]), axis=0, return_inverse=True)
    places = places.reshape(-1)
    counts = np.bincount(places[len(away) :], minlength=len(every)) - np.bincount(
        places[: len(away)], minlength=len(every)
    )
    return np.repeat(every, counts, axis=0)
