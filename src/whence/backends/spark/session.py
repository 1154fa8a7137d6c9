"""Spark sessions."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

# Errors come back as exceptions; what Spark writes besides is of use to those who configure it themselves.
QUIET = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"


def spark_session(master: str | None = None) -> SparkSession:
    """The session in use, or a new one on `master` (all cores of this machine, if Spark's configuration names no other)."""
    builder = SparkSession.builder.appName("whence").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.driver.extraJavaOptions", QUIET)
    return (builder.master(master) if master else builder).getOrCreate()


def use_this_python(spark: SparkSession) -> None:
    """Local tasks run on the Python that runs this, not on the first python3 of the PATH, which may lack Whence."""
    context = spark.sparkContext
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
