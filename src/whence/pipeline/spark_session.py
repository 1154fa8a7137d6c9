"""Spark for a run on this machine, or on the cluster of another master, with its own log out of the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from whence.io import FactError
from whence.io.updates import reported_writing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def start_spark(master: str, log: Path) -> SparkSession:
    """The session that is there, or a new one, whose Java process writes to `log` what it would print."""
    # Importing it takes a second.
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if SparkSession.getActiveSession() is None:
        # Its Python workers would be whatever python3 is on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings = SparkConf().setMaster(master).setAppName("whence").setAll(list(_SETTINGS.items()))
        with reported_writing(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                output = {"stdout": file, "stderr": file}
                try:
                    SparkContext(gateway=launch_gateway(settings, output), conf=settings)  # type: ignore[no-untyped-call]
                except (PySparkRuntimeError, Py4JError) as error:
                    text = str(error).splitlines()[0]
                    hints = [f"{log} may say why", "Spark needs Java 17 or newer; --no-spark runs without it"]
                    raise FactError([f"Spark does not start on {master}: {text}"], hints=hints) from error
    return SparkSession.builder.getOrCreate()


@contextmanager
def running_spark(master: str, log: Path) -> Iterator[SparkSession]:
    """As `start_spark`; a session that was not there before is stopped."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    was_there = SparkSession.getActiveSession() is not None
    spark = start_spark(master, log)
    try:
        yield spark
    finally:
        if not was_there:
            spark.stop()
