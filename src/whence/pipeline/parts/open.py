"""State folders, whether they hold a state in one piece or in parts, and which of the two it is to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path

from whence.lang.load import Functions
from whence.lang.program import Program
from whence.lang.tables import has_constraints
from whence.pipeline.files import StateError
from whence.pipeline.folder import Store, lock_folder, look_into
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.store import WholeStore
from whence.plan.deal import Dealing, divide
from whence.plan.partition import NotPartitionable, Partitioning, partition


def open_state(folder: Path, program: Program) -> Store:
    """The state of a folder, or a new one, for who uses it alone. Raises StateError."""
    manifest, lock = lock_folder(folder, program)
    return (WholeStore if manifest.parts is None else PartedStore)(folder, program, manifest, lock)


def read_state(folder: Path, functions: Functions | None = None) -> Store:
    """The state of a folder that may be in use. Raises StateError."""
    manifest = look_into(folder)
    return (WholeStore if manifest.parts is None else PartedStore)(folder, manifest.program(functions), manifest, None)


@dataclass(frozen=True)
class Division:
    """How a state is kept: in so many parts, or in one piece if None; and why."""

    parts: int | None
    reason: str

    def __str__(self) -> str:
        kept = "in the driver" if self.parts is None else f"in {self.parts} parts"
        return f"state {kept}: {self.reason}"


def choose(
    state: Store,
    facts: Mapping[str, object],
    *,
    partitions: int | None,
    limit: int,
    cores: Callable[[], int],
) -> Division:
    """As asked for, as it is, or as its size demands. Raises StateError if that cannot be."""
    if partitions is not None and partitions < 1:
        raise ValueError(f"a state is in one part at least, not in {partitions}")
    if state.parts is not None:
        if partitions in (None, state.parts):
            return Division(state.parts, "it is so already")
        return Division(partitions, f"as asked for, instead of {state.parts}")
    if partitions is not None:
        if reason := _why_in_one_piece(state, divide):
            hint = "without partitions it is kept in the driver; whence explain-plan tells what can be split"
            raise StateError([f"the state of {state.manifest.name} cannot be in parts: {reason}"], hints=[hint])
        kept = "; the constraints of its tables are not enforced in parts" if has_constraints(state.program) else ""
        return Division(partitions, f"as asked for{kept}")
    rows = sum(len(each) for each in facts.values() if isinstance(each, Sized)) if state.is_new else state.rows()
    size = f"{rows:,} rows, at most {limit:,} are kept there"
    if rows <= limit:
        return Division(None, size)
    # Who did not ask for parts does not get those that make rounds of every epoch.
    reason = "constraints of tables are enforced" if has_constraints(state.program) else ""
    if reason := reason or _why_in_one_piece(state, partition):
        return Division(None, f"{rows:,} rows are more than {limit:,}, but {reason}")
    return Division(cores(), f"{rows:,} rows are more than {limit:,}")


def needs_each_other(state: Store) -> bool:
    """Whether the parts of a state, or those it would have, ship each other what they need."""
    return (
        state.manifest.ships if state.parts is not None else isinstance(divide(state.program, state.outputs), Dealing)
    )


def _why_in_one_piece(state: Store, way: Callable[[Program, Iterable[str]], Partitioning]) -> str:
    try:
        way(state.program, state.outputs)
    except NotPartitionable as reason:
        return str(reason)
    return ""
