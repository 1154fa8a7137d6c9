"""Delta plans run so that each derivation tells which rows it used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.backend import PORTION, Batch, LocalBackend
from whence.engine.protocol import BATCH, HIDDEN, QUEUED, SUSPENDED, Forbid, Trace
from whence.plan.steps import DeltaPlan


class TracedBatch(Batch):
    __slots__ = ("absent", "rows")

    def __init__(self, slots: int, size: int) -> None:
        super().__init__(slots, size)
        self.rows: dict[int, Ids] = {}
        self.absent: dict[int, Lines] = {}

    def keep(self, picks: NDArray[np.int32] | NDArray[np.bool_] | NDArray[np.intp]) -> None:
        super().keep(picks)
        self.rows = {position: rows[picks] for position, rows in self.rows.items()}
        self.absent = {position: keys[picks] for position, keys in self.absent.items()}

    def note_rows(self, position: int, rows: Ids) -> None:
        self.rows[position] = rows

    def note_absent(self, position: int, keys: Lines) -> None:
        self.absent[position] = keys


class TracingBackend(LocalBackend):
    batch_type = TracedBatch

    def trace(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> Iterator[Trace[Ids, Lines]]:
        """The derivations that a plan finds from changed rows, or from none if it has no positive literal."""
        if ids is None or plan.scan is None:
            yield self._traced(plan, TracedBatch(plan.slots, 1), forbid)
            return
        for start in range(0, len(ids), PORTION):
            batch = self._scan(plan, plan.scan, ids[start : start + PORTION])
            assert isinstance(batch, TracedBatch)
            yield self._traced(plan, batch, forbid)

    def rows(self, relation: str) -> Ids:
        """The numbers of all rows of a relation."""
        return self.tables[relation].ids()

    def size(self, relation: str) -> int:
        """What its row numbers stay below."""
        ids = self.rows(relation)
        return int(ids[-1]) + 1 if len(ids) else 0

    def claim(self, relation: str, keys: Lines) -> Ids:
        table = self.tables[relation]
        found = table.find(keys)
        if (found < 0).any():
            missing = np.ascontiguousarray(keys[found < 0])
            made = table.add_supports(missing, self.unranked(missing))
            table.change_flags(made, off=SUSPENDED | QUEUED | HIDDEN | BATCH)
            found = table.find(keys)
        return found

    def numbers(self, ids: Ids) -> list[int]:
        return ids.tolist()  # type: ignore[no-any-return]

    def ids(self, numbers: Sequence[int]) -> Ids:
        return np.array(numbers, dtype=np.int32)

    def _traced(self, plan: DeltaPlan, batch: TracedBatch, forbid: Forbid) -> Trace[Ids, Lines]:
        heads, _ = self._finish(plan, batch, forbid)
        return Trace(heads, batch.rows, batch.absent)
