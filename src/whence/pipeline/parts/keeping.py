"""How the views of a program are kept: in the driver while they are few, in parts as asked for or once they outgrow it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whence.io.changes import Changes
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.folder import Store
from whence.pipeline.keeper import Keeper, ResidentKeeper
from whence.pipeline.options import RunOptions
from whence.pipeline.parts.open import Division, choose, needs_each_other

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Facts = Mapping[str, Iterable[Tuple]]


@dataclass(frozen=True)
class Keeping:
    """Makes the keeper of a run, and another one when the state outgrows it."""

    program: Program
    options: RunOptions

    def choose(self, state: Store | None, facts: Facts | None, spark: Callable[[], SparkSession]) -> Division:
        """Spark is started only if its size matters. Raises StateError if the state cannot be kept as asked for."""
        if state is None:
            return Division(None, "there is no folder for it")
        choice = choose(
            state,
            facts or {},
            partitions=self.options.partitions,
            limit=self.options.resident_limit,
            cores=lambda: spark().sparkContext.defaultParallelism,
        )
        if choice.parts is not None and self.options.strategy != "support" and needs_each_other(state):
            problem = (
                f"parts that ship each other what they need are maintained by support, not {self.options.strategy}"
            )
            raise StateError([problem], hints=["leave out the strategy, or keep the state in one piece"])
        if self.options.on_choice is not None:
            self.options.on_choice(choice)
        return choice

    def start(
        self, choice: Division, state: Store | None, facts: Facts | None, spark: Callable[[], SparkSession]
    ) -> Keeper:
        if choice.parts is None:
            return self.resident(state, facts)
        assert state is not None
        return self._parted(state, choice.parts, spark(), facts)

    def resident(self, state: Store | None, facts: Facts | None) -> Keeper:
        """Raises StateError if the state is in parts."""
        return ResidentKeeper(self.program, self.options, store=None if state is None else state.whole(), facts=facts)

    def outgrown(self, keeper: Keeper, spark: SparkSession) -> Keeper:
        """The same keeper, or one that goes on in parts from the snapshot just made, if that has too many rows."""
        state = keeper.outgrown(self.options.resident_limit)
        if state is None:
            return keeper
        choice = self.choose(state, None, lambda: spark)
        if choice.parts is None:
            return keeper
        keeper.hand_over()
        return self._parted(state, choice.parts, spark, None)

    def _parted(self, state: Store, parts: int, spark: SparkSession, facts: Facts | None) -> Keeper:
        from whence.pipeline.parts.keeper import NAP, PartedKeeper  # noqa: PLC0415 - it imports Spark
        from whence.pipeline.parts.on_spark import OnSpark, SparkCarrier  # noqa: PLC0415
        from whence.pipeline.parts.rounds import Rounds  # noqa: PLC0415

        store = state.in_parts(parts, self._deliver)
        return PartedKeeper(
            store,
            Rounds(SparkCarrier(spark)) if store.manifest.ships else OnSpark(spark),
            self.options,
            tasks=spark.sparkContext.defaultParallelism,
            nap=NAP,
            facts=facts,
        )

    def _deliver(self, epoch: int, changes: Changes) -> None:
        for sink in self.options.sinks:
            sink.write(epoch, changes)
