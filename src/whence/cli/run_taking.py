"""How a run takes updates: through a keeper, in this process or on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from whence.cli.run_summary import Totals
from whence.engine.profile import Profile, waited
from whence.io import updates as records
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.folder import Store
from whence.pipeline.keeper import Keeper, ResidentKeeper
from whence.pipeline.parts.keeping import Keeping
from whence.pipeline.records import Bury
from whence.pipeline.sources.named import NamedSource, NamedSources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Facts = Mapping[str, Iterable[Tuple]]


class ToldCosts:
    """What rules cost, told beside the state while the run goes on."""

    def __init__(self, costs: Profile | None, state: Path | None) -> None:
        self._costs, self._state = costs, state
        self._after: Callable[[], object] | None = None

    def begin(self, keeper: Keeper) -> None:
        if self._costs is not None and self._state is not None and isinstance(keeper, ResidentKeeper):
            from whence.profile.file import ProfileFile  # noqa: PLC0415 - few ask for it

            file, session = ProfileFile(self._state, self._costs), keeper.session
            self._after = lambda: file.after_epoch(session)

    def after_epoch(self) -> None:
        if self._after is not None:
            self._after()


@dataclass(frozen=True)
class Taking:
    """Lines taken through a keeper, one way or the other; the one that came to the end is given."""

    program: Program
    keeping: Keeping
    updates: NamedSource | NamedSources
    epoch_size: int | None
    bury: Bury
    totals: Totals
    follow: bool
    stopped: Callable[[], bool]
    told: ToldCosts

    def in_process(self, store: Store | None, facts: Facts | None) -> Keeper:
        keeper = self._started(store, lambda: self.keeping.resident(store, facts))
        source = self.updates.opened(
            self.program, self.bury, size=self.epoch_size, follow=self.follow, stopped=self.stopped
        )
        with ExitStack() as last:
            last.callback(source.close)
            epochs = source.epochs(keeper.source)
            while True:
                with waited(self.keeping.options.profile, "updates"):
                    epoch = next(epochs, None)
                if epoch is None:
                    break
                keeper.apply([epoch])
        keeper.close()
        return keeper

    def on_spark(self, store: Store | None, facts: Facts | None, master: str | None) -> Keeper:
        # Nobody who runs in this process waits for it.
        from whence.backends.spark.session import running_spark  # noqa: PLC0415
        from whence.pipeline.spooled import SpooledRun  # noqa: PLC0415

        with ExitStack() as stack:
            name = stack.enter_context(TemporaryDirectory(prefix="whence")) if store is None else store.folder
            folder = Path(name).resolve()

            def spark() -> SparkSession:
                """There is one session, whoever asks first."""
                return stack.enter_context(running_spark(master, folder / "spark.log"))

            choice = self.keeping.choose(store, facts, spark)
            if choice.parts is not None:
                spark()
            keeper = self._started(store, lambda: self.keeping.start(choice, store, facts, spark))
            run = SpooledRun(self.keeping, keeper, folder, records.Schema.of(self.program), self.epoch_size, self.bury)
            assert isinstance(self.updates, NamedSource)  # several are read in one process
            lines = self.updates.lines(run.begin(), run.schema, follow=self.follow, stopped=self.stopped)
            return run.run(lines, spark())

    def _started(self, store: Store | None, start: Callable[[], Keeper]) -> Keeper:
        is_resumed = store is not None and not store.is_new
        started = time.perf_counter()
        keeper = start()
        self.told.begin(keeper)
        self.totals.start(0 if is_resumed else keeper.sizes.total(), time.perf_counter() - started)
        return keeper
