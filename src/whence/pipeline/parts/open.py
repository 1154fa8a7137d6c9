"""State folders, whether they hold a state in one piece or in parts; which of the two it is to be, and how it becomes that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, replace
from pathlib import Path

from whence.io.changes import Changes
from whence.lang.load import Functions
from whence.lang.program import Program
from whence.pipeline.base import Base
from whence.pipeline.files import StateError
from whence.pipeline.folder import lock_folder, look_into
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.store import Store
from whence.plan.partition import NotPartitionable, Partitioning, partition

RESIDENT_LIMIT = 5_000_000

# Takes the changes of an epoch to where they go.
Deliver = Callable[[int, Changes], None]


def open_state(folder: Path, program: Program) -> Store | PartedStore:
    """The state of a folder, or a new one, for who uses it alone. Raises StateError."""
    manifest, lock = lock_folder(folder, program)
    return (Store if manifest.parts is None else PartedStore)(folder, program, manifest, lock)


def read_state(folder: Path, functions: Functions | None = None) -> Store | PartedStore:
    """The state of a folder that may be in use. Raises StateError."""
    manifest = look_into(folder)
    return (Store if manifest.parts is None else PartedStore)(folder, manifest.program(functions), manifest, None)


@dataclass(frozen=True)
class Choice:
    """How a state is kept: in so many parts, or in one piece if None; and why."""

    parts: int | None
    reason: str

    def __str__(self) -> str:
        kept = "in the driver" if self.parts is None else f"in {self.parts} parts"
        return f"state {kept}: {self.reason}"


def choose(
    state: Store | PartedStore,
    facts: Mapping[str, object],
    *,
    partitions: int | None,
    limit: int,
    cores: Callable[[], int],
) -> Choice:
    """As asked for, as it is, or as its size demands. Raises StateError if that cannot be."""
    if partitions is not None and partitions < 1:
        raise ValueError(f"a state is in one part at least, not in {partitions}")
    if isinstance(state, PartedStore):
        if partitions not in (None, state.parts):
            hint = f"go on with {state.parts}; to have another number, begin a new state"
            raise StateError([f"{state.folder} is in {state.parts} parts, which stay as they are"], hints=[hint])
        return Choice(state.parts, "it is so already")
    if partitions is not None:
        if reason := _why_in_one_piece(state):
            hint = "without partitions it is kept in the driver; whence explain-plan tells what can be split"
            raise StateError([f"the state of {state.manifest.name} cannot be in parts: {reason}"], hints=[hint])
        return Choice(partitions, "as asked for")
    rows = sum(len(each) for each in facts.values() if isinstance(each, Sized)) if state.is_new else state.rows()
    size = f"{rows:,} rows, at most {limit:,} are kept there"
    if rows <= limit:
        return Choice(None, size)
    if reason := _why_in_one_piece(state):
        return Choice(None, f"{rows:,} rows are more than {limit:,}, but {reason}")
    return Choice(cores(), f"{rows:,} rows are more than {limit:,}")


def _why_in_one_piece(state: Store) -> str:
    try:
        partition(state.program, state.outputs)
    except NotPartitionable as reason:
        return str(reason)
    return ""


def in_parts(state: Store | PartedStore, parts: int, deliver: Deliver) -> PartedStore:
    """The state in parts, made from the one that there is.

    What sinks may lack of it is delivered first. What it was before the last epoch is forgotten.
    """
    if isinstance(state, PartedStore):
        return state
    how = partition(state.program, state.outputs)
    manifest = replace(state.manifest, parts=parts, columns=how.columns, snapshots=())
    parted = PartedStore(state.folder, state.program, manifest, state.lock)
    if state.is_new:
        return parted
    found = state.recover()
    for epoch, changes in found.undelivered:
        deliver(epoch, changes)
    views = {name: state.view_at(name, found.epoch) for name in state.outputs}
    written = []
    for part in range(parts):
        own = {
            name: [row for row in rows if how.part(name, row, parts) in (None, part)]
            for name, rows in views.items()
            if part in parted.holders(name, how)
        }
        written.append(
            parted.write_snapshot(part, found.epoch, _share(found.base, state.program, how, part, parts), own, how)
        )
    parted.publish_snapshots(written, found.source, None, delivered=found.epoch, retain=0)
    return parted


def _share(base: Base, program: Program, how: Partitioning, part: int, parts: int) -> Base:
    share = Base(program)
    share.windows.advance(base.windows.clock)
    for name, rows in base.rows.items():
        timed = base.windows.times(name) if base.windows.forgets(name) else dict.fromkeys(rows, 0.0)
        share.restore(name, ((row, time) for row, time in timed.items() if how.part(name, row, parts) in (None, part)))
    return share
