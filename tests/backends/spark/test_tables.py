"""Tables without a key on Spark: equal rows of DataFrames count each."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from whence import Session, load
from whence.spark import Mode, evaluate

ROWS = [(1, "x"), (1, "x"), (2, None), (2, None), (2, None), (3, "y")]
PROGRAM = load(
    "CREATE TABLE t(a BIGINT, s TEXT); CREATE TABLE link(x BIGINT, y BIGINT, PRIMARY KEY (x, y));"
    "CREATE VIEW n AS SELECT s, COUNT(*) AS n, SUM(a) AS total FROM t GROUP BY s;"
    "CREATE VIEW d AS SELECT DISTINCT a FROM t;"
    "CREATE RECURSIVE VIEW r(x, y) AS SELECT a, a FROM t UNION SELECT r.x, l.y FROM r JOIN link l ON l.x = r.y;"
    "CREATE VIEW ends AS SELECT r.y, COUNT(*) AS n FROM t JOIN r ON r.x = t.a GROUP BY r.y;",
    dialect="sql",
)


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.SHUFFLED, Mode.IN_TASK])
def test_equal_rows_count_as_in_one_process(spark: SparkSession, mode: Mode) -> None:
    links = [(1, 2), (2, 3)]
    inputs = {
        "t": spark.createDataFrame(ROWS, "a bigint, s string"),
        "link": spark.createDataFrame(links, "x bigint, y bigint"),
    }
    views = evaluate(PROGRAM, inputs, spark=spark, mode=mode)
    session = Session(PROGRAM, facts={"t": ROWS, "link": links})
    for name in PROGRAM.outputs:
        assert Counter(tuple(row) for row in views[name].collect()) == Counter(session.relation(name)), name
