"""What a task does for parts of the state, with sessions that its worker remembers or that it makes from files.

Python workers outlive tasks and their memory stays, but Spark gives a task to any of them. So a task does not come with its
parts: it claims them, first those that its worker remembers. A claim is a link that only one task can make.

Nothing rests on what is remembered. A session is used if it has come to the segment that was committed last. If it has come to
an earlier one, it catches up; otherwise it is made anew.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from math import ceil
from pathlib import Path

from pyspark import cloudpickle

from whence.backends.local.shared import Shared
from whence.engine.windows import Windows
from whence.io import FactError
from whence.io.changes import Changes
from whence.lang.calls import FunctionError
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.pipeline.base import Base
from whence.pipeline.files import StateError, StateWarning
from whence.pipeline.log import Entry, decode_entries
from whence.pipeline.manifest import Manifest
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.publish import write_tables
from whence.pipeline.snapshots import Snapshot, as_table, file_name
from whence.plan.partition import Partitioning
from whence.prepared import prepare
from whence.reference import EvaluationWarning
from whence.session import Session, Work

CLAIMS = "claims"

# What an epoch may raise: the driver raises it again.
_EXPECTED = (RunawayError, FunctionError, FactError)
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


@dataclass
class _Held:
    """A session, the epoch and the segment it has come to."""

    session: Session
    epoch: int
    segment: str


@dataclass
class _Memory:
    """What a worker remembers of a run: the sessions of parts, and the words of values, which are the same in all of them."""

    held: dict[int, _Held] = field(default_factory=dict)
    shared: Shared = field(default_factory=Shared)


_remembered: dict[tuple[str, str], _Memory] = {}


@dataclass(frozen=True)
class Order:
    """A piece of work on all parts, shipped to `tasks` tasks. `segments` are the parts' last committed ones, up to `epoch`."""

    run: str
    folder: Path
    manifest: Manifest
    exchange: Path  # claims, and what the parts are given
    job: bytes
    action: Action
    parts: int
    tasks: int
    epoch: int
    segments: Sequence[str]

    def __call__(self, index: int) -> list[Done]:
        """What the task with this number does."""
        job = _unpickled(self.job)
        # One run at a time uses a folder.
        for key in [key for key in _remembered if key[0] == str(self.folder) and key[1] != self.run]:
            del _remembered[key]
        memory = _remembered.setdefault((str(self.folder), self.run), _Memory())
        held = memory.held
        claimed = self._claimed(index, list(held))
        others = [part for part in held if part not in claimed]
        for part in others[: max(0, len(others) + len(claimed) - self._quota)]:
            del held[part]  # first, since there may not be room for more than that
        return [_Task(self, job, part, memory).done() for part in claimed]

    @property
    def _quota(self) -> int:
        return ceil(self.parts / self.tasks)

    def _claimed(self, index: int, remembered: list[int]) -> list[int]:
        claims = self.exchange / CLAIMS
        if not claims.exists():
            hint = "keep the state on a file system that all machines share"
            raise StateError([f"{self.folder} is not there on {socket.gethostname()}"], hints=[hint])
        # A task that died may have made claims: they are this one's, which does its work again.
        mine = [int(path.name) for path in claims.iterdir() if path.readlink() == Path(str(index))]
        others = [part for part in range(self.parts) if part not in remembered]
        for part in [*remembered, *others]:
            if len(mine) == self._quota:
                break
            if part not in mine and _linked(claims / str(part), str(index)):
                mine.append(part)
        return mine


@lru_cache(maxsize=2)
def _unpickled(job: bytes) -> Job:
    return cloudpickle.loads(job)  # type: ignore[no-any-return]


def _linked(path: Path, target: str) -> bool:
    try:
        path.symlink_to(target)
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class _Task:
    """The work of an order on one part."""

    order: Order
    job: Job
    part: int
    memory: _Memory

    def done(self) -> Done:
        # Forgotten until it has come through: an epoch may fail half-way.
        held = self.memory.held.pop(self.part, None)
        remembered = held is not None and held.segment == self.order.segments[self.part]
        with _told() as told:
            try:
                done = self._act(held)
            except _EXPECTED as error:
                done = Done(self.part, failed=self.order.epoch + 1, error=error)
        return replace(done, worker=f"{socket.gethostname()}:{os.getpid()}", remembered=remembered, warnings=told)

    def _act(self, held: _Held | None) -> Done:
        if self.order.action is Action.BEGIN:
            return self._begin()
        held = self._current(held)
        match self.order.action:
            case Action.APPLY:
                return self._apply(held)
            case Action.SNAPSHOT:
                return self._snapshot(held)
            case Action.PUBLISH:
                return self._publish(held)
            case _:
                return self._keep(held, Done(self.part))

    def _begin(self) -> Done:
        facts: dict[str, list[Tuple]] = {}
        for update in self._given()[0].updates:
            facts.setdefault(update.relation, []).append(update.tuple)
        held = _Held(self._session(facts), 0, "")
        return self._snapshot(held)

    def _apply(self, held: _Held) -> Done:
        entries, epochs = [], []
        for entry in self._given():
            try:
                changes = held.session.apply(entry.updates, now=entry.now, checked=True)
            except _EXPECTED as error:
                return Done(self.part, failed=entry.epoch, error=error)
            shown = self._shown(changes)
            entries.append(replace(entry, changes=shown))
            epochs.append(self._work(entry, changes, shown, held.session.last_epoch))
        segment = self._store.write_segment(self.part, entries).name
        return self._keep(
            _Held(held.session, entries[-1].epoch, segment), Done(self.part, segment=segment, epochs=epochs)
        )

    def _snapshot(self, held: _Held) -> Done:
        views = {name: held.session.relation(name) for name in self.job.shown(self.part)}
        base = Base.of(held.session)
        made = self._store.write_snapshot(self.part, held.epoch, base, views, self.job.how)
        before = self._store.manifest.snapshots
        if before and before[-1].epoch < held.epoch:
            held.segment = self._store.merge_segments(self.part, before[-1].epoch).name
        return self._keep(held, Done(self.part, segment=held.segment, snapshot=made))

    def _publish(self, held: _Held) -> Done:
        program = self.job.how.program
        tables = {
            f"{file_name(name)}/part-{self.part}.parquet": as_table(
                held.session.relation(name), program.relations[name], program.types
            )
            for name in self.job.shown(self.part)
        }
        folder = self.order.folder / "views" / f"{self.order.epoch:012d}"
        write_tables(folder, tables, part=f"-{self.part}")
        return self._keep(held, Done(self.part))

    def _keep(self, held: _Held, done: Done) -> Done:
        self.memory.held[self.part] = held
        stats = held.session.stats()
        return replace(done, table_bytes=stats["bytes"], values=stats["values"], value_bytes=stats["value_bytes"])

    def _current(self, held: _Held | None) -> _Held:
        """The session after the last committed epoch."""
        segment = self.order.segments[self.part]
        if held is not None and held.segment == segment:
            return held
        store = self._store
        if held is not None and self._has_happened(held, store):
            for entry in store.entries(self.part, held.epoch):
                held.session.apply(entry.updates, now=entry.now, checked=True)
            return _Held(held.session, self.order.epoch, segment)
        base = store.base_of(self.part)
        session = self._session(base.rows, base.windows)
        return _Held(session, self.order.epoch, segment)

    def _has_happened(self, held: _Held, store: PartedStore) -> bool:
        """Whether the session has come to an epoch that was committed, and is still known."""
        return held.epoch >= store.oldest_epoch and any(
            each.epochs[-1].epoch == held.epoch and each.segments[self.part] == held.segment
            for each in store.commits(store.oldest_epoch)
        )

    def _session(self, facts: Mapping[str, Iterable[Tuple]], windows: Windows | None = None) -> Session:
        program = self.job.how.program_of(self.part, self.order.parts)
        listed = {name: list(rows) for name, rows in facts.items()}
        prepared = prepare(
            program,
            wanted={*self.job.shown(self.part), *program.base_relations},
            strategy=self.job.strategy,
            sizes={name: len(rows) for name, rows in listed.items()},
            shared=self.memory.shared,
        )
        return Session(prepared, facts=listed, windows=windows, limits=self.job.limits)

    @property
    def _store(self) -> PartedStore:
        return PartedStore(self.order.folder, self.job.how.program, self.order.manifest, None)

    def _given(self) -> list[Entry]:
        data = (self.order.exchange / f"{self.part}.parquet").read_bytes()
        return decode_entries(data, self.job.how.program)

    def _shown(self, changes: Changes) -> Changes:
        names = self.job.shown(self.part)
        inserted = {name: changes.inserted[name] for name in names if name in changes.inserted}
        return Changes(inserted, {name: changes.deleted[name] for name in names if name in changes.deleted})

    def _work(self, entry: Entry, changes: Changes, shown: Changes, work: Work) -> EpochWork:
        program, columns = self.job.how.program, self.job.how.columns
        counted = {name for name in program.base_relations if self.part == 0 or name in columns}
        updates = sum(update.relation in counted for update in entry.updates)
        sides = (changes.inserted, changes.deleted)
        effective = sum(len(rows) for side in sides for name, rows in side.items() if name in counted)
        inserted, deleted = (
            Counter({name: len(rows) for name, rows in side.items()}) for side in (shown.inserted, shown.deleted)
        )
        return EpochWork(updates, effective, inserted, deleted, work)


@contextmanager
def _told() -> Iterator[list[tuple[type[Warning], str]]]:
    """What the driver is to warn of."""
    told: list[tuple[type[Warning], str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    told += [(each.category, str(each.message)) for each in caught if issubclass(each.category, _WORTH_TELLING)]
