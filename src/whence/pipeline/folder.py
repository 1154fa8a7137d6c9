"""A folder that holds the state of a program: its manifest, its lock, and the epochs that can be looked at."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from whence.html import shown_block, shown_table, shown_title
from whence.io.changes import Changes, Epoch
from whence.io.updates import reported_writing
from whence.lang.bags import with_copies
from whence.lang.differences import differences
from whence.lang.program import Program, output_names
from whence.lang.types import Tuple
from whence.pipeline import log, metrics
from whence.pipeline.base import Base
from whence.pipeline.files import PARTIAL, Damaged, StateError, StateWarning
from whence.pipeline.lock import StateLock
from whence.pipeline.log import Segment
from whence.pipeline.manifest import Manifest, read_manifest, write_manifest
from whence.pipeline.snapshots import Snapshot

if TYPE_CHECKING:
    from whence.pipeline.parts.store import PartedStore
    from whence.pipeline.store import WholeStore

_ATTEMPTS = 5

# Takes the changes of an epoch to where they go.
Deliver = Callable[[int, Changes], None]


@dataclass(frozen=True)
class Piece:
    """Base tuples, the program that makes views of them, and these views as the state has them."""

    program: Program
    base: Mapping[str, set[Tuple]]
    views: Mapping[str, Callable[[], set[Tuple]]]


class Store(ABC):
    """With a lock nobody else uses the folder; without one it is only looked at, and may be in use."""

    def __init__(self, folder: Path, program: Program, manifest: Manifest, lock: StateLock | None) -> None:
        self.folder = folder
        self.program = program
        self.manifest = manifest
        self.outputs = output_names(program)
        self.lock = lock
        self._log = folder / "log"
        self._snapshots = folder / "snapshots"
        self._earlier: dict[int, Program] = {}

    def _repr_html_(self) -> str:
        rows = [] if self.is_new else list(self.sizes().items())
        where = "in one piece" if self.parts is None else f"in {self.parts:,} parts"
        epochs = "nothing yet" if self.is_new else f"epochs {self.oldest_epoch:,} to {self.last_epoch:,}, {where}"
        return shown_block(shown_title(f"state {self.folder}", epochs), shown_table(("relation", "tuples"), rows))

    def program_at(self, epoch: int) -> Program:
        """The program that the state was of in an epoch."""
        era = next((each for each in self.manifest.earlier if epoch <= each.last), None)
        if era is None:
            return self.program
        if era.last not in self._earlier:
            self._earlier[era.last] = era.program(self.program.functions)
        return self._earlier[era.last]

    @property
    def is_new(self) -> bool:
        return not self.manifest.snapshots

    @property
    @abstractmethod
    def segments(self) -> list[Segment]:
        """Which epochs have happened, in order."""

    @property
    def last_epoch(self) -> int:
        segments = self.segments
        return max(self.manifest.snapshots[-1].epoch, segments[-1].last if segments else 0, *self.turns, 0)

    @property
    def turns(self) -> tuple[int, ...]:
        """The epochs in which the program, or the parts, became others: the log has nothing of them, but there are snapshots."""
        return tuple(each.last + 1 for each in self.manifest.earlier)

    @property
    def known_epoch(self) -> int:
        """The last that is known to have happened: sinks had it, or its figures were written, which is done after its segment."""
        return max(self.manifest.delivered, 0 if self.is_new else metrics.last_epoch_of(self.folder))

    def refuse_lost_epochs(self) -> None:
        """Raises Damaged if the log ends before an epoch that has happened. One that is written meanwhile may not be seen."""
        if self.lock is not None and self.last_epoch < self.known_epoch:
            problem = f"epochs {self.last_epoch + 1} to {self.known_epoch} have happened, but are missing"
            raise Damaged(self._log, problem)

    @property
    def oldest_epoch(self) -> int:
        """The first that `view_at` knows."""
        return self.manifest.snapshots[0].epoch

    @property
    @abstractmethod
    def parts(self) -> int | None:
        """How many parts it is in; None if it is in one piece."""

    @abstractmethod
    def whole(self) -> WholeStore:
        """Itself, in one piece. Raises StateError if it is in parts."""

    @abstractmethod
    def in_parts(self, parts: int, deliver: Deliver) -> PartedStore:
        """The state in parts, made from the one that there is.

        What sinks may lack of it is delivered first. What it was before the last epoch is forgotten.
        """

    @abstractmethod
    def rows(self) -> int:
        """How many there are in base relations and views, as of the newest snapshot."""

    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """How many rows the output relations have after the last epoch."""

    @abstractmethod
    def damages(self) -> Iterator[str]:
        """What is wrong with each file that is missing or not as it was written."""

    @abstractmethod
    def compact(self, retain: int) -> None:
        """A snapshot of the last epoch, and the log before it merged. Raises StateError if a sink may lack that epoch."""

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """What the last epoch rests on. Raises Damaged."""

    @abstractmethod
    def oldest_base(self) -> tuple[int, Base]:
        """The oldest epoch of the program as it is now, and the base tuples after it. Raises Damaged, also if it was forgotten
        meanwhile.
        """

    def _oldest_of_program(self) -> Snapshot:
        turn = max(self.turns, default=0)
        return next(each for each in self.manifest.snapshots if each.epoch >= turn)

    @abstractmethod
    def since(self, after: int) -> list[Epoch]:
        """What came in after an epoch, epoch by epoch. Raises Damaged, also if some of it was forgotten meanwhile."""

    def _before_segment(self, after: int) -> int:
        """The epoch before those that a segment holds together with the one after `after`."""
        first = next((each.first for each in self.segments if each.last > after), after + 1)
        return min(after, first - 1)

    def look_again(self) -> None:
        """Takes note of what somebody who writes has made of the folder since. Raises StateError."""
        self.manifest = look_into(self.folder)

    def view_at(self, relation: str, epoch: int, *, start: Snapshot | None = None) -> set[Tuple]:
        """An output relation as it was after an epoch. Raises StateError if that is not retained, or has not happened.

        It is made from the newest snapshot before, or from the one given.
        """
        outputs = output_names(self.program_at(epoch))
        if relation not in outputs:
            then = " then" if outputs != self.outputs else ""
            raise StateError(
                [f"{relation} is not an output of the program; its outputs are{then} {', '.join(outputs)}"]
            )
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

    @abstractmethod
    def _view_at(self, relation: str, epoch: int, given: Snapshot | None) -> set[Tuple]: ...

    def _start_of(self, epoch: int, given: Snapshot | None) -> Snapshot:
        """The snapshot that an epoch is made from: the newest before it, of the same program. Raises Damaged."""
        start = given or next(each for each in reversed(self.manifest.snapshots) if each.epoch <= epoch)
        turns = [each for each in self.turns if start.epoch < each <= epoch]
        if not turns:
            return start
        found = next((each for each in self.manifest.snapshots if each.epoch == turns[-1]), None)
        if found is None:
            raise Damaged(self._snapshots, f"there is no snapshot of epoch {turns[-1]}, in which the program changed")
        return found

    def _undelivered_turns(self) -> Iterator[tuple[int, Changes]]:
        """Of epochs in which the program became another one: whoever applied an epoch after it has delivered it before."""
        segments = self.segments
        applied = max(self.manifest.delivered, segments[-1].last if segments else 0)
        for turn in self.turns:
            if turn > applied:
                yield turn, self._in_form(turn, self._turn(turn))

    def _turn(self, epoch: int) -> Changes:
        """What became of the output relations in an epoch in which the program became another one.

        Those with other columns are new, and those that are gone are not spoken of.
        """
        then, now = self.program_at(epoch - 1), self.program_at(epoch)
        inserted, deleted = {}, {}
        for name in output_names(now):
            before = self.view_at(name, epoch - 1) if is_same_view(name, then, now) else set()
            after = self.view_at(name, epoch)
            inserted[name], deleted[name] = list(after - before), list(before - after)
        return Changes(
            {name: rows for name, rows in inserted.items() if rows},
            {name: rows for name, rows in deleted.items() if rows},
        )

    def _outputs_at(self, epoch: int) -> tuple[str, ...]:
        return output_names(self.program_at(epoch))

    def _in_form(self, epoch: int, changes: Changes) -> Changes:
        """The changes of relations that are outputs still, with the columns that they had then."""
        then, now = self.program_at(epoch).relations, self.program.relations
        shown = with_copies(self.program, self.outputs)
        kept = {name for name in shown if name in then and then[name].fields == now[name].fields}
        inserted = {name: rows for name, rows in changes.inserted.items() if name in kept}
        deleted = {name: rows for name, rows in changes.deleted.items() if name in kept}
        return Changes(inserted, deleted, changes.ignored)

    def _refuse_unknown(self, epoch: int) -> None:
        if not self.oldest_epoch <= epoch <= self.last_epoch:
            problem = f"{self.folder} holds epochs {self.oldest_epoch} to {self.last_epoch}, not {epoch}"
            raise StateError([problem], hints=["a longer retention keeps more"])

    def _retained(self, made: Snapshot, retain: int) -> tuple[Snapshot, ...]:
        """The snapshots to keep when a new one has been made."""
        listed = [*(each for each in self.manifest.snapshots if each.epoch < made.epoch), made]
        start = max((each.epoch for each in listed if each.epoch <= made.epoch - retain), default=0)
        return tuple(each for each in listed if each.epoch >= start or each in listed[-2:])

    def close(self, delivered: int | None = None) -> None:
        """Lets others in. `delivered` is an epoch that every sink has."""
        if self.lock is None:
            return
        if delivered is not None and not self.is_new and delivered != self.manifest.delivered:
            self._publish(self.manifest.with_snapshots(self.manifest.snapshots, delivered))
        self.lock.release()
        self.lock = None

    def _publish(self, manifest: Manifest) -> None:
        write_manifest(self.folder, manifest)
        self.manifest = manifest


def is_same_view(name: str, then: Program, now: Program) -> bool:
    """Whether an output of a program is one of an earlier version, with the same columns."""
    return name in output_names(then) and then.relations[name].fields == now.relations[name].fields


def lock_folder(folder: Path, program: Program) -> tuple[Manifest, StateLock]:
    """Raises StateError if the folder is in use, is another program's, or is damaged beyond repair."""
    with reported_writing(folder):
        for part in ("log", "snapshots"):
            (folder / part).mkdir(parents=True, exist_ok=True)
    lock = StateLock(folder)
    try:
        for path in folder.glob(f"*{PARTIAL}"):
            path.unlink(missing_ok=True)
        return _manifest(folder, program), lock
    except StateError:
        lock.release()
        raise


def look_into(folder: Path) -> Manifest:
    """The manifest of a folder that may be in use. Raises StateError."""
    found = read_manifest(folder)
    if found is None:
        raise StateError([f"{folder} is not a state folder: it has no manifest.json"])
    return found[0]


def _manifest(folder: Path, program: Program) -> Manifest:
    """The folder's, if it is the program's, or a new one."""
    found = read_manifest(folder)
    if found is None:
        if log.list_segments(folder / "log"):
            raise Damaged(folder / "manifest.json", "the file is missing, though there are epochs")
        (folder / metrics.NAME).unlink(missing_ok=True)  # of another state
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
        changed = differences(manifest.program(program.functions), program)
        problem = f"{folder} holds the state of another version of {manifest.name}"
        hint = "--upgrade brings the state over, --upgrade --dry-run tells what that would do; or start anew with another folder"
        raise StateError(["\n  ".join([problem, *changed.lines()])], hints=[hint])
    made = Manifest.of(program)
    return replace(manifest, name=made.name, text=made.text)
