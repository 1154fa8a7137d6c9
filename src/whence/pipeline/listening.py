"""What epochs did, on Spark's own listeners.

Spark's progress of a micro-batch knows rows and times, but not what became of the rows: that is only known to the function
which it calls with them. Listeners given to `maintain` are told both at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from whence.pipeline.report import EpochReport

METRICS = "whence"


class EpochListener(StreamingQueryListener):
    """Hands the events of one query on, with what the epochs of the micro-batch did among its observed metrics.

    `own` tells the identity of the query, which Spark's events bear.
    """

    def __init__(
        self, spark: SparkSession, own: Callable[[], str | None], listeners: Sequence[StreamingQueryListener]
    ) -> None:
        self._own = own
        self._listeners = listeners
        self._reports: dict[int, Sequence[EpochReport]] = {}
        if listeners:
            spark.streams.addListener(self)

    def applied(self, batch: int, reports: Sequence[EpochReport]) -> None:
        """Before Spark tells the progress of the batch."""
        if self._listeners and reports:
            self._reports[batch] = reports

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        if self._is_own(event.id):
            for each in self._listeners:
                each.onQueryStarted(event)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        if self._is_own(event.progress.id):
            reports = self._reports.pop(event.progress.batchId, ())
            if reports:
                event.progress.observedMetrics[METRICS] = _summed(reports)
            for each in self._listeners:
                each.onQueryProgress(event)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        if self._is_own(event.id):
            for each in self._listeners:
                each.onQueryIdle(event)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        if self._is_own(event.id):
            for each in self._listeners:
                each.onQueryTerminated(event)

    def _is_own(self, found: object) -> bool:
        return str(found) == self._own()


def _summed(reports: Sequence[EpochReport]) -> Row:
    last = reports[-1]
    return Row(
        epoch=last.epoch,
        epochs=len(reports),
        updates=sum(each.updates for each in reports),
        no_ops=sum(each.no_ops for each in reports),
        inserted=sum(each.inserted for each in reports),
        deleted=sum(each.deleted for each in reports),
        rounds=sum(each.rounds for each in reports),
        seconds=sum(each.seconds for each in reports),
        tuples=sum(last.tuples.values()),
        state_bytes=last.state_bytes,
    )
