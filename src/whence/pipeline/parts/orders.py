"""What parts are asked to do, what they answer, and what they write, whoever keeps them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from whence.io import FactError
from whence.io.changes import Changes
from whence.lang.calls import FunctionError
from whence.limits import Limits, RunawayError
from whence.pipeline.base import Base
from whence.pipeline.files import StateWarning
from whence.pipeline.log import Entry, decode_entries
from whence.pipeline.options import Follower
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.publish import write_tables
from whence.pipeline.snapshots import Snapshot, as_table, file_name
from whence.plan.partition import Partitioning
from whence.reader import Reader, Work
from whence.reference import EvaluationWarning

# What an epoch may raise: the driver raises it again.
EXPECTED = (RunawayError, FunctionError, FactError)
_WORTH_TELLING = (StateWarning, EvaluationWarning)


class Action(Enum):
    """BEGIN: the first state, from the facts given. APPLY: the epochs given. SNAPSHOT and PUBLISH: of the last epoch.

    RECALL: have the last epoch in memory, and do nothing with it.
    """

    BEGIN = "begin"
    APPLY = "update"
    SNAPSHOT = "snapshot"
    PUBLISH = "publish"
    RECALL = "recall"


@dataclass(frozen=True)
class Job:
    """What all tasks of a run have in common."""

    how: Partitioning
    outputs: tuple[str, ...]
    strategy: str
    limits: Limits
    follow: Callable[[Reader], Follower] | None = None

    def shown(self, part: int) -> tuple[str, ...]:
        """The output relations whose rows the part keeps and tells: those that all parts have are the first one's."""
        return tuple(name for name in self.outputs if part == 0 or name in self.how.columns)


@dataclass(frozen=True)
class EpochWork:
    """What an epoch did in a part. Updates that all parts get are counted in the first."""

    updates: int
    effective: int
    inserted: Counter[str]
    deleted: Counter[str]
    work: Work
    # Of parts that ship each other what they need: rounds in which they did, tuples and bytes.
    exchanges: int = 0
    shipped: int = 0
    shipped_bytes: int = 0
    switches: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hint:
    """What all parts have to know of an epoch: the relations that it may change, and whether it only inserts."""

    touched: frozenset[str]
    grows: bool


@dataclass(frozen=True)
class Done:
    """What became of a part. `failed` is the epoch that raised `error`; `remembered` tells whether its session was there."""

    part: int
    worker: str = ""
    remembered: bool = False
    segment: str = ""
    epochs: Sequence[EpochWork] = ()
    snapshot: Snapshot | None = None
    table_bytes: Mapping[str, int] = field(default_factory=dict)
    # Of all that the worker has: its parts share them.
    values: int = 0
    value_bytes: int = 0
    warnings: Sequence[tuple[type[Warning], str]] = ()
    failed: int = 0
    error: Exception | None = None


@dataclass(frozen=True)
class PartFiles:
    """What a part is given and what it writes."""

    store: PartedStore
    job: Job
    part: int

    def given(self, exchange: Path) -> list[Entry]:
        return decode_entries((exchange / f"{self.part}.parquet").read_bytes(), self.job.how.program)

    def shown(self, changes: Changes) -> Changes:
        names = self.job.shown(self.part)
        inserted = {name: changes.inserted[name] for name in names if name in changes.inserted}
        return Changes(inserted, {name: changes.deleted[name] for name in names if name in changes.deleted})

    def work(self, entry: Entry, changes: Changes, shown: Changes, work: Work, follower: Follower | None) -> EpochWork:
        program, columns = self.job.how.program, self.job.how.columns
        counted = {name for name in program.base_relations if self.part == 0 or name in columns}
        updates = sum(update.relation in counted for update in entry.updates)
        sides = (changes.inserted, changes.deleted)
        effective = sum(len(rows) for side in sides for name, rows in side.items() if name in counted)
        inserted, deleted = (
            Counter({name: len(rows) for name, rows in side.items()}) for side in (shown.inserted, shown.deleted)
        )
        found = () if follower is None else follower.after_epoch()
        switches = tuple(f"part {self.part}, {each}" for each in found)
        return EpochWork(updates, effective, inserted, deleted, work, switches=switches)

    def snapshot(self, state: Reader, epoch: int) -> tuple[Snapshot, str | None]:
        """Written for an epoch, with the segment that replaces those since the one before, if there was one."""
        views = {name: state.relation(name) for name in self.job.shown(self.part)}
        made = self.store.write_snapshot(self.part, epoch, Base.of(state), views, self.job.how)
        before = self.store.manifest.snapshots
        is_later = bool(before) and before[-1].epoch < epoch
        return made, self.store.merge_segments(self.part, before[-1].epoch).name if is_later else None

    def publish(self, state: Reader, epoch: int) -> None:
        program = self.job.how.program
        tables = {
            f"{file_name(name)}/part-{self.part}.parquet": as_table(
                state.relation(name), program.relations[name], program.types
            )
            for name in self.job.shown(self.part)
        }
        write_tables(self.store.folder / "views" / f"{epoch:012d}", tables, part=f"-{self.part}")


@contextmanager
def told_warnings() -> Iterator[list[tuple[type[Warning], str]]]:
    """What the driver is to warn of."""
    told: list[tuple[type[Warning], str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    told += [(each.category, str(each.message)) for each in caught if issubclass(each.category, _WORTH_TELLING)]
