from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from whence.pipeline.spark_session import start_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for all tests: it takes seconds to start."""
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    session = start_spark("local[2]", log)
    yield session
    session.stop()
