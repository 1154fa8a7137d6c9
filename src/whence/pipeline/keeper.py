"""A program's views kept current, with everything that follows from an epoch: durable state, sinks, figures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from threading import RLock
from typing import Protocol

import pyarrow as pa

from whence.constraints import Broken, ConstraintError
from whence.engine.profile import Profile, waited
from whence.engine.windows import Windows
from whence.io.changes import Changes, Epoch, Position
from whence.lang.bags import with_copies
from whence.lang.program import Program, output_names
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.pipeline.base import Base
from whence.pipeline.files import StateError
from whence.pipeline.folder import Store
from whence.pipeline.kept import Kept, keep, read_kept
from whence.pipeline.log import Entry
from whence.pipeline.metrics import MetricsFile
from whence.pipeline.options import RunOptions
from whence.pipeline.publish import Publisher
from whence.pipeline.report import EpochReport
from whence.pipeline.snapshots import as_table
from whence.pipeline.store import WholeStore
from whence.plan.record import RecordedProgram
from whence.prepared import Prepared, prepare
from whence.session import Session, SessionStats
from whence.view import View


class Keeper(Protocol):
    """Keeps the views of a program current: applies epochs in order, makes them durable, and hands their changes to the sinks."""

    program: Program
    outputs: tuple[str, ...]
    epoch: int
    source: Position
    sizes: Counter[str]

    @property
    def session(self) -> Session:
        """Raises StateError if the state is in parts: no session has all of it."""
        ...

    def apply(self, epochs: Iterable[Epoch]) -> list[EpochReport]:
        """Applies epochs and makes them durable together. What an epoch raises is raised once those before it are safe."""
        ...

    def view(self, name: str) -> set[Tuple]:
        """The tuples of a relation after the last epoch."""
        ...

    def view_at(self, name: str, epoch: int) -> set[Tuple]:
        """The tuples of an output relation after an epoch that is still retained. Raises StateError."""
        ...

    def snapshot(self) -> None: ...

    def stats(self) -> SessionStats: ...

    def outgrown(self, limit: int) -> Store | None:
        """The store, if it holds the last epoch as a snapshot that has more rows than one process is to keep."""
        ...

    def hand_over(self) -> None:
        """Another keeper goes on from the state on disk."""
        ...

    def close(self, *, delivered: bool = True) -> None:
        """After the last epoch. Sinks that have all of it need not be given the end of it again; all of them are closed."""
        ...


class ResidentKeeper:
    """In the memory of this process. An epoch is evaluated, made durable, and handed to the sinks, before the next segment is.

    A program that records derivations is explained by the rules it was made from. Without a store nothing is durable. With one, a
    keeper goes on where the one before stopped, however it stopped; `facts` are only for the first.
    """

    def __init__(
        self,
        program: Program,
        options: RunOptions = RunOptions(),  # noqa: B008 - immutable
        *,
        store: WholeStore | None = None,
        facts: Mapping[str, Iterable[Tuple]] | None = None,
    ) -> None:
        self.program = program
        self.outputs = output_names(program)
        rules, record = (program.plain, program.record) if isinstance(program, RecordedProgram) else (program, ())
        shown = None if options.wanted is None else rules.relations.keys() & with_copies(program, options.wanted)
        strategy, limits, profile = options.strategy, options.limits, options.profile
        self.lock = RLock()
        self.store = store
        self._options = options
        self.epoch = 0
        self.source: Position = {}
        if store is None or store.is_new:
            self.session = Session(
                rules, facts=facts, wanted=shown, record=record, strategy=strategy, limits=limits, profile=profile
            )
            initial = self._shown(self.session.initial)
            if store is not None:
                store.begin(Base.of(self.session), self._views())
            undelivered: Sequence[tuple[int, Changes]] = [(0, initial)]
        else:
            found = store.recover()
            sizes = {name: len(rows) for name, rows in found.base.rows.items()}
            prepared = prepare(rules, wanted=shown, strategy=strategy, record=record, sizes=sizes)
            self.session = left_by(store, prepared, found.base.windows, limits, profile) or Session(
                prepared, facts=found.base.rows, windows=found.base.windows, limits=limits, profile=profile
            )
            self.epoch, self.source = found.epoch, found.source
            undelivered = (
                found.undelivered if found.epoch else [(epoch, self._everything()) for epoch, _ in found.undelivered]
            )
        self._follower = None if options.follow is None else options.follow(self.session)
        self.sizes = Counter({name: len(self.session.relation(name)) for name in self.outputs})
        for epoch, changes in undelivered:
            self._deliver(epoch, changes)
        self._metrics = None if store is None else MetricsFile(store.folder)
        self._publisher = None if store is None else Publisher(store.folder, self._published)

    def apply(self, epochs: Iterable[Epoch]) -> list[EpochReport]:
        with self.lock:
            entries: list[Entry] = []
            reports: list[EpochReport] = []
            changes: list[Changes] = []
            try:
                for each in epochs:
                    entry, report, changed = self._evaluate(each, self.epoch + len(entries) + 1)
                    entries.append(entry)
                    reports.append(report)
                    changes.append(changed)
            finally:
                if entries:
                    self._commit(entries, reports, changes)
            return reports

    def view(self, name: str) -> set[Tuple]:
        with self.lock:
            return set(self.session.relation(name))

    def view_at(self, name: str, epoch: int) -> set[Tuple]:
        if self.store is None:
            raise StateError(["without a state folder only the last epoch is known"])
        return self.store.view_at(name, epoch)

    def snapshot(self) -> None:
        with self.lock:
            if self.store is not None and not self.has_snapshot:
                self.store.snapshot(self.epoch, self.source, Base.of(self.session), self._views(), self._options.retain)

    @property
    def has_snapshot(self) -> bool:
        """Whether the state on disk holds the last epoch as a snapshot."""
        return self.store is not None and self.epoch == self.store.manifest.snapshots[-1].epoch

    def stats(self) -> SessionStats:
        return self.session.stats()

    def close(self, *, delivered: bool = True) -> None:
        with ExitStack() as last:
            for sink in self._options.sinks:
                last.callback(sink.close)
            if self._publisher is not None:
                self._publisher.close()
            if self.store is not None:
                if delivered and self.store.lock is not None and not self.store.tables.exists():
                    leave(self.store, self.session)
                self.store.close(self.epoch if delivered else None)

    def outgrown(self, limit: int) -> Store | None:
        return self.store if self.store is not None and self.has_snapshot and self.store.rows() > limit else None

    def hand_over(self) -> None:
        """The session is let go, whoever still has this one."""
        if self._publisher is not None:
            self._publisher.close()
        del self.session

    def _views(self) -> dict[str, View]:
        return {name: self.session.relation(name) for name in self.outputs}

    def _published(self) -> tuple[int, dict[str, pa.Table]]:
        relations, types = self.program.relations, self.program.types
        with self.lock:
            tables = {name: as_table(view, relations[name], types) for name, view in self._views().items()}
            return self.epoch, tables

    def _evaluate(self, given: Epoch, number: int) -> tuple[Entry, EpochReport, Changes]:
        started = time.perf_counter()
        updates = self.session.admit(given.updates, _refusing(given))
        changes = self.session.apply(updates, now=given.now, checked=True)
        shown = self._shown(changes)
        for name in self.outputs:
            self.sizes[name] += len(shown.inserted.get(name, ())) - len(shown.deleted.get(name, ()))
        switches = () if self._follower is None else tuple(map(str, self._follower.after_epoch()))
        report = EpochReport(
            epoch=number,
            updates=len(updates),
            no_ops=changes.ignored,
            inserted=sum(len(shown.inserted.get(name, ())) for name in self.outputs),
            deleted=sum(len(shown.deleted.get(name, ())) for name in self.outputs),
            rounds=self.session.last_epoch["rounds"],
            seconds=time.perf_counter() - started,
            tuples=dict(self.sizes),
            state_bytes=sum(self.session.stats()["bytes"].values()),
            switches=switches,
        )
        return Entry(number, updates, shown, given.now, given.source), report, changes

    def _commit(self, entries: Sequence[Entry], reports: Sequence[EpochReport], changes: Sequence[Changes]) -> None:
        if self.store is not None:
            with waited(self._options.profile, "state"):
                self.store.append(entries)
        self.epoch, self.source = entries[-1].epoch, entries[-1].source
        for entry, report, changed in zip(entries, reports, changes, strict=True):
            self._deliver(entry.epoch, entry.changes)
            if self._options.on_epoch is not None:
                self._options.on_epoch(report)
            if self._options.on_changes is not None:
                self._options.on_changes(report, changed)
        if self._metrics is not None:
            self._metrics.add(reports)
        if self._publisher is not None:
            self._publisher.notify()
        if (
            self.store is not None
            and self.epoch >= self.store.manifest.snapshots[-1].epoch + self._options.snapshot_every
        ):
            with waited(self._options.profile, "state"):
                self.snapshot()

    def _shown(self, changes: Changes) -> Changes:
        """Those of the output relations, and of what says how often rows of a bag are there."""
        names = with_copies(self.program, self.outputs)
        inserted = {name: changes.inserted[name] for name in names if name in changes.inserted}
        deleted = {name: changes.deleted[name] for name in names if name in changes.deleted}
        return Changes(inserted, deleted, changes.ignored)

    def _everything(self) -> Changes:
        """What the first epoch brought, while there is no other."""
        names = with_copies(self.program, self.outputs)
        return Changes({name: rows for name in names if (rows := list(self.session.relation(name)))})

    def _deliver(self, epoch: int, changes: Changes) -> None:
        with waited(self._options.profile, "sinks"):
            for sink in self._options.sinks:
                sink.write(epoch, changes)


def _refusing(given: Epoch) -> Callable[[Broken], None]:
    def refuse(broken: Broken) -> None:
        if given.refuse is None:
            raise ConstraintError(broken, f"update {broken.at + 1}")
        given.refuse(broken.at, str(broken))

    return refuse


def leave(store: WholeStore, session: Session) -> None:
    """Leaves the tables of the last epoch to whoever goes on from there."""
    wanted = session.prepared.wanted
    keep(store.tables, session, {"mark": store.mark, "wanted": None if wanted is None else [*sorted(wanted)]})


def left_by(
    store: WholeStore, prepared: Prepared, windows: Windows, limits: Limits, profile: Profile | None
) -> Session | None:
    """A session from the tables that the last run left, if it did and they are of its last epoch and of this program."""
    kept = tables_left(store)
    return None if kept is None else kept.session(prepared, windows=windows, limits=limits, profile=profile)


def tables_left(store: WholeStore) -> Kept | None:
    kept = read_kept(store.tables)
    if kept is None or kept.of["mark"] == store.mark:
        return kept
    store.tables.unlink(missing_ok=True)
    return None
