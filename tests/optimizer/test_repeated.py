"""A query that is run again on Spark is asked in the order that its last run suggests, and answers the same."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from whence.optimizer import QueryError
from whence.optimizer.repeated import RepeatedQuery

TEXT = "SELECT big.x, count(*) AS times FROM big, wide, few WHERE big.k = wide.j AND wide.n = few.m AND few.f < 2 GROUP BY big.x"


@pytest.fixture
def tables(spark: SparkSession) -> SparkSession:
    spark.createDataFrame([(at % 50, at % 3) for at in range(500)], "k int, x int").createOrReplaceTempView("big")
    spark.createDataFrame([(at % 50, at) for at in range(1000)], "j int, n int").createOrReplaceTempView("wide")
    spark.createDataFrame([(at, at) for at in range(100)], "m int, f int").createOrReplaceTempView("few")
    return spark


def test_the_second_run_joins_what_the_first_saw_to_be_small(tables: SparkSession) -> None:
    query = RepeatedQuery(tables, TEXT)
    first = query.run()
    assert first == tables.sql(TEXT).collect()
    assert sum(row.times for row in first) == 20
    before = query.seen.joined
    assert "wide AS wide JOIN few AS few" in query.text
    assert sorted(query.run()) == sorted(first)
    assert query.seen.joined < before


def test_a_table_that_occurs_twice_is_refused(tables: SparkSession) -> None:
    with pytest.raises(QueryError, match="occurs twice"):
        RepeatedQuery(tables, "SELECT a.x FROM big a, big b WHERE a.k = b.k")
