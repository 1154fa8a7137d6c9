"""What is asked of a run, whichever way its state is kept and wherever its updates come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypedDict

from whence.engine.profile import Profile
from whence.io.changes import Changes
from whence.limits import Limits
from whence.pipeline.report import EpochReport
from whence.pipeline.sinks import Sink
from whence.reader import Reader

if TYPE_CHECKING:
    from whence.pipeline.parts.open import Division

SNAPSHOT_EVERY = 500
RETAIN = 1000
RESIDENT_LIMIT = 5_000_000


class Follower(Protocol):
    """Has the join orders of a session follow its data."""

    def after_epoch(self) -> Iterable[object]:
        """What it has switched, if anything: as text."""
        ...


class Asked(TypedDict, total=False):
    """The options that users of `maintain` name."""

    sinks: Sequence[Sink]
    strategy: str
    limits: Limits
    snapshot_every: int
    retain: int
    partitions: int | None
    resident_limit: int
    on_epoch: Callable[[EpochReport], object] | None
    on_choice: Callable[[Division], object] | None
    follow: Callable[[Reader], Follower] | None


@dataclass(frozen=True)
class RunOptions:
    """`wanted` names the relations that can be looked at, the outputs among them; by default all of them can.

    The state is in `partitions` parts, or in one piece while it has no more rows than `resident_limit`; `on_choice` is told which
    it is, and why. A snapshot is made after `snapshot_every` epochs, and the views of the last `retain` epochs are kept.
    `on_changes` is told of an epoch that is durable what changed in all relations that can be looked at; of a state in parts,
    which no process knows the whole of, it is told nothing. A `profile` is filled with what rules cost, in one piece too.
    `follow` makes what has join orders follow the data, for each session there is; it goes to the workers.
    """

    wanted: Iterable[str] | None = None
    sinks: Sequence[Sink] = ()
    strategy: str = "support"
    limits: Limits = Limits()
    snapshot_every: int = SNAPSHOT_EVERY
    retain: int = RETAIN
    partitions: int | None = None
    resident_limit: int = RESIDENT_LIMIT
    on_epoch: Callable[[EpochReport], object] | None = None
    on_choice: Callable[[Division], object] | None = None
    on_changes: Callable[[EpochReport, Changes], object] | None = None
    profile: Profile | None = None
    follow: Callable[[Reader], Follower] | None = None
