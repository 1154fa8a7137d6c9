"""Spark for a run on this machine, or on the cluster of another master, with its own log out of the way."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

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
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if SparkSession.getActiveSession() is None:
        # Functions and sources in Python run in this environment, and not in whatever python3 is on the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings = SparkConf().setMaster(master).setAppName("whence").setAll(list(_SETTINGS.items()))
        with reported_writing(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                gateway = launch_gateway(settings, {"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]
        SparkContext(gateway=gateway, conf=settings)
    return SparkSession.builder.getOrCreate()
