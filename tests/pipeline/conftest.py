from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.postgres_server import server

from whence.pipeline.spark_session import start_spark

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for all tests: it takes seconds to start."""
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    session = start_spark("local[2]", log)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with server() as url:
        yield url


@pytest.fixture
def database(postgres_server: str) -> str:
    """The URL of an empty database."""
    name = f"test_{next(_NUMBERS)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_server.replace("/postgres?", f"/{name}?")


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection
