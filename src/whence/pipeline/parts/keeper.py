"""A program's views kept current by tasks, each of which has some parts of the state.

An epoch is routed: every part gets the updates of its rows, of what all parts have, and the clock. It has happened when all parts
have written their segments and the commit that names them is there. A crash before that leaves nothing that counts.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark import cloudpickle

from whence.backends.spark.ship import ship_by_value
from whence.io.changes import Changes, Epoch, Position, Update
from whence.io.updates import reported_writing
from whence.lang.types import Tuple
from whence.pipeline.failures import BatchFailed
from whence.pipeline.files import StateError
from whence.pipeline.folder import Store
from whence.pipeline.log import Entry, encode_entries
from whence.pipeline.metrics import MetricsFile
from whence.pipeline.options import RunOptions
from whence.pipeline.parts.commits import Header, PartsCommit
from whence.pipeline.parts.on_spark import Run
from whence.pipeline.parts.orders import Action, Done, EpochWork, Hint, Job
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.parts.worker import CLAIMS, Order
from whence.pipeline.publish import SHARE, publish
from whence.pipeline.report import EpochReport
from whence.session import Session, SessionStats, Work

if TYPE_CHECKING:
    pass

# Spark ends workers that have had nothing to do for a minute, and what they remember is gone with them.
NAP = 20.0


class PartedKeeper:
    """Keeps a state in parts, which `tasks` tasks share.

    With a `nap`, workers get a task every so many seconds.
    """

    def __init__(
        self,
        store: PartedStore,
        run: Run,
        options: RunOptions = RunOptions(),  # noqa: B008 - immutable
        *,
        tasks: int,
        nap: float | None = None,
        facts: Mapping[str, Iterable[Tuple]] | None = None,
    ) -> None:
        self.program = store.program
        self.outputs = store.outputs
        self.lock = RLock()
        self.workers: dict[int, str] = {}  # who has which part
        self._store = store
        self._run = run
        self._tasks = min(tasks, store.parts)
        self._options = options
        self._how = store.partitioning
        ship_by_value(self.program.functions.values())
        job = Job(self._how, self.outputs, options.strategy, options.limits, options.follow)
        self._job = cloudpickle.dumps(job)  # type: ignore[no-untyped-call]
        self._id = uuid4().hex
        self._warned: set[str] = set()
        self._stats: Work = {"rounds": 0, "derivations": 0, "suspended": 0, "rederived": 0, "seconds": {}}
        self._bytes = Counter[str]()
        self._values = self._value_bytes = 0
        self.epoch = 0
        self.source: Position = {}
        self.sizes: Counter[str] = Counter(dict.fromkeys(self.outputs, 0))
        self._segments: Sequence[str] = [""] * store.parts
        self._recover(facts or {})
        self._metrics = MetricsFile(store.folder)
        self._next_publication = 0.0
        self._publish()
        self._closing = Event()
        if nap is not None:
            Thread(target=self._keep_awake, args=(nap,), daemon=True).start()

    def _recover(self, facts: Mapping[str, Iterable[Tuple]]) -> None:
        store = self._store
        shutil.rmtree(self._exchange, ignore_errors=True)
        store.remove_leftovers()
        if store.is_new:
            self._begin(facts)
        else:
            store.refuse_lost_epochs()
            snapshot, last = store.manifest.snapshots[-1], store.last_commit()
            self.epoch, self.source = store.last_epoch, snapshot.source
            if last is not None and last.epochs[-1].epoch == self.epoch:
                self.source, self._segments = last.epochs[-1].source, last.segments
        self.sizes = Counter(store.sizes())
        if self._options.sinks:
            for epoch, changes in store.undelivered():
                self._deliver(epoch, changes)

    def _begin(self, facts: Mapping[str, Iterable[Tuple]]) -> None:
        given = [Update("+", name, row) for name, rows in facts.items() for row in rows]
        done = self._carry_out(Action.BEGIN, [Entry(0, given, Changes())])
        _raise_first(done)
        written = [each.snapshot for each in done if each.snapshot is not None]
        self._store.publish_snapshots(written, {}, None, delivered=-1, retain=self._options.retain)

    @property
    def session(self) -> Session:
        raise StateError(["the state is in parts: there is no session with all of it"])

    def outgrown(self, limit: int) -> Store | None:  # noqa: ARG002 - each part is kept by another process
        return None

    def hand_over(self) -> None:
        raise AssertionError("a state in parts stays in parts")

    def apply(self, epochs: Iterable[Epoch]) -> list[EpochReport]:
        with self.lock:
            given: list[Epoch] = []
            reports: list[EpochReport] = []
            try:
                given.extend(epochs)
            finally:
                if given:
                    reports = self._apply(given)
            return reports

    def _apply(self, given: Sequence[Epoch]) -> list[EpochReport]:
        started = time.perf_counter()
        entries = [
            Entry(number, each.updates, Changes(), _clock(each), each.source)
            for number, each in enumerate(given, self.epoch + 1)
        ]
        done = self._carry_out(Action.APPLY, entries)
        failures = [each for each in done if each.error is not None]
        if failures:
            good = min(each.failed for each in failures) - entries[0].epoch
            if good:
                self._apply(given[:good])
            _raise_first(failures)
        return self._commit(entries, done, started)

    def _commit(self, entries: Sequence[Entry], done: Sequence[Done], started: float) -> list[EpochReport]:
        works = [_together(parts) for parts in zip(*(each.epochs for each in done), strict=True)]
        sizes = Counter(self.sizes)
        headers, counted = [], []
        for entry, work in zip(entries, works, strict=True):
            sizes.update(work.inserted)
            sizes.subtract(work.deleted)
            counted.append(dict(sizes))
            headers.append(Header(entry.epoch, entry.now, entry.source, max(0, work.updates - work.effective)))
        segments = [each.segment for each in done]
        self._store.commit(PartsCommit(headers, segments, counted[-1]))
        self.epoch, self.source, self._segments, self.sizes = entries[-1].epoch, entries[-1].source, segments, sizes
        seconds = (time.perf_counter() - started) / len(entries)
        reports = [
            EpochReport(
                epoch=header.epoch,
                updates=len(entry.updates),
                no_ops=header.ignored,
                inserted=work.inserted.total(),
                deleted=work.deleted.total(),
                rounds=work.work["rounds"],
                seconds=seconds,
                tuples=tuples,
                state_bytes=self._bytes.total(),
                exchanges=work.exchanges,
                shipped=work.shipped,
                shipped_bytes=work.shipped_bytes,
                switches=work.switches,
            )
            for entry, header, work, tuples in zip(entries, headers, works, counted, strict=True)
        ]
        self._after_commit(entries[0].epoch, works, reports)
        return reports

    def _after_commit(self, first: int, works: Sequence[EpochWork], reports: Sequence[EpochReport]) -> None:
        for work in works:
            self._stats = _added(self._stats, work.work)
        if self._options.sinks:
            for epoch, changes in self._store.changes(first - 1):
                self._deliver(epoch, changes)
        if self._options.on_epoch is not None:
            for report in reports:
                self._options.on_epoch(report)
        self._metrics.add(reports)
        if time.monotonic() >= self._next_publication:
            self._publish()
        if self.epoch >= self._store.manifest.snapshots[-1].epoch + self._options.snapshot_every:
            self.snapshot()

    def view(self, name: str) -> set[Tuple]:
        """All parts of it, which may not fit."""
        return self.view_at(name, self.epoch)

    def view_at(self, name: str, epoch: int) -> set[Tuple]:
        with self.lock:
            return self._store.view_at(name, epoch)

    def snapshot(self) -> None:
        with self.lock:
            before = self._store.manifest.snapshots[-1].epoch
            if self.epoch == before:
                return
            done = self._carry_out(Action.SNAPSHOT)
            _raise_first(done)
            self._segments = [each.segment for each in done]
            merged = self._store.merged(before, self._segments)
            written = [each.snapshot for each in done if each.snapshot is not None]
            self._store.publish_snapshots(
                written, self.source, merged, delivered=self.epoch, retain=self._options.retain
            )

    def stats(self) -> SessionStats:
        """What has been done since the keeper began, in all parts, and what their tables take."""
        return {
            **self._stats,
            "epochs": self.epoch,
            "bytes": dict(self._bytes),
            "values": self._values,
            "value_bytes": self._value_bytes,
        }

    def close(self, *, delivered: bool = True) -> None:
        with self.lock, ExitStack() as last:
            for sink in self._options.sinks:
                last.callback(sink.close)
            self._closing.set()
            if delivered:
                self._publish()
            self._store.close(self.epoch if delivered else None)

    # -- tasks

    @property
    def _exchange(self) -> Path:
        return self._store.folder.resolve() / "exchange"

    def _carry_out(self, action: Action, entries: Sequence[Entry] = ()) -> list[Done]:
        """What became of the parts, in order."""
        own = self._exchange / uuid4().hex
        with reported_writing(own):
            (own / CLAIMS).mkdir(parents=True)
            if entries:
                for part, routed in enumerate(self._routed(entries)):
                    (own / f"{part}.parquet").write_bytes(encode_entries(routed, self.program))
        order = Order(
            run=self._id,
            folder=self._store.folder.resolve(),
            manifest=self._store.manifest,
            exchange=own,
            job=self._job,
            action=action,
            parts=self._store.parts,
            tasks=self._tasks,
            epoch=self.epoch,
            segments=self._segments,
            hints=[self._hint(entry) for entry in entries],
        )
        done = {each.part: each for each in self._run(order)}
        shutil.rmtree(own, ignore_errors=True)
        found = [done[part] for part in range(self._store.parts)]
        self.workers = {each.part: each.worker for each in found}
        self._tell(found)
        sizes = Counter[str]()
        for each in found:
            sizes.update(each.table_bytes)
        self._bytes = sizes
        # The parts of a worker share their values, of which there are more from part to part.
        values, value_bytes = Counter[str](), Counter[str]()
        for each in found:
            values |= Counter({each.worker: each.values})
            value_bytes |= Counter({each.worker: each.value_bytes})
        self._values, self._value_bytes = values.total(), value_bytes.total()
        return found

    def _keep_awake(self, nap: float) -> None:
        while not self._closing.wait(nap):
            with self.lock:
                if self._closing.is_set():
                    return
                try:
                    self._carry_out(Action.RECALL)
                except BatchFailed:
                    return  # the next epoch fails too, and says so

    def _routed(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """The entries of each part."""
        parts = self._store.parts
        routed: list[list[Entry]] = [[] for _ in range(parts)]
        for entry in entries:
            updates: list[list[Update]] = [[] for _ in range(parts)]
            for update in entry.updates:
                part = self._how.part(update.relation, update.tuple, parts)
                for own in updates if part is None else updates[part : part + 1]:
                    own.append(update)
            for own_entries, own in zip(routed, updates, strict=True):
                own_entries.append(Entry(entry.epoch, own, Changes(), entry.now))
        return routed

    def _hint(self, entry: Entry) -> Hint:
        relations = self.program.relations
        forgetful = {name for name, each in relations.items() if each.window is not None or each.lifetime is not None}
        touched = forgetful.union(update.relation for update in entry.updates)
        return Hint(frozenset(touched), not forgetful and all(update.op == "+" for update in entry.updates))

    def _tell(self, done: Sequence[Done]) -> None:
        for category, text in (warning for each in done for warning in each.warnings):
            if text not in self._warned:
                self._warned.add(text)
                warnings.warn(text, category, stacklevel=2)

    def _publish(self) -> None:
        started = time.monotonic()

        def write(_: Path) -> None:
            _raise_first(self._carry_out(Action.PUBLISH))

        publish(self._store.folder, self.epoch, write)
        self._next_publication = time.monotonic() + (time.monotonic() - started) / SHARE

    def _deliver(self, epoch: int, changes: Changes) -> None:
        for sink in self._options.sinks:
            sink.write(epoch, changes)


def _clock(epoch: Epoch) -> float | None:
    """What the clock moves to: parts that do not get the latest update have to know of it."""
    times = [update.time for update in epoch.updates if update.time is not None]
    return max([*times, *([] if epoch.now is None else [epoch.now])], default=None)


def _together(parts: Sequence[EpochWork]) -> EpochWork:
    """What an epoch did in all parts. They work at the same time: the rounds are those of the slowest."""
    return EpochWork(
        updates=sum(each.updates for each in parts),
        effective=sum(each.effective for each in parts),
        inserted=_sum(each.inserted for each in parts),
        deleted=_sum(each.deleted for each in parts),
        work={**reduce(_added, (each.work for each in parts)), "rounds": max(each.work["rounds"] for each in parts)},
        exchanges=max(each.exchanges for each in parts),
        shipped=sum(each.shipped for each in parts),
        shipped_bytes=sum(each.shipped_bytes for each in parts),
        switches=tuple(switch for each in parts for switch in each.switches),
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return total


def _added(one: Work, other: Work) -> Work:
    phases = {*one["seconds"], *other["seconds"]}
    return {
        "rounds": one["rounds"] + other["rounds"],
        "derivations": one["derivations"] + other["derivations"],
        "suspended": one["suspended"] + other["suspended"],
        "rederived": one["rederived"] + other["rederived"],
        "seconds": {name: one["seconds"].get(name, 0.0) + other["seconds"].get(name, 0.0) for name in phases},
    }


def _raise_first(done: Iterable[Done]) -> None:
    """What a task could not do."""
    failed = min((each for each in done if each.error is not None), key=lambda each: each.failed, default=None)
    if failed is not None and failed.error is not None:
        raise failed.error
