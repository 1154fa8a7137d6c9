"""What a worker does for parts of the state, with sessions that it remembers or that it makes from files.

Python workers outlive tasks and their memory stays, but Spark gives a task to any of them. So a task does not come with its
parts: it claims them, first those that its worker remembers. A claim is a link that only one task can make. From then on the
worker answers for the parts itself.

Nothing rests on what is remembered. A session is used if it has come to the segment that was committed last. If it has come to
an earlier one, it catches up; otherwise it is made anew.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from threading import RLock

from pyspark import cloudpickle

from whence.backends.local import parallel
from whence.backends.local.shared import Shared
from whence.engine.windows import Windows
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.log import Entry
from whence.pipeline.manifest import Manifest
from whence.pipeline.options import Follower
from whence.pipeline.parts.calls import Address, Office
from whence.pipeline.parts.orders import EXPECTED, Action, Done, Hint, Job, PartFiles, told_warnings
from whence.pipeline.parts.store import PartedStore
from whence.prepared import prepare
from whence.session import Session

CLAIMS = "claims"


@dataclass
class _Held:
    """A session, the epoch and the segment it has come to."""

    session: Session
    epoch: int
    segment: str
    follower: Follower | None = None


@dataclass
class _Memory:
    """What a worker remembers of a run: the sessions of parts, and the words of values, which are the same in all of them."""

    job: Job
    held: dict[int, _Held] = field(default_factory=dict)
    shared: Shared = field(default_factory=Shared)
    office: Office | None = None


_remembered: dict[tuple[str, str], _Memory] = {}
_lock = RLock()  # one thing at a time happens to the parts of a worker


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
    hints: Sequence[Hint] = ()  # by epoch given

    def __call__(self, index: int) -> list[Done]:
        """What the task with this number does."""
        with _lock:
            # One run at a time uses a folder.
            for key in [key for key in _remembered if key[0] == str(self.folder) and key[1] != self.run]:
                office = _remembered.pop(key).office
                if office is not None:
                    office.close()
            if self._key not in _remembered:
                _remembered[self._key] = _Memory(cloudpickle.loads(self.job))
            memory = _remembered[self._key]
            held = memory.held
            claimed = self._claimed(index, list(held))
            others = [part for part in held if part not in claimed]
            for part in others[: max(0, len(others) + len(claimed) - self._quota)]:
                del held[part]  # first, since there may not be room for more than that
            return self._done(claimed, memory)

    def by_memory(self, parts: Sequence[int]) -> list[Done] | None:
        """The same for parts that the worker remembers; None if it does not."""
        with _lock:
            memory = _remembered.get(self._key)
            if memory is None or any(part not in memory.held for part in parts):
                return None
            return self._done(parts, memory)

    def to_who_knows_the_job(self) -> Order:
        return replace(self, job=b"")

    def _done(self, parts: Sequence[int], memory: _Memory) -> list[Done]:
        # Other tasks have the other cores.
        with parallel.on_one_core() if self.tasks > 1 else nullcontext():
            return [_Task(self, memory.job, part, memory).done() for part in parts]

    @property
    def _key(self) -> tuple[str, str]:
        return str(self.folder), self.run

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


@dataclass(frozen=True)
class Call:
    """An order for parts that a worker remembers."""

    order: Order
    parts: Sequence[int]

    def answered(self) -> list[Done] | None:
        return self.order.by_memory(self.parts)


def at_home(order: Order, secret: bytes, host: str, index: int) -> list[tuple[Address, Done]]:
    """What a task does, and where its worker answers for the parts from now on, to who knows the secret."""
    with _lock:
        done = order(index)
        memory = _remembered[str(order.folder), order.run]
        if memory.office is None:
            memory.office = Office(secret, host or socket.gethostname(), Call.answered)
        return [(memory.office.address, each) for each in done]


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
        with told_warnings() as told:
            try:
                done = self._act(held)
            except EXPECTED as error:
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
        held = self._held(self._session(facts), 0, "")
        return self._snapshot(held)

    def _apply(self, held: _Held) -> Done:
        files = self._files
        entries, epochs = [], []
        for entry in self._given():
            try:
                changes = held.session.apply(entry.updates, now=entry.now, checked=True)
            except EXPECTED as error:
                return Done(self.part, failed=entry.epoch, error=error)
            shown = files.shown(changes)
            entries.append(replace(entry, changes=shown))
            epochs.append(files.work(entry, changes, shown, held.session.last_epoch, held.follower))
        segment = self._store.write_segment(self.part, entries).name
        return self._keep(
            replace(held, epoch=entries[-1].epoch, segment=segment), Done(self.part, segment=segment, epochs=epochs)
        )

    def _snapshot(self, held: _Held) -> Done:
        made, segment = self._files.snapshot(held.session, held.epoch)
        held.segment = held.segment if segment is None else segment
        return self._keep(held, Done(self.part, segment=held.segment, snapshot=made))

    def _publish(self, held: _Held) -> Done:
        self._files.publish(held.session, self.order.epoch)
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
            return replace(held, epoch=self.order.epoch, segment=segment)
        base = store.base_of(self.part)
        session = self._session(base.rows, base.windows)
        return self._held(session, self.order.epoch, segment)

    def _has_happened(self, held: _Held, store: PartedStore) -> bool:
        """Whether the session has come to an epoch that was committed, and is still known."""
        return held.epoch >= store.oldest_epoch and any(
            each.epochs[-1].epoch == held.epoch and each.segments[self.part] == held.segment
            for each in store.commits(store.oldest_epoch)
        )

    def _held(self, session: Session, epoch: int, segment: str) -> _Held:
        return _Held(session, epoch, segment, None if self.job.follow is None else self.job.follow(session))

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

    @property
    def _files(self) -> PartFiles:
        return PartFiles(self._store, self.job, self.part)

    def _given(self) -> list[Entry]:
        return self._files.given(self.order.exchange)
