"""Durable state: snapshots plus the log of epochs, in one folder.

An epoch counts once its segment of the log has its name; a snapshot once the manifest names it. Both appear by renaming, so
that at any instant the folder holds a state to go on from. Two snapshots and the log since the older one are kept at least:
if the newer snapshot cannot be read, the state is made from the older one.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from whence.io.updates import reported_writing
from whence.lang.load import Functions
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline import log, snapshots
from whence.pipeline.base import Base
from whence.pipeline.epochs import Position
from whence.pipeline.files import Damaged, StateError
from whence.pipeline.lock import StateLock
from whence.pipeline.log import Entry, Segment
from whence.pipeline.manifest import Manifest, read_manifest, write_manifest
from whence.pipeline.snapshots import Snapshot
from whence.session import Changes

SNAPSHOT_EVERY = 500
RETAIN = 1000
_ATTEMPTS = 5


class StateWarning(UserWarning):
    """Part of the state was damaged, and made again from what is whole."""


@dataclass(frozen=True)
class Recovered:
    """Where to go on: the base tuples, the last epoch and where it ended, and what sinks may not have received."""

    base: Base
    epoch: int
    source: Position
    undelivered: Sequence[tuple[int, Changes]]


class Store:
    """A state folder. `open` makes or continues one, alone; `read` looks at one that may be in use."""

    def __init__(self, folder: Path, program: Program, manifest: Manifest, lock: StateLock | None) -> None:
        self.folder = folder
        self.program = program
        self.manifest = manifest
        self.outputs = output_names(program)
        self._lock = lock
        self._log = folder / "log"
        self._snapshots = folder / "snapshots"

    @classmethod
    def open(cls, folder: Path, program: Program) -> Store:
        """Raises StateError if the folder is in use, is another program's, or is damaged beyond repair."""
        with reported_writing(folder):
            for part in ("log", "snapshots"):
                (folder / part).mkdir(parents=True, exist_ok=True)
        lock = StateLock(folder)
        try:
            return cls(folder, program, _manifest(folder, program), lock)
        except StateError:
            lock.release()
            raise

    @classmethod
    def read(cls, folder: Path, functions: Functions | None = None) -> Store:
        found = read_manifest(folder)
        if found is None:
            raise StateError([f"{folder} is no state folder: it has no manifest.json"])
        return cls(folder, found[0].program(functions), found[0], None)

    @property
    def is_new(self) -> bool:
        return not self.manifest.snapshots

    @property
    def segments(self) -> list[Segment]:
        return log.list_segments(self._log)

    @property
    def last_epoch(self) -> int:
        segments = self.segments
        return max(self.manifest.snapshots[-1].epoch, segments[-1].last if segments else 0)

    @property
    def oldest_epoch(self) -> int:
        """The first that `view_at` knows."""
        return self.manifest.snapshots[0].epoch

    # -- writing

    def append(self, entries: Sequence[Entry]) -> None:
        """Once it returns, the epochs have happened."""
        log.write_segment(self._log, entries, self.program)

    def begin(self, base: Base, views: Mapping[str, Sequence[Tuple]]) -> None:
        """Epoch 0: the state before the first update."""
        made = snapshots.write_snapshot(self._snapshots, base, views, self.program, epoch=0, source={})
        self._publish(self.manifest.with_snapshots((made,), delivered=-1))

    def snapshot(
        self, epoch: int, source: Position, base: Base, views: Mapping[str, Sequence[Tuple]], retain: int
    ) -> None:
        """Makes the state after `epoch`, which every sink has, the one to start from, and forgets what is older than wanted."""
        made = snapshots.write_snapshot(self._snapshots, base, views, self.program, epoch=epoch, source=source)
        listed = [*(each for each in self.manifest.snapshots if each.epoch < epoch), made]
        start = max((each.epoch for each in listed if each.epoch <= epoch - retain), default=0)
        kept = tuple(each for each in listed if each.epoch >= start or each in listed[-2:])
        self._publish(self.manifest.with_snapshots(kept, delivered=epoch))
        self._merge()
        self._remove_leftovers()

    def compact(self, retain: int) -> None:
        """A snapshot of the last epoch, and the log before it merged. Raises StateError if a sink may lack that epoch."""
        found = self.recover()
        if found.undelivered:
            problem = f"the changes of epoch {found.epoch} may not have arrived everywhere"
            raise StateError([problem], hints=["run the program on this state once more, then compact it"])
        if found.epoch > self.manifest.snapshots[-1].epoch:
            views = {name: list(self.view_at(name, found.epoch)) for name in self.outputs}
            self.snapshot(found.epoch, found.source, found.base, views, retain)

    def close(self, delivered: int | None = None) -> None:
        """Lets others in. `delivered` is an epoch that every sink has."""
        if self._lock is None:
            return
        if delivered is not None and not self.is_new and delivered != self.manifest.delivered:
            self._publish(self.manifest.with_snapshots(self.manifest.snapshots, delivered))
        self._lock.release()
        self._lock = None

    def _publish(self, manifest: Manifest) -> None:
        write_manifest(self.folder, manifest)
        self.manifest = manifest

    def _merge(self) -> None:
        """The epochs between two snapshots become one segment."""
        for older, newer in pairwise(each.epoch for each in self.manifest.snapshots):
            parts = [each for each in self.segments if each.first > older and each.last <= newer]
            if len(parts) > 1:
                entries = [entry for part in parts for entry in log.read_segment(self._log, part, self.program)]
                log.write_segment(self._log, entries, self.program)

    def _remove_leftovers(self) -> None:
        named = {each.name for each in self.manifest.snapshots}
        for path in self._snapshots.iterdir():
            if path.name not in named:
                shutil.rmtree(path)
        used = [each for each in self.segments if self.is_new or each.last > self.oldest_epoch]
        log.remove_leftovers(self._log, used)

    # -- reading

    def recover(self) -> Recovered:
        """The state after the last epoch. A snapshot that is damaged is passed over, with a warning. Raises Damaged."""
        if self._lock is not None:  # a run that goes on may be writing what looks like leftovers
            self._remove_leftovers()
        snapshot, base = self._newest_whole()
        last, source = snapshot.epoch, snapshot.source
        entries = self._entries(snapshot.epoch)
        for entry in entries:
            base.apply(entry.updates, entry.now)
            last, source = entry.epoch, entry.source
        # Sinks have an epoch before the next segment is written: only the last one can be missing.
        tail = self.segments[-1].first if entries else 0
        pending = [
            (each.epoch, each.changes) for each in entries if each.epoch >= max(tail, self.manifest.delivered + 1)
        ]
        if last == 0 > self.manifest.delivered:
            pending = [(0, Changes({name: list(self.view_at(name, 0)) for name in self.outputs}))]
        return Recovered(base, last, source, pending)

    def _newest_whole(self) -> tuple[Snapshot, Base]:
        for snapshot in reversed(self.manifest.snapshots):
            try:
                snapshots.check_snapshot(self._snapshots, snapshot)
                return snapshot, snapshots.read_base(self._snapshots, snapshot, self.program)
            except Damaged as error:
                if snapshot is self.manifest.snapshots[0]:
                    raise
                warnings.warn(f"{error.problems[0]}; using the snapshot before it", StateWarning, stacklevel=2)
                kept = tuple(each for each in self.manifest.snapshots if each.epoch < snapshot.epoch)
                self.manifest = self.manifest.with_snapshots(kept, self.manifest.delivered)
        raise AssertionError("a manifest names a snapshot")

    def _entries(self, after: int) -> list[Entry]:
        parts = log.chain(self._log, self.segments, after)
        entries = (entry for part in parts for entry in log.read_segment(self._log, part, self.program))
        return [entry for entry in entries if entry.epoch > after]

    def damages(self) -> Iterator[str]:
        """What is wrong with each file that is missing or not as it was written."""
        for snapshot in self.manifest.snapshots:
            try:
                snapshots.check_snapshot(self._snapshots, snapshot)
            except Damaged as error:
                yield error.problems[0]
        for segment in self.segments:
            try:
                log.read_segment(self._log, segment, self.program)
            except Damaged as error:
                yield error.problems[0]
        try:
            log.chain(self._log, self.segments, self.oldest_epoch)
        except Damaged as error:
            yield error.problems[0]

    def view_at(self, relation: str, epoch: int, *, start: Snapshot | None = None) -> set[Tuple]:
        """An output relation as it was after an epoch. Raises StateError if that is not retained, or has not happened.

        It is made from the newest snapshot before, or from the one given.
        """
        if relation not in self.outputs:
            raise StateError([f"{relation} is no output of the program; its outputs are {', '.join(self.outputs)}"])
        for attempt in range(_ATTEMPTS):
            try:
                return self._view_at(relation, epoch, start)
            except Damaged:
                # Who writes may have compacted meanwhile.
                found = read_manifest(self.folder)
                if found is None or found[0] == self.manifest or attempt == _ATTEMPTS - 1:
                    raise
                self.manifest = found[0]
        raise AssertionError("the last attempt raises")

    def _view_at(self, relation: str, epoch: int, given: Snapshot | None) -> set[Tuple]:
        if not self.oldest_epoch <= epoch <= self.last_epoch:
            problem = f"{self.folder} holds epochs {self.oldest_epoch} to {self.last_epoch}, not {epoch}"
            raise StateError([problem], hints=["a longer retention keeps more"])
        start = given or next(each for each in reversed(self.manifest.snapshots) if each.epoch <= epoch)
        rows = snapshots.read_view(self._snapshots, start, self.program.relations[relation], self.program.types)
        for part in log.chain(self._log, self.segments, start.epoch):
            if part.first > epoch:
                break
            for entry in log.read_segment(self._log, part, self.program):
                if start.epoch < entry.epoch <= epoch:
                    rows.difference_update(entry.changes.deleted.get(relation, ()))
                    rows.update(entry.changes.inserted.get(relation, ()))
        return rows


def _manifest(folder: Path, program: Program) -> Manifest:
    """The folder's, if it is the program's, or a new one."""
    found = read_manifest(folder)
    if found is None:
        if log.list_segments(folder / "log"):
            raise Damaged(folder / "manifest.json", "the file is missing, though there are epochs")
        return Manifest.of(program)
    manifest, problems = found
    for problem in problems:
        warnings.warn(problem, StateWarning, stacklevel=2)
    if not manifest.is_of(program):
        if manifest.text == program.source.text:
            recorded = ", ".join(manifest.record) or "nothing"
            hint = f"record {recorded} as before, or start anew with another folder"
            raise StateError(
                [f"{folder} holds the state of a run that records the derivations of {recorded}"], hints=[hint]
            )
        hint = "run the program it was made with, or start anew with another folder"
        raise StateError([f"{folder} holds the state of another program: {manifest.name}"], hints=[hint])
    return manifest


def output_names(program: Program) -> tuple[str, ...]:
    """The relations whose changes are told: those with `.output`, or every derived one if there are none."""
    named = tuple(dict.fromkeys(each.relation for each in program.transfers_of("output")))
    base = set(program.base_relations)
    return named or tuple(name for name in program.relations if name not in base)
