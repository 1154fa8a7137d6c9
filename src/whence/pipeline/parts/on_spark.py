"""Parts in the memory of Spark's Python workers: tasks make them there, and from then on their workers are asked for them.

A job takes some tenths of a second, a call less than a thousandth. So tasks are needed only where there are no parts yet, or no
longer; and from time to time, since Spark ends workers that have had none for a minute.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from whence.backends.spark.session import use_this_python
from whence.pipeline.failures import BatchFailed, reported_failures
from whence.pipeline.files import StateError
from whence.pipeline.parts.calls import Address, Lines, Unreachable
from whence.pipeline.parts.host import make
from whence.pipeline.parts.orders import EXPECTED, Action, Done
from whence.pipeline.parts.worker import Call, Order, at_home

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

# Has an order carried out.
Run = Callable[[Order], list[Done]]

_PATIENCE = 5.0  # seconds until a task no longer waits for the others to start


class OnSpark:
    """For parts that need nothing of each other."""

    def __init__(self, spark: SparkSession) -> None:
        use_this_python(spark)
        self._spark = spark
        self._secret = secrets.token_bytes(32)
        self._lines = Lines(self._secret)
        self._run = ""
        self._addresses: dict[Address, list[int]] = {}

    def __call__(self, order: Order) -> list[Done]:
        is_there = self._addresses and self._run == order.run
        if is_there and order.action not in (Action.BEGIN, Action.RECALL):
            done = self._asked(order)
            if done is not None:
                return done
        return self._by_tasks(order)

    def _asked(self, order: Order) -> list[Done] | None:
        """None if a part is not there any more: tasks begin again with all of them."""
        with _running(self._spark, order):
            told = order.to_who_knows_the_job()
            try:
                answers = self._lines.call_all(
                    {address: Call(told, parts) for address, parts in self._addresses.items()}
                )
            except Unreachable:
                return None
        return None if None in answers else [done for each in answers for done in each]

    def _by_tasks(self, order: Order) -> list[Done]:
        self._run, self._addresses = order.run, {}
        self._lines.close()
        with _running(self._spark, order):
            here = partial(at_home, order, self._secret, _host(self._spark))
            found = _tasks(self._spark, order).flatMap(here).collect()
        for address, done in found:
            self._addresses.setdefault(address, []).append(done.part)
        return [done for _, done in found]


class SparkCarrier:
    """For parts that ship each other what they need."""

    def __init__(self, spark: SparkSession) -> None:
        use_this_python(spark)
        self._spark = spark

    def make(self, order: Order, made: str, secret: bytes) -> dict[int, Address | Done]:
        with _running(self._spark, order):
            tasks = _tasks(self._spark, order)
            return dict(tasks.flatMap(partial(_make, order, made, secret, _host(self._spark))).collect())

    def wake(self, order: Order) -> None:
        with _running(self._spark, order):
            _tasks(self._spark, order).map(abs).collect()


def _host(spark: SparkSession) -> str:
    """Where workers listen; empty if that is the machine that they are on."""
    master = str(spark.sparkContext.master)
    return "127.0.0.1" if master.startswith("local[") or master == "local" else ""


def _running(spark: SparkSession, order: Order) -> Any:
    if spark.sparkContext._jsc is None:  # noqa: SLF001 - there is no other way to tell
        raise BatchFailed(["Spark has been stopped"])
    return reported_failures(f"Spark could not {order.action.value} the parts of the state")


def _tasks(spark: SparkSession, order: Order) -> RDD[int]:
    return spark.sparkContext.parallelize(range(order.tasks), order.tasks)


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
