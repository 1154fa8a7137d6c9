"""Random queries as views over random updates, against DuckDB's answers; `beside_duckdb` compares more of them."""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.lang.sql.beside_duckdb import agrees, is_duckdbs

STATEMENTS = max(100, int(os.environ.get("WHENCE_EXAMPLES", "0")))
# In so many tests, so that a failure names few statements.
CHUNKS = 10
# A column of which only nulls can come, by way of rules of its own.
ONLY_NULLS = """
SELECT CASE WHEN p.c2 IN (p.c1, p.c2, p.c1) THEN (CONCAT(q.s, p.c1)) END AS c3
FROM (SELECT NULLIF(q.s, q.s) AS c1, (q.s || q.s) AS c2 FROM w p FULL JOIN t q ON p.a = q.a
      WHERE CASE WHEN q.b > q.a THEN q.b END = p.a) p
RIGHT JOIN u q ON p.c1 = q.s WHERE (CONCAT(p.c2, p.c2)) LIKE '%b'
"""
CASTS_IN_AGGREGATES = [
    "SELECT AVG(CAST(x AS DECIMAL(9,2))) AS mean, COUNT(CAST(x AS DECIMAL(9,2))) AS n FROM w",
    "SELECT s, SUM(CAST(a AS DECIMAL(8,3))) AS total, COUNT(CAST(a AS DECIMAL(8,3))) AS n FROM t GROUP BY s",
    "SELECT s, MIN(CAST(a AS DECIMAL(8,3))) AS least FROM u GROUP BY s",
]
CONVERSIONS_TO_THE_SAME = [
    "SELECT m FROM u WHERE CAST(m AS TIMESTAMP) = m",
    "SELECT DISTINCT m FROM u WHERE (m + INTERVAL '0' MONTH) = m",
    "SELECT a FROM t WHERE CAST(a AS BIGINT) <> b",
    "SELECT s FROM t WHERE CAST(s AS TEXT) = s OR a = 1",
    "SELECT p FROM t WHERE CAST(p AS DECIMAL(6,2)) = p",
    "SELECT COUNT(CAST(m AS TIMESTAMP)) AS n, COUNT(CAST(a AS BIGINT)) AS more, MIN(CAST(a AS BIGINT)) AS least FROM u",
    "SELECT s, COUNT(CAST(p AS DECIMAL(6,2))) AS n, COUNT(CAST(s AS TEXT)) AS texts FROM t GROUP BY s",
    "SELECT k, CAST(m AS TIMESTAMP) AS m FROM u",
]
NEVER_TRUE = [
    "SELECT SUM(q) AS total, MIN(d) AS least, COUNT(q) AS n, AVG(q) AS mean FROM w WHERE d IS NULL",
    "SELECT s, SUM(p) AS total FROM t WHERE COALESCE(a, 0) IS NULL GROUP BY s",
    "SELECT SUM(p.c) AS total FROM (SELECT a, SUM(q) AS c, COUNT(*) AS n FROM w GROUP BY a) p WHERE p.n IS NULL",
]
TRUTHS_AND_TEXTS = [
    "SELECT k, a > 1 AS big, a > 1 OR s = 'a' AS one, a IN (SELECT t.a FROM t) AS there, s LIKE 'a%' AS fits FROM u",
    "SELECT a > b AS more, COUNT(*) AS n FROM t GROUP BY a > b",
    "SELECT a FROM (SELECT a, b > 0 AS positive FROM t) AS x WHERE positive IS NOT TRUE",
    "SELECT s, BOOL_AND(a > 0) AS every, BOOL_OR(b = 1) FILTER (WHERE a > 0) AS some FROM t GROUP BY s",
    "SELECT BOOL_AND(x > 0) AS every, BOOL_OR(x > 0) AS some FROM w",
    "SELECT a, STRING_AGG(s, '-' ORDER BY k DESC) AS texts FROM u GROUP BY a",
    "SELECT a, STRING_AGG(s, '-' ORDER BY s) AS texts, COUNT(*) AS n FROM t GROUP BY a",
    "SELECT STRING_AGG(DISTINCT s, ',' ORDER BY s DESC) FILTER (WHERE a > 0) AS texts FROM t",
    "SELECT k, (SELECT STRING_AGG(t.s, ',' ORDER BY t.s) FROM t WHERE t.a = u.a) AS texts FROM u",
]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_views_of_random_queries_are_duckdbs(chunk: int) -> None:
    ran = 0
    for seed in range(chunk, STATEMENTS, CHUNKS):
        ran += is_duckdbs(seed)
    assert ran > 0.5 * STATEMENTS / CHUNKS  # DuckDB refuses few


@pytest.mark.parametrize("query", TRUTHS_AND_TEXTS)
def test_truth_values_and_joined_texts_are_kept_current(query: str) -> None:
    for seed in range(5):
        assert agrees(query, Random(seed), f"seed {seed}")


@pytest.mark.parametrize("query", CONVERSIONS_TO_THE_SAME)
def test_a_conversion_that_changes_nothing_has_no_value_for_null(query: str) -> None:
    for seed in range(5):
        assert agrees(query, Random(seed), f"seed {seed}")


@pytest.mark.parametrize("query", NEVER_TRUE)
def test_an_aggregate_of_no_row_at_all_has_its_type(query: str) -> None:
    for seed in range(3):
        assert agrees(query, Random(seed), f"seed {seed}")


@pytest.mark.parametrize("query", CASTS_IN_AGGREGATES)
def test_a_null_that_is_cast_to_a_decimal_is_in_no_aggregate(query: str) -> None:
    for seed in range(5):
        assert agrees(query, Random(seed), f"seed {seed}")


def test_a_column_of_nulls_has_the_type_of_what_is_made_of_it() -> None:
    for seed in range(5):
        assert agrees(ONLY_NULLS, Random(seed), f"seed {seed}")
