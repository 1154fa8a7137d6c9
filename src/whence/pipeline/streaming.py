"""Views maintained by a streaming query: a micro-batch comes in, its epochs are applied, Spark commits it."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from whence.io.updates import DeadLetterFile, Schema
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.batches import Batches, RecordBatches, RelationBatches, is_done
from whence.pipeline.failures import reported_failures
from whence.pipeline.files import StateError, write_file
from whence.pipeline.frames import BadInput, Inputs
from whence.pipeline.keeper import Keeper
from whence.pipeline.options import Asked, RunOptions
from whence.pipeline.parts.keeping import Keeping
from whence.pipeline.parts.open import open_state
from whence.pipeline.report import EpochReport
from whence.plan.record import with_derivations
from whence.session import Session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery

_POLL = 0.1


def maintain(
    program: Program,
    inputs: Mapping[str, DataFrame] | DataFrame | str | Path,
    *,
    state: str | Path,
    facts: Mapping[str, Iterable[Tuple]] | None = None,
    trigger: str | None = None,
    once: bool = False,
    spark: SparkSession | None = None,
    listeners: Sequence[StreamingQueryListener] = (),
    record: Iterable[str] = (),
    **asked: Unpack[Asked],
) -> Maintenance:
    """Starts a streaming query that keeps the views of a program current, with their state in the folder `state`.

    `inputs` gives each base relation a streaming DataFrame of updates: the relation's columns, and if need be `op` (`+` or
    `-`; rows without it are insertions), `time`, and `seq`, which orders the rows of a micro-batch. Or it is one streaming
    DataFrame whose column `value` holds update records as JSON, again with `seq` if need be, or a folder of files of them.

    A micro-batch is an epoch; commits among JSON records end more. `trigger` is Spark's processing time, such as
    "10 seconds"; `once` stops after what is there. Records that cannot be applied go to `dead_letters.jsonl` in the state.
    `facts` are there from the start of a new state. The derivations of the relations in `record` become outputs, a table for
    each rule; sinks that are to have them are made with `with_derivations(program, record)`.

    `sinks` take the changes, and are closed when the query has ended; `on_epoch` is told what each epoch did. `strategy` and
    `limits` are those of `Session`. A snapshot is made after `snapshot_every` epochs; the views of the last `retain` are kept.

    The state is in the driver's memory while its base relations and views have no more than `resident_limit` rows. A larger
    one, or any if `partitions` says how many, is in parts in the memory of Spark's workers, if the program can be taken apart
    so. `on_choice` is told which it is, and why.

    `listeners` are told Spark's events of this query; its progress has, among the observed metrics, `whence`: what the epochs of
    the micro-batch did. Raises StateError and BadInput.
    """
    record = tuple(record)
    if record:
        program = with_derivations(program, record)
    folder = Path(state).resolve()  # Java's current folder may be another
    opened = open_state(folder, program)
    keeping = Keeping(program, RunOptions(**asked))
    with ExitStack() as undo:
        undo.callback(opened.close)
        letters = DeadLetterFile(folder / "dead_letters.jsonl", resume=True)
        frame, batches = _shaped(program, inputs, letters, spark)
        choice = keeping.choose(opened, facts, lambda: frame.sparkSession)
        keeper = keeping.start(choice, opened, facts, lambda: frame.sparkSession)
        undo.callback(keeper.close, delivered=False)
        running = Maintenance(
            keeping, keeper, frame, batches, folder / "checkpoint", trigger=trigger, once=once, listeners=listeners
        )
        undo.pop_all()
    return running


def _shaped(
    program: Program,
    inputs: Mapping[str, DataFrame] | DataFrame | str | Path,
    letters: DeadLetterFile,
    spark: SparkSession | None,
) -> tuple[DataFrame, Batches]:
    if isinstance(inputs, Mapping):
        relations = Inputs.of(program, inputs)
        return relations.union(inputs), RelationBatches(relations, letters)
    if isinstance(inputs, str | Path):
        inputs = read_folder(_session(spark), Path(inputs).resolve()).selectExpr("value", "struct(file, block) AS seq")
    if "value" not in inputs.columns:
        raise BadInput(f"update records are read from a column value; there are {', '.join(inputs.columns)}")
    wanted = [name for name in ("value", "seq") if name in inputs.columns]
    return inputs.select(*wanted), RecordBatches(Schema.of(program), letters)


def _session(spark: SparkSession | None) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    return spark or SparkSession.builder.getOrCreate()


def read_folder(spark: SparkSession, folder: Path) -> DataFrame:
    """The lines of a folder's files as they appear, as bytes in the column `value`, with their file and the part of it."""
    lines = (
        spark.readStream.format("text").option("lineSep", "\n").option("pathGlobFilter", "*.jsonl").load(str(folder))
    )
    return lines.selectExpr(
        "CAST(value AS BINARY) AS value", "_metadata.file_path AS file", "_metadata.file_block_start AS block"
    )


class Maintenance:
    """A streaming query and the views it keeps current."""

    def __init__(
        self,
        keeping: Keeping,
        keeper: Keeper,
        frame: DataFrame,
        batches: Batches,
        checkpoint: Path,
        *,
        trigger: str | None = None,
        once: bool = False,
        listeners: Sequence[StreamingQueryListener] = (),
    ) -> None:
        from whence.pipeline.listening import EpochListener  # noqa: PLC0415 - Spark is not imported before it is used

        self.keeper = keeper
        self._keeping = keeping
        self.progress: EpochReport | None = None
        self.seconds = 0.0  # in batches, apart from what Spark does with them
        self._asked = threading.Event()
        self._batches = batches
        self._failure: BaseException | None = None
        self._stopping = False
        self._one_at_a_time = threading.Lock()
        self._checkpoint = checkpoint
        self._refuse_another_checkpoint()
        self._refuse_lost_batches()
        self._listener = EpochListener(frame.sparkSession, lambda: query_id(checkpoint), listeners)
        writer = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(checkpoint))
        if once:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        self.query: StreamingQuery = writer.start()

    @property
    def session(self) -> Session:
        """Raises StateError if the state is in parts: no session has all of it."""
        return self.keeper.session

    def view(self, name: str) -> set[Tuple]:
        """The tuples of a relation after the last epoch."""
        return self.keeper.view(name)

    def view_at(self, name: str, epoch: int) -> set[Tuple]:
        """The tuples of an output relation after an epoch that is still retained."""
        return self.keeper.view_at(name, epoch)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Waits until the query ends, and raises what ended it. Says whether it has ended.

        In the main thread SIGTERM stops the query after the epoch under way.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with _on_terminate(self._asked.set):
            while self.query.isActive and not self._asked.wait(_POLL):
                if deadline is not None and time.monotonic() >= deadline:
                    return False
        self.stop()
        return True

    def finish(self) -> None:
        """Waits until everything that is there now has been applied, or the query has failed."""
        from pyspark.errors import StreamingQueryException  # noqa: PLC0415

        # What failed is raised when the query is stopped.
        with suppress(StreamingQueryException):
            self.query.processAllAvailable()

    def stop(self) -> None:
        """Ends the query after the epoch under way, with its state committed. Raises what the query failed with."""
        # A batch that comes now waits for the lock, is interrupted by Spark, and comes again after a restart.
        with self._one_at_a_time:
            failure = self._failure or self.query.exception()
            self._stopping = True
            self.query.stop()
        self.keeper.close(delivered=failure is None)
        if failure is not None:
            raise failure

    def _take(self, frame: DataFrame, batch: int) -> None:
        with self._one_at_a_time:
            if self._stopping:
                raise InterruptedError("the query is being stopped")
            try:
                self._apply(frame, batch)
            except BaseException as error:
                # Spark passes on only its text.
                self._failure = error
                raise

    def _apply(self, frame: DataFrame, batch: int) -> None:
        rows = _fetch(frame, batch)
        started = time.perf_counter()
        epochs = self._batches.epochs(batch, rows, self.keeper.source)
        query = query_id(self._checkpoint)
        reports = self.keeper.apply(replace(each, source={**each.source, "query": query}) for each in epochs)
        if reports:
            self.progress = reports[-1]
        if not is_done(batch, self.keeper.source):
            # Spark will commit a batch whose end the log knows nothing of: there was no epoch in it, or none at its end.
            write_file(self._last_batch, json.dumps({"query": query, "batch": batch}).encode())
        self._listener.applied(batch, reports)
        self.keeper = self._keeping.outgrown(self.keeper, frame.sparkSession)
        self.seconds += time.perf_counter() - started

    def _refuse_another_checkpoint(self) -> None:
        """Numbers of batches mean something only within one query."""
        expected = self.keeper.source.get("query")
        if expected is not None and query_id(self._checkpoint) != expected:
            problem = f"{self._checkpoint} is not the checkpoint that the state was made with: batches could be lost"
            raise StateError([problem], hints=["restore the folder from a copy, or start anew with another one"])

    @property
    def _last_batch(self) -> Path:
        """Names the last batch that did not end with an epoch, if there was one."""
        return self._checkpoint.parent / "last_batch.json"

    def _refuse_lost_batches(self) -> None:
        """What Spark has committed it does not bring again: the state has to have all of it."""
        committed = last_committed(self._checkpoint)
        source = self.keeper.source
        held = source.get("batch", 0) - (not source.get("whole", False)) if "batch" in source else -1
        if self._last_batch.exists():
            last = json.loads(self._last_batch.read_bytes())
            if last["query"] == query_id(self._checkpoint):
                held = max(held, last["batch"])
        if committed > held:
            problem = (
                f"{self._checkpoint} says that micro-batch {committed} is done, but the log ends with epoch {self.keeper.epoch}, "
                f"{f'of micro-batch {held}' if held >= 0 else 'before the first one'}: epochs are missing"
            )
            raise StateError([problem], hints=["restore the folder from a copy, or start anew with another one"])


def last_committed(checkpoint: Path) -> int:
    """The last micro-batch that Spark is done with, or -1."""
    commits = checkpoint / "commits"
    names = [path.name for path in commits.iterdir()] if commits.exists() else []
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _fetch(frame: DataFrame, batch: int) -> pa.Table:
    with reported_failures(f"Spark could not bring micro-batch {batch}"):
        return frame.toArrow()


def query_id(checkpoint: Path) -> str | None:
    """The identity that Spark gave the query, which it keeps in its checkpoint."""
    path = checkpoint / "metadata"
    return str(json.loads(path.read_bytes())["id"]) if path.exists() else None


@contextmanager
def _on_terminate(act: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
