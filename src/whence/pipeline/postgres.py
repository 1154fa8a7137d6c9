"""Connections to PostgreSQL, and names in its queries."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

from whence.io import FactError
from whence.pipeline.extras import extra

with extra("postgres"):
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict

Connection = psycopg.Connection[tuple[Any, ...]]

_HINT = (
    "write postgresql://USER@HOST:PORT/DATABASE, with %XX for special characters, or what else libpq takes; "
    "a password may be in PGPASSWORD or in ~/.pgpass"
)


class PostgresError(FactError):
    """A database that cannot be reached. What is said of its URL does not include the password."""


def url_and_schema(text: str) -> tuple[str, str]:
    """The URL as libpq takes it, and the schema of the tables: `public`, or what follows `schema=`."""
    address, _, query = text.partition("?")
    settings = [each for each in query.split("&") if each]
    schema = parse_qs(query).get("schema", ["public"])[-1]
    rest = "&".join(each for each in settings if not each.startswith("schema="))
    return f"{address}?{rest}" if rest else address, schema


def connect(url: str, *, autocommit: bool = False) -> Connection:
    """Raises PostgresError."""
    try:
        conninfo_to_dict(url)
    except psycopg.Error:
        # libpq quotes what it cannot read, and that may be the password.
        raise PostgresError(["this is not a URL of a PostgreSQL database"], hints=[_HINT]) from None
    try:
        return psycopg.connect(url, autocommit=autocommit)
    except psycopg.OperationalError as error:
        reason = str(error).strip().removeprefix("connection failed: ")
        if any(secret in reason for secret in _secrets(url)):
            reason = "the URL names no server that is there"
        raise PostgresError([f"cannot connect to PostgreSQL: {reason}"], hints=[_HINT]) from None


def _secrets(url: str) -> list[str]:
    """What may be part of the password: with a character that should have been escaped, libpq takes it for something else."""
    credentials, at, _ = url.partition("://")[2].rpartition("@")
    password = credentials.partition(":")[2] if at else url.partition("://")[2].partition(":")[2]
    found = [each for each in re.split(r"[:/@?&#]", password) if len(each) > 1]
    # Without an @ the part after the colon is a port, unless it is not a number.
    return found if at else [each for each in found if not each.isdigit()]


def identifier(*names: str) -> sql.Identifier:
    """A name inside a query with parameters, where % begins one."""
    return sql.Identifier(*(name.replace("%", "%%") for name in names))
