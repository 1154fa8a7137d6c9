"""One Spark session for all tests: two cores, few partitions, no web page, nothing left behind."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from whence.backends.spark.session import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the gateway to the JVM
        session = spark_session("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
