"""Spark sessions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from whence.io import FactError
from whence.io.updates import reported_writing

# Errors come back as exceptions; what Spark writes besides is of use to those who configure it themselves.
QUIET = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
# Without Hadoop's native library, Spark's usual way to write checkpoints starts processes for each file, for more than half of
# a small micro-batch. This one writes the same files; it needs a file system that renames at once, as local ones do.
CHECKPOINT_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
# Workers begin with the engine loaded.
DAEMON = "whence.backends.spark.daemon"
_SETTINGS = {
    "spark.app.name": "whence",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    **CHECKPOINT_FILES,
}


def spark_session(master: str | None = None, log: Path | None = None) -> SparkSession:
    """The session in use, or a new one on `master` (all cores of this machine, if Spark's configuration names no other).

    What the Java process of a new one prints goes to `log`; without it, it is silent. Raises FactError if Spark does not start.
    """
    if SparkContext._active_spark_context is None:  # noqa: SLF001 - a thread may see no session although there is one
        _start(master, log)
    return SparkSession.builder.getOrCreate()


@contextmanager
def running_spark(master: str | None, log: Path) -> Iterator[SparkSession]:
    """As `spark_session`; one that was not there before is stopped."""
    was_there = SparkContext._active_spark_context is not None  # noqa: SLF001
    spark = spark_session(master, log)
    try:
        yield spark
    finally:
        if not was_there:
            spark.stop()


def use_this_python(spark: SparkSession) -> None:
    """Local tasks run on the Python that runs this, not on the first python3 of the PATH, which may lack Whence."""
    context = spark.sparkContext
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def _start(master: str | None, log: Path | None) -> None:
    # Tasks would run on whatever python3 is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf().setAll(list(_SETTINGS.items()))
    if master is not None:
        settings.setMaster(master)
    if _is_here(str(settings.get("spark.master", "local[*]"))):
        settings.set("spark.python.daemon.module", DAEMON)
    if log is None:
        settings.set("spark.driver.extraJavaOptions", QUIET)
        _connect(settings, None, "Spark needs Java 17 or newer")
        return
    with reported_writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            _connect(settings, {"stdout": file, "stderr": file}, f"{log} may say why", "Spark needs Java 17 or newer")


def _is_here(master: str) -> bool:
    """Whether tasks run in this process of Java, and so find what Python finds here."""
    return master.startswith("local") and not master.startswith("local-cluster")


def _connect(settings: SparkConf, output: dict[str, object] | None, *hints: str) -> None:
    try:
        gateway = launch_gateway(settings, output)  # type: ignore[no-untyped-call]
        SparkContext(gateway=gateway, conf=settings)
    except (PySparkRuntimeError, Py4JError) as error:
        where = settings.get("spark.master", "local[*]")
        problem = f"Spark does not start on {where}: {str(error).splitlines()[0]}"
        raise FactError([problem], hints=list(hints)) from error
