from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from tests.pipeline.postgres_server import server

_NUMBERS = count(1)


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
