from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from whence.pipeline.spark_session import start_spark

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("whence", deadline=None)
settings.load_profile("whence")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for all tests: it takes seconds to start."""
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    session = start_spark("local[2]", log)
    yield session
    session.stop()
