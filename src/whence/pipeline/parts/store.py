"""A state folder whose log and snapshots are in parts.

Each part has segments and snapshots of its own, in `log/part-K` and in `snapshots/EPOCH/part-K`, in the form that a state in one
piece has them. Commits in `log` name the segments that count, the manifest names the snapshots.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from whence.io.changes import Changes, Epoch, Position
from whence.io.updates import reported_writing
from whence.lang.program import Program, output_names
from whence.lang.types import Tuple
from whence.pipeline import log, snapshots
from whence.pipeline.base import Base
from whence.pipeline.files import Damaged, StateError, StateWarning
from whence.pipeline.folder import Deliver, Piece, Store
from whence.pipeline.log import Entry, Segment
from whence.pipeline.manifest import Earlier, Manifest
from whence.pipeline.parts import commits
from whence.pipeline.parts.commits import PartsCommit
from whence.pipeline.snapshots import Rows, Snapshot
from whence.plan.deal import Dealing
from whence.plan.partition import Partitioning

if TYPE_CHECKING:
    from whence.pipeline.store import WholeStore

_PART = "part-"


class PartedStore(Store):
    """What is written of a part may be written by any process; only who has opened the folder commits."""

    @property
    def parts(self) -> int:
        assert self.manifest.parts is not None
        return self.manifest.parts

    def whole(self) -> WholeStore:
        raise StateError([f"{self.folder} is in {self.parts} parts, which need Spark"], hints=["leave out --no-spark"])

    def in_parts(self, parts: int, deliver: Deliver) -> PartedStore:  # noqa: ARG002 - sinks get what they lack as ever
        if parts == self.parts:
            return self
        from whence.pipeline.parts.turn import turned  # noqa: PLC0415 - it makes the one of the other

        return turned(self, self.program, parts=parts).publish()

    def rows(self) -> int:
        return self.manifest.snapshots[-1].tuples + sum(self.sizes().values())

    @cached_property
    def partitioning(self) -> Partitioning:
        return _partitioning(self.program, self.manifest)

    def _division_at(self, epoch: int) -> tuple[Partitioning, int]:
        """How the state was in parts in an epoch, and in how many."""
        era = next((each for each in self.manifest.earlier if epoch <= each.last), None)
        if era is None or era.parts is None:
            return self.partitioning, self.parts
        return _partitioning(self.program_at(epoch), era), era.parts

    @property
    def segments(self) -> list[Segment]:
        """Those of the commits."""
        return log.list_segments(self._log, commits.SUFFIX)

    def commits(self, after: int) -> list[PartsCommit]:
        """Those that hold the epochs after one. Raises Damaged."""
        return [commits.read_commit(self._log, each) for each in self._chain(after)]

    def _chain(self, after: int) -> list[Segment]:
        return log.chain(self._log, self.segments, after, without=self.turns)

    # -- one part

    def write_segment(self, part: int, entries: Sequence[Entry]) -> Segment:
        """Counts once a commit names it."""
        with reported_writing(self._log_of(part)):
            self._log_of(part).mkdir(exist_ok=True)
        return log.write_segment(self._log_of(part), entries, self.program)

    def write_snapshot(
        self, part: int, epoch: int, base: Base, views: Mapping[str, Rows], how: Partitioning
    ) -> Snapshot:
        """Counts once the manifest names it."""
        written = snapshots.write_snapshot(
            self._snapshots, base, views, self.program, epoch=epoch, source={}, part=_folder(part)
        )
        # What all parts have is counted once.
        counted = sum(len(rows) for name, rows in base.rows.items() if part == 0 or name in how.columns)
        return replace(written, tuples=counted)

    def merge_segments(self, part: int, after: int) -> Segment:
        """The epochs after one in a single segment."""
        return self.write_segment(part, self.entries(part, after))

    def entries(self, part: int, after: int, last: int | None = None) -> list[Entry]:
        """The epochs of a part after one. Raises Damaged."""
        found = [
            entry
            for commit in self.commits(after)
            if last is None or commit.epochs[0].epoch <= last
            for entry in self._read(part, commit.segments[part])
        ]
        return [entry for entry in found if entry.epoch > after and (last is None or entry.epoch <= last)]

    def _read(self, part: int, name: str) -> list[Entry]:
        segment = Segment.named(name)
        return log.read_segment(self._log_of(part), segment, self.program_at(segment.first))

    def base_of(self, part: int) -> Base:
        """The base tuples of a part after the last epoch. A damaged snapshot is passed over, with a warning. Raises Damaged."""
        start, base = self._newest_base(part)
        for entry in self.entries(part, start.epoch):
            base.apply(entry.updates, entry.now)
        return base

    def view_of(self, part: int, relation: str, epoch: int, start: Snapshot | None = None) -> set[Tuple]:
        start = self._start_of(epoch, start)
        program = self.program_at(epoch)
        rows = snapshots.read_view(self._snapshots, start, program.relations[relation], program.types, _folder(part))
        for entry in self.entries(part, start.epoch, epoch):
            rows.difference_update(entry.changes.deleted.get(relation, ()))
            rows.update(entry.changes.inserted.get(relation, ()))
        return rows

    def holders(self, relation: str, how: Partitioning) -> range:
        """The parts that keep the rows of an output relation: one, if all of them derive all of it."""
        return range(self.parts if relation in how.columns else 1)

    def _newest_base(self, part: int) -> tuple[Snapshot, Base]:
        first = self._oldest_of_program()
        for snapshot in reversed(self.manifest.snapshots):
            try:
                return snapshot, snapshots.read_base(self._snapshots, snapshot, self.program, _folder(part))
            except Damaged as error:
                if snapshot is first:
                    raise
                warnings.warn(f"{error.problems[0]}; using the snapshot before it", StateWarning, stacklevel=2)
        raise AssertionError("a manifest names a snapshot")

    def _log_of(self, part: int) -> Path:
        return self._log / _folder(part)

    # -- all parts

    def commit(self, commit: PartsCommit) -> None:
        """Once it returns, the epochs have happened."""
        commits.write_commit(self._log, commit)

    def publish_snapshots(
        self, written: Sequence[Snapshot], source: Position, merged: PartsCommit | None, *, delivered: int, retain: int
    ) -> None:
        """Makes snapshots of all parts the state to start from, and forgets what is older than wanted.

        `merged` replaces the commits since the snapshot before.
        """
        made = _together(written, source)
        self._publish(self.manifest.with_snapshots(self._retained(made, retain), delivered))
        if merged is not None:
            self.commit(merged)
        self.remove_leftovers()

    def begin_era(self, written: Sequence[Snapshot]) -> None:
        """An epoch in which the program, or the parts, became those of this store. It has happened once the manifest says so."""
        made = _together(written, written[0].source)
        self._publish(replace(self.manifest, snapshots=(*self.manifest.snapshots, made)))

    @property
    def last_source(self) -> Position:
        """Where the last epoch ended."""
        last = self.last_commit()
        is_last = last is not None and last.epochs[-1].epoch == self.last_epoch
        return last.epochs[-1].source if last is not None and is_last else self.manifest.snapshots[-1].source

    def last_commit(self) -> PartsCommit | None:
        segments = self.segments
        return commits.read_commit(self._log, segments[-1]) if segments else None

    def sizes(self) -> Mapping[str, int]:
        last = self.last_commit()
        if last is not None and last.epochs[-1].epoch >= self.last_epoch:
            return last.tuples
        count = partial(snapshots.count_view, self._snapshots, self.manifest.snapshots[-1])
        how = self.partitioning
        return {name: sum(count(name, _folder(part)) for part in self.holders(name, how)) for name in self.outputs}

    def undelivered(self) -> Iterator[tuple[int, Changes]]:
        """What sinks may not have received: of the last commit at most, since they have it before the next is written."""
        delivered, epoch = self.manifest.delivered, self.last_epoch
        if delivered < 0 and (epoch == 0 or epoch in self.turns):
            yield 0, self._in_form(0, Changes({name: list(self.view_at(name, 0)) for name in self._outputs_at(0)}))
        last = self.last_commit()
        if last is not None:
            first = max(last.epochs[0].epoch, delivered + 1)
            for each, changes in self.changes(first - 1):
                yield each, self._in_form(each, changes)
        yield from self._undelivered_turns()

    def changes(self, after: int) -> Iterator[tuple[int, Changes]]:
        """Those of all parts, epoch by epoch, as far as the state is in the same parts."""
        parts = self._division_at(after + 1)[1]
        of_parts = [self.entries(part, after) for part in range(parts)]
        for together in zip(*of_parts, strict=True):
            inserted = _joined(each.changes.inserted for each in together)
            deleted = _joined(each.changes.deleted for each in together)
            yield together[0].epoch, Changes(inserted, deleted)

    def compact(self, retain: int) -> None:
        last = self.last_commit()
        epoch = self.last_epoch
        if self.manifest.delivered < epoch:
            problem = f"the changes of epoch {epoch} may not have arrived everywhere"
            raise StateError([problem], hints=["run the program on this state once more, then compact it"])
        before = self.manifest.snapshots[-1].epoch
        if last is None or epoch == before:
            return
        how = self.partitioning
        written, merged = [], []
        for part in range(self.parts):
            views = {
                name: list(self.view_of(part, name, epoch)) for name in self.outputs if part in self.holders(name, how)
            }
            written.append(self.write_snapshot(part, epoch, self.base_of(part), views, how))
            merged.append(self.merge_segments(part, before).name)
        source = last.epochs[-1].source
        self.publish_snapshots(written, source, self.merged(before, merged), delivered=epoch, retain=retain)

    def merged(self, after: int, segments: Sequence[str]) -> PartsCommit:
        """The commits after an epoch as one, with segments that hold the same."""
        listed = self.commits(after)
        headers = [header for each in listed for header in each.epochs if header.epoch > after]
        return PartsCommit(headers, segments, listed[-1].tuples)

    def remove_leftovers(self) -> None:
        """What tasks wrote that was never committed, and what a crash left. No task may be under way."""
        snapshots.remove_others(self._snapshots, self.manifest.snapshots)
        for snapshot in self.manifest.snapshots:
            for path in (self._snapshots / snapshot.name).iterdir():
                if path.name in ("base", "views"):
                    shutil.rmtree(path)  # of the state in one piece that it was
        used = [each for each in self.segments if self.is_new or each.last > self.oldest_epoch]
        log.remove_leftovers(self._log, map(commits.file_name, used))
        listed = [commits.read_commit(self._log, each) for each in used]
        for part in range(max([self.parts, *(len(each.segments) for each in listed)])):
            if self._log_of(part).exists():
                used_names = [each.segments[part] for each in listed if part < len(each.segments)]
                log.remove_leftovers(self._log_of(part), used_names)

    def damages(self) -> Iterator[str]:
        for snapshot in self.manifest.snapshots:
            try:
                snapshots.check_snapshot(self._snapshots, snapshot)
            except Damaged as error:
                yield error.problems[0]
        for segment in self.segments:
            try:
                listed = commits.read_commit(self._log, segment).segments
            except Damaged as error:
                yield error.problems[0]
                continue
            for part, name in enumerate(listed):
                try:
                    self._read(part, name)
                except Damaged as error:
                    yield error.problems[0]
        try:
            log.chain(self._log, self.segments, self.oldest_epoch, self.known_epoch, without=self.turns)
        except Damaged as error:
            yield error.problems[0]

    def _view_at(self, relation: str, epoch: int, given: Snapshot | None) -> set[Tuple]:
        self._refuse_unknown(epoch)
        how, parts = self._division_at(epoch)
        holders = range(parts if relation in how.columns else 1)
        return {row for part in holders for row in self.view_of(part, relation, epoch, given)}

    def oldest_base(self) -> tuple[int, Base]:
        start = self._oldest_of_program()
        read = partial(snapshots.read_base, self._snapshots, start, self.program)
        return start.epoch, self._together(read(_folder(part)) for part in range(self.parts))

    def base(self) -> Base:
        """The base tuples of all parts after the last epoch, which may not fit. Raises Damaged."""
        return self._together(map(self.base_of, range(self.parts)))

    def _together(self, of_parts: Iterable[Base]) -> Base:
        base = Base(self.program)
        for own in of_parts:
            base.windows.advance(own.windows.clock)
            for name, rows in own.rows.items():
                times = own.windows.times(name) if name in own.windows.kept else dict.fromkeys(rows, 0.0)
                base.restore(name, times.items())
        return base

    def since(self, after: int) -> list[Epoch]:
        """What all parts are given is given once."""
        spread = self.partitioning.columns
        epochs = []
        before = self._before_segment(after)
        for together in zip(*(self.entries(part, before) for part in range(self.parts)), strict=True):
            first = together[0]
            if first.epoch <= after:
                continue
            others = [update for each in together[1:] for update in each.updates if update.relation in spread]
            epochs.append(Epoch([*first.updates, *others], first.now, first.source))
        return epochs

    def pieces(self) -> Iterator[Piece]:
        """Each part is one, unless they need each other. Raises StateError if they do not go together."""
        how, epoch = self.partitioning, self.last_epoch
        bases = []
        for part in range(self.parts):
            bases.append(self.base_of(part).rows)
            for name, rows in bases[part].items():
                strays = {row for row in rows if how.part(name, row, self.parts) not in (None, part)}
                if strays or (name in how.whole and rows != bases[0][name]):
                    raise StateError([f"{name} in part {part} after epoch {epoch} is not what belongs there"])
            if not self.manifest.ships:
                own = [name for name in self.outputs if part in self.holders(name, how)]
                views = {name: partial(self.view_of, part, name, epoch) for name in own}
                yield Piece(how.program_of(part, self.parts), bases[part], views)
        if self.manifest.ships:
            together = {name: set[Tuple]().union(*(each[name] for each in bases)) for name in bases[0]}
            yield Piece(self.program, together, {name: partial(self.view_at, name, epoch) for name in self.outputs})


def _partitioning(program: Program, kept: Manifest | Earlier) -> Partitioning:
    kind = Dealing if kept.ships else Partitioning
    return kind.by(program, output_names(program), kept.columns)


def _together(written: Sequence[Snapshot], source: Position) -> Snapshot:
    """The snapshots of all parts as one."""
    files = {path: expected for each in written for path, expected in each.files.items()}
    return replace(written[0], source=source, files=files, tuples=sum(each.tuples for each in written))


def _folder(part: int) -> str:
    return f"{_PART}{part}"


def _joined(of_parts: Iterable[Mapping[str, list[Tuple]]]) -> dict[str, list[Tuple]]:
    joined: dict[str, list[Tuple]] = {}
    for each in of_parts:
        for name, rows in each.items():
            joined.setdefault(name, []).extend(rows)
    return joined
