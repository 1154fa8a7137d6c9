"""Views maintained by a streaming query: a micro-batch comes in, its epochs are applied, Spark commits it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.keeper import EpochReport
from whence.pipeline.sinks import Sink
from whence.reference import Limits
from whence.session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SNAPSHOT_EVERY = 500
RETAIN = 1000


def maintain(
    program: Program,
    inputs: Mapping[str, DataFrame] | DataFrame | str | Path,
    *,
    state: str | Path,
    sinks: Sequence[Sink] = (),
    facts: Mapping[str, Iterable[Tuple]] | None = None,
    trigger: str | None = None,
    once: bool = False,
    spark: SparkSession | None = None,
    on_epoch: Callable[[EpochReport], object] | None = None,
    snapshot_every: int = SNAPSHOT_EVERY,
    retain: int = RETAIN,
    strategy: str = "support",
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> Maintenance:
    """Starts a streaming query that keeps the views of a program current, with their state in the folder `state`.

    `inputs` gives each base relation a streaming DataFrame of updates: the relation's columns, and if need be `op` (`+` or
    `-`; rows without it are insertions), `time`, and `seq`, which orders the rows of a micro-batch. Or it is one streaming
    DataFrame whose column `value` holds update records as JSON, or a folder of files of such records.

    A micro-batch is an epoch; commits in JSON records end more. `trigger` is Spark's processing time, such as "10 seconds";
    `once` stops after what is there.
    """
    raise NotImplementedError


class Maintenance:
    """A running query and the views it keeps."""

    query: StreamingQuery
    session: Session
    progress: EpochReport | None

    def view(self, name: str) -> set[Tuple]:
        """The tuples of a relation after the last epoch."""
        raise NotImplementedError

    def view_at(self, name: str, epoch: int) -> set[Tuple]:
        """The tuples of an output relation after an epoch that is still retained."""
        raise NotImplementedError

    def await_termination(self, timeout: float | None = None) -> bool:
        """Waits until the query ends, and raises what ended it. Says whether it has ended."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends the query after the epoch under way, with its state committed."""
        raise NotImplementedError
