"""Durable state: snapshots plus the log of epochs, in one folder.

An epoch counts once its segment of the log has its name; a snapshot once the manifest names it. Both appear by renaming, so
that at any instant the folder holds a state to go on from. Two snapshots and the log since the older one are kept at least:
if the newer snapshot cannot be read, the state is made from the older one.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from whence.io.changes import Changes, Epoch, Position
from whence.io.json_text import Json
from whence.lang.load import Functions
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline import log, snapshots
from whence.pipeline.base import Base
from whence.pipeline.carry import Defaults, carried
from whence.pipeline.files import Damaged, StateError, StateWarning, checksum
from whence.pipeline.folder import Deliver, Piece, Store, lock_folder, look_into
from whence.pipeline.log import Entry, Segment
from whence.pipeline.manifest import Manifest
from whence.pipeline.snapshots import Rows, Snapshot

if TYPE_CHECKING:
    from whence.pipeline.parts.store import PartedStore


@dataclass(frozen=True)
class Recovered:
    """Where to go on: the base tuples, the last epoch and where it ended, and what sinks may not have received."""

    base: Base
    epoch: int
    source: Position
    undelivered: Sequence[tuple[int, Changes]]


class WholeStore(Store):
    """A state in one piece. `open` makes or continues one, alone; `read` looks at one that may be in use."""

    @classmethod
    def open(cls, folder: Path, program: Program) -> WholeStore:
        """Raises StateError if the folder is in use, is another program's, is in parts, or is damaged beyond repair."""
        manifest, lock = lock_folder(folder, program)
        if manifest.parts is not None:
            lock.release()
        return cls(folder, program, _in_one_piece(folder, manifest), lock)

    @classmethod
    def read(cls, folder: Path, functions: Functions | None = None) -> WholeStore:
        manifest = _in_one_piece(folder, look_into(folder))
        return cls(folder, manifest.program(functions), manifest, None)

    @property
    def parts(self) -> None:
        return None

    def whole(self) -> WholeStore:
        return self

    def in_parts(self, parts: int, deliver: Deliver) -> PartedStore:
        from whence.pipeline.parts.take_apart import take_apart  # noqa: PLC0415 - it makes the one of the other

        return take_apart(self, parts, deliver)

    @property
    def segments(self) -> list[Segment]:
        return log.list_segments(self._log)

    # -- writing

    def append(self, entries: Sequence[Entry]) -> None:
        """Once it returns, the epochs have happened."""
        log.write_segment(self._log, entries, self.program)
        self.tables.unlink(missing_ok=True)  # they are those of an earlier epoch now

    @property
    def tables(self) -> Path:
        """Where a run that ends leaves its tables to the next (see `kept`)."""
        return self.folder / "tables.image"

    @property
    def mark(self) -> list[Json]:
        """What the last epoch is known by: no other history has the same."""
        newest = self.manifest.snapshots[-1]
        behind: list[Json] = [each.name for each in self.segments if each.last > newest.epoch]
        return [self.last_epoch, checksum(json.dumps(newest.as_json(), sort_keys=True).encode()), *behind]

    def begin(self, base: Base, views: Mapping[str, Rows]) -> None:
        """Epoch 0: the state before the first update."""
        made = snapshots.write_snapshot(self._snapshots, base, views, self.program, epoch=0, source={})
        self._publish(self.manifest.with_snapshots((made,), delivered=-1))

    def snapshot(self, epoch: int, source: Position, base: Base, views: Mapping[str, Rows], retain: int) -> None:
        """Makes the state after `epoch`, which every sink has, the one to start from, and forgets what is older than wanted."""
        made = snapshots.write_snapshot(self._snapshots, base, views, self.program, epoch=epoch, source=source)
        self._publish(self.manifest.with_snapshots(self._retained(made, retain), delivered=epoch))
        self.tables.unlink(missing_ok=True)  # a snapshot is part of what they are known by
        self._merge()
        self._remove_leftovers()

    def change(self, program: Program, base: Base, views: Mapping[str, Rows], defaults: Defaults) -> None:
        """An epoch in which the program becomes another one. It has happened once the manifest is the new one.

        The folder is the new program's then, and this store of no more use.
        """
        found = self.recover()
        last = found.epoch
        if last > self.manifest.snapshots[-1].epoch:
            kept = {name: list(self.view_at(name, last)) for name in self.outputs}
            made = snapshots.write_snapshot(
                self._snapshots, found.base, kept, self.program, epoch=last, source=found.source
            )
            self._publish(self.manifest.with_snapshots((*self.manifest.snapshots, made), self.manifest.delivered))
        made = snapshots.write_snapshot(self._snapshots, base, views, program, epoch=last + 1, source=found.source)
        now = self.manifest.now_of(program, last, defaults)
        self._publish(replace(now, snapshots=(*self.manifest.snapshots, made)))

    def compact(self, retain: int) -> None:
        found = self.recover()
        if found.undelivered:
            problem = f"the changes of epoch {found.epoch} may not have arrived everywhere"
            raise StateError([problem], hints=["run the program on this state once more, then compact it"])
        if found.epoch > self.manifest.snapshots[-1].epoch:
            views = {name: list(self.view_at(name, found.epoch)) for name in self.outputs}
            self.snapshot(found.epoch, found.source, found.base, views, retain)

    def _merge(self) -> None:
        """The epochs between two snapshots become one segment."""
        for older, newer in pairwise(each.epoch for each in self.manifest.snapshots):
            parts = [each for each in self.segments if each.first > older and each.last <= newer]
            if len(parts) > 1:
                entries = [entry for part in parts for entry in self._read(part)]
                log.write_segment(self._log, entries, self.program_at(newer))

    def _remove_leftovers(self) -> None:
        snapshots.remove_others(self._snapshots, self.manifest.snapshots)
        used = [each.name for each in self.segments if self.is_new or each.last > self.oldest_epoch]
        log.remove_leftovers(self._log, used)

    # -- reading

    def sizes(self) -> Mapping[str, int]:
        return {name: len(self.view_at(name, self.last_epoch)) for name in self.outputs}

    def rows(self) -> int:
        newest = self.manifest.snapshots[-1]
        views = (snapshots.count_view(self._snapshots, newest, name) for name in self.outputs)
        return newest.tuples + sum(views)

    def recover(self) -> Recovered:
        """The state after the last epoch. A snapshot that is damaged is passed over, with a warning. Raises Damaged."""
        if self.lock is not None:  # a run that goes on may be writing what looks like leftovers
            self._remove_leftovers()
        self.refuse_lost_epochs()
        snapshot, base = self._newest_whole()
        last, source = snapshot.epoch, snapshot.source
        entries = self._entries(snapshot.epoch)
        for era in self.manifest.earlier:
            if era.last >= last:  # the snapshot after it cannot be read
                for entry in (each for each in entries if last < each.epoch <= era.last):
                    base.apply(entry.updates, entry.now)
                    source = entry.source
                last = era.last + 1
                base = carried(base, self.program_at(era.last), self.program_at(last), era.defaults)
        for entry in entries:
            if entry.epoch > last:
                base.apply(entry.updates, entry.now)
                last, source = entry.epoch, entry.source
        return Recovered(base, last, source, list(self._undelivered(last)))

    def _undelivered(self, last: int) -> Iterator[tuple[int, Changes]]:
        """Sinks have an epoch before the next segment is written: only the last one can be missing.

        If the last epochs are ones in which the program became another one, they may lack these and the segment before, too.
        """
        delivered = self.manifest.delivered
        if delivered < 0 and (last == 0 or last in self.turns):
            yield 0, self._in_form(0, Changes({name: list(self.view_at(name, 0)) for name in self._outputs_at(0)}))
        for segment in self.segments[-1:]:
            for entry in self._read(segment) if segment.last > max(delivered, self.oldest_epoch) else ():
                if entry.epoch > max(delivered, self.oldest_epoch):
                    yield entry.epoch, self._in_form(entry.epoch, entry.changes)
        yield from self._undelivered_turns()

    def _newest_whole(self) -> tuple[Snapshot, Base]:
        for snapshot in reversed(self.manifest.snapshots):
            try:
                snapshots.check_snapshot(self._snapshots, snapshot)
                return snapshot, snapshots.read_base(self._snapshots, snapshot, self.program_at(snapshot.epoch))
            except Damaged as error:
                if snapshot is self.manifest.snapshots[0]:
                    raise
                warnings.warn(f"{error.problems[0]}; using the snapshot before it", StateWarning, stacklevel=2)
                kept = tuple(each for each in self.manifest.snapshots if each.epoch < snapshot.epoch)
                self.manifest = self.manifest.with_snapshots(kept, self.manifest.delivered)
        raise AssertionError("a manifest names a snapshot")

    def _entries(self, after: int) -> list[Entry]:
        parts = log.chain(self._log, self.segments, after, without=self.turns)
        entries = (entry for part in parts for entry in self._read(part))
        return [entry for entry in entries if entry.epoch > after]

    def oldest_base(self) -> tuple[int, Base]:
        start = self._oldest_of_program()
        return start.epoch, snapshots.read_base(self._snapshots, start, self.program)

    def since(self, after: int) -> list[Epoch]:
        entries = self._entries(self._before_segment(after))
        return [Epoch(each.updates, each.now, each.source) for each in entries if each.epoch > after]

    def _read(self, segment: Segment) -> list[Entry]:
        """A segment is of one program: there is a snapshot before the epoch in which it becomes another one, and one after it."""
        return log.read_segment(self._log, segment, self.program_at(segment.first))

    def pieces(self) -> Iterator[Piece]:
        found = self.recover()
        yield Piece(
            self.program, found.base.rows, {name: partial(self.view_at, name, found.epoch) for name in self.outputs}
        )

    def damages(self) -> Iterator[str]:
        for snapshot in self.manifest.snapshots:
            try:
                snapshots.check_snapshot(self._snapshots, snapshot)
            except Damaged as error:
                yield error.problems[0]
        for segment in self.segments:
            try:
                self._read(segment)
            except Damaged as error:
                yield error.problems[0]
        try:
            log.chain(self._log, self.segments, self.oldest_epoch, self.known_epoch, without=self.turns)
        except Damaged as error:
            yield error.problems[0]

    def _view_at(self, relation: str, epoch: int, given: Snapshot | None) -> set[Tuple]:
        self._refuse_unknown(epoch)
        start = self._start_of(epoch, given)
        program = self.program_at(start.epoch)
        rows = snapshots.read_view(self._snapshots, start, program.relations[relation], program.types)
        for part in log.chain(self._log, self.segments, start.epoch, without=self.turns):
            if part.first > epoch:
                break
            for entry in self._read(part):
                if start.epoch < entry.epoch <= epoch:
                    rows.difference_update(entry.changes.deleted.get(relation, ()))
                    rows.update(entry.changes.inserted.get(relation, ()))
        return rows


def _in_one_piece(folder: Path, manifest: Manifest) -> Manifest:
    if manifest.parts is not None:
        hint = f"run it with {manifest.parts} partitions"
        raise StateError([f"{folder} holds a state in {manifest.parts} parts"], hints=[hint])
    return manifest
