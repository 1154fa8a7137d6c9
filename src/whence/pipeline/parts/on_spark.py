"""Orders as jobs of Spark."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from whence.backends.spark.session import use_this_python
from whence.pipeline.failures import BatchFailed, reported_failures
from whence.pipeline.files import StateError
from whence.pipeline.parts.host import Address, Answer, Request, ask, make
from whence.pipeline.parts.orders import EXPECTED, Done
from whence.pipeline.parts.rounds import Item, Journey, Said, Way
from whence.pipeline.parts.worker import Order

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

# Has an order carried out by as many tasks as it asks for.
Run = Callable[[Order], list[Done]]

_PATIENCE = 5.0  # seconds until a task no longer waits for the others to start


def on_spark(spark: SparkSession) -> Run:
    """For parts that need nothing of each other."""
    use_this_python(spark)

    def run(order: Order) -> list[Done]:
        with _running(spark, order):
            return _tasks(spark, order).flatMap(order).collect()

    return run


class SparkCarrier:
    """For parts that ship each other what they need: rounds are stages."""

    def __init__(self, spark: SparkSession) -> None:
        use_this_python(spark)
        self._spark = spark
        is_local = str(spark.sparkContext.master).startswith("local[") or spark.sparkContext.master == "local"
        self._host = "127.0.0.1" if is_local else ""

    def make(self, order: Order, made: str, secret: bytes) -> dict[int, Address | Done]:
        with _running(self._spark, order):
            tasks = _tasks(self._spark, order)
            return dict(tasks.flatMap(partial(_make, order, made, secret, self._host)).collect())

    def carry(self, journey: Journey, way: Way, number: int, rounds: int) -> tuple[list[Said], int]:
        order = journey.order
        with _running(self._spark, order):
            items: RDD[Item] = _tasks(self._spark, order).flatMap(partial(journey.start, way, number))
            for each in range(1, rounds):
                items = _shuffled(items, order).mapPartitionsWithIndex(partial(journey.leg, number + each))
            said = _shuffled(items, order).mapPartitionsWithIndex(partial(journey.end, number + rounds))
            collected, shuffled = self._measured(said)
            return sorted(collected, key=lambda each: each.part), shuffled

    def ask(self, journey: Journey, number: int) -> list[Answer]:
        order = journey.order
        with _running(self._spark, order):
            found = dict(_tasks(self._spark, order).flatMap(partial(_asked, journey, number)).collect())
        return [found[part] for part in range(order.parts)]

    def _measured(self, said: RDD[Said]) -> tuple[list[Said], int]:
        """What a job gives, and the bytes that Spark says it has written for shuffles."""
        context, tag = self._spark.sparkContext, f"whence-{uuid4().hex}"
        context.addJobTag(tag)
        try:
            collected = said.collect()
        finally:
            context.removeJobTag(tag)
        scala: Any = context._jsc.sc()  # noqa: SLF001 - Python has no way to the figures of stages
        scala.listenerBus().waitUntilEmpty()
        tracker, figures = scala.statusTracker(), scala.statusStore()
        stages = {stage for job in tracker.getJobIdsForTag(tag) for stage in tracker.getJobInfo(job).get().stageIds()}
        return collected, sum(figures.lastStageAttempt(stage).shuffleWriteBytes() for stage in stages)


def _running(spark: SparkSession, order: Order) -> Any:
    if spark.sparkContext._jsc is None:  # noqa: SLF001 - there is no other way to tell
        raise BatchFailed(["Spark has been stopped"])
    return reported_failures(f"Spark could not {order.action.value} the parts of the state")


def _tasks(spark: SparkSession, order: Order) -> RDD[int]:
    return spark.sparkContext.parallelize(range(order.tasks), order.tasks)


def _shuffled(items: RDD[Item], order: Order) -> RDD[Item]:
    return items.partitionBy(order.tasks, int)


def _make(order: Order, made: str, secret: bytes, host: str, index: int) -> Iterable[tuple[int, Address | Done]]:
    """The parts of a task, in a worker that no other task has: those that are under way at the same time have one each."""
    if not order.exchange.exists():
        hint = "keep the state on a file system that all machines share"
        raise StateError([f"{order.folder} is not there on {socket.gethostname()}"], hints=[hint])
    (order.exchange / f"started-{made}-{index}").touch()
    until = time.monotonic() + _PATIENCE
    while len(list(order.exchange.glob(f"started-{made}-*"))) < order.tasks and time.monotonic() < until:
        time.sleep(0.01)
    return list(_made(order, made, secret, host or socket.gethostname(), index))


def _made(order: Order, made: str, secret: bytes, host: str, index: int) -> Iterator[tuple[int, Address | Done]]:
    for part in range(index, order.parts, order.tasks):
        try:
            yield part, make(order, made, part, secret, host)
        except EXPECTED as error:
            yield part, Done(part, failed=order.epoch + 1, error=error)


def _asked(journey: Journey, number: int, index: int) -> Iterator[tuple[int, Answer]]:
    order = journey.order
    for part in range(index, order.parts, order.tasks):
        request = Request(str(order.folder), journey.made, part, number, order=order)
        yield part, ask(journey.addresses[part], request, journey.secret)
