from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("whence", deadline=None)
settings.load_profile("whence")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for all tests: it takes seconds to start."""
    from whence.pipeline.spark_session import start_spark  # noqa: PLC0415 - most tests do without

    session = start_spark("local[2]", tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.stop()
