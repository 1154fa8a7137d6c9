"""How the views of a program are kept: in the driver while they are few, in parts as asked for or once they outgrow it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whence.io.changes import Changes
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.pipeline.keeper import Keeper
from whence.pipeline.parts.open import RESIDENT_LIMIT, Choice, choose, in_parts
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.report import EpochReport
from whence.pipeline.sinks import Sink
from whence.pipeline.store import RETAIN, SNAPSHOT_EVERY, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from whence.pipeline.parts.keeper import PartedKeeper


@dataclass(frozen=True)
class Keeping:
    """What is asked of a run, whichever way its state is kept. Without a number of partitions, `resident_limit` decides."""

    program: Program
    wanted: Iterable[str] | None = None
    sinks: Sequence[Sink] = ()
    strategy: str = "support"
    limits: Limits = Limits()
    snapshot_every: int = SNAPSHOT_EVERY
    retain: int = RETAIN
    partitions: int | None = None
    resident_limit: int = RESIDENT_LIMIT
    on_epoch: Callable[[EpochReport], object] | None = None
    on_choice: Callable[[Choice], object] | None = None

    def choose(
        self,
        state: Store | PartedStore | None,
        facts: Mapping[str, Iterable[Tuple]] | None,
        spark: Callable[[], SparkSession],
    ) -> Choice:
        """Spark is started only if its size matters. Raises StateError if the state cannot be kept as asked for."""
        if state is None:
            return Choice(None, "there is no folder for it")
        choice = choose(
            state,
            facts or {},
            partitions=self.partitions,
            limit=self.resident_limit,
            cores=lambda: spark().sparkContext.defaultParallelism,
        )
        if self.on_choice is not None:
            self.on_choice(choice)
        return choice

    def start(
        self,
        choice: Choice,
        state: Store | PartedStore | None,
        facts: Mapping[str, Iterable[Tuple]] | None,
        spark: Callable[[], SparkSession],
    ) -> Keeper | PartedKeeper:
        if choice.parts is None:
            assert not isinstance(state, PartedStore)
            return self.resident(state, facts)
        assert state is not None
        return self._parted(state, choice.parts, spark(), facts)

    def resident(self, store: Store | None, facts: Mapping[str, Iterable[Tuple]] | None) -> Keeper:
        return Keeper(
            self.program,
            wanted=self.wanted,
            store=store,
            sinks=self.sinks,
            facts=facts,
            strategy=self.strategy,
            limits=self.limits,
            snapshot_every=self.snapshot_every,
            retain=self.retain,
            on_epoch=self.on_epoch,
        )

    def outgrown(self, keeper: Keeper | PartedKeeper, spark: SparkSession) -> Keeper | PartedKeeper:
        """The same keeper, or one that goes on in parts from the snapshot just made, if that has too many rows."""
        if not isinstance(keeper, Keeper) or keeper.store is None or not keeper.has_snapshot:
            return keeper
        if keeper.store.rows() <= self.resident_limit:
            return keeper
        choice = self.choose(keeper.store, None, lambda: spark)
        if choice.parts is None:
            return keeper
        keeper.hand_over()
        return self._parted(keeper.store, choice.parts, spark, None)

    def _parted(
        self,
        state: Store | PartedStore,
        parts: int,
        spark: SparkSession,
        facts: Mapping[str, Iterable[Tuple]] | None,
    ) -> PartedKeeper:
        from whence.pipeline.parts.keeper import NAP, PartedKeeper, on_spark  # noqa: PLC0415 - it imports Spark

        return PartedKeeper(
            in_parts(state, parts, self._deliver),
            on_spark(spark),
            tasks=spark.sparkContext.defaultParallelism,
            nap=NAP,
            sinks=self.sinks,
            facts=facts,
            strategy=self.strategy,
            limits=self.limits,
            snapshot_every=self.snapshot_every,
            retain=self.retain,
            on_epoch=self.on_epoch,
        )

    def _deliver(self, epoch: int, changes: Changes) -> None:
        for sink in self.sinks:
            sink.write(epoch, changes)
