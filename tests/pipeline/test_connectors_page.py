"""What docs/connectors.md shows in Python is run here: on a database, a broker and a folder of its own."""

from __future__ import annotations

import doctest
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.docs.blocks import blocks
from tests.pipeline.sources.broker import Broker

from whence.pipeline.sources.capture import capture_sql

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"


def test_the_page_tells_the_truth(
    spark: SparkSession,
    connection: psycopg.Connection,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection.execute("CREATE TABLE link (src text, dst text, PRIMARY KEY (src, dst))")
    connection.execute("INSERT INTO link VALUES ('a', 'b'), ('b', 'c')")
    connection.execute(capture_sql(["link"]))
    broker = Broker()
    broker.send("links", '{"op": "+", "src": "x", "dst": "y"}')
    monkeypatch.chdir(tmp_path)
    text = "\n".join(block.text for block in blocks(PAGE) if block.language == "python")
    text = text.replace("postgresql://localhost/network", database).replace("localhost:9092", broker.address)
    failures: list[str] = []
    doctest.DocTestRunner().run(
        doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0), out=failures.append
    )
    assert not failures, "".join(failures)
