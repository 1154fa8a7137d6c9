"""By rules on Spark the same as by structural recursion, in the semirings that Spark has operations for."""

from __future__ import annotations

import os
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.trees.samples import figure_64

from whence.semiring import SEMIRINGS, NotInThisSemiring
from whence.trees.check import load_query
from whence.trees.evaluate import evaluate_query
from whence.trees.on_spark import evaluate_on_spark

VALUES: dict[str, list[Any]] = {
    "natural": [2, 1, 3, 1, 2],
    "access": ["secret", "public", "confidential", "top-secret", "public"],
    "boolean": [True, False, True, True, True],
    "tropical": [4.0, 1.0, 7.0, 0.0, 2.0],
    "viterbi": [0.5, 0.25, 1.0, 0.75, 0.5],
    "fuzzy": [0.5, 0.25, 1.0, 0.75, 0.5],
    "counting": [2, 1, 3, 1, 5],
    "integer": [2, -1, 3, -3, 5],
}
QUERIES = (
    "for $p in $d/* return <r>{ $p//c }</r>",
    "for $p in $d//c return <r>{ name($p), for $q in ($p//*, $d//*) where name($q) = $p/* return <s>{ $q, $p/* }</s> }</r>",
    "element r { ($d//c, (<b>{ $d//a }</b>)//b) }",
)


# WHENCE_LONG=1 has them all.
CASES = [(name, query) for name in VALUES for query in QUERIES]
EVERY_DAY = [("access", QUERIES[0])]


@pytest.mark.parametrize(("name", "query"), CASES if os.environ.get("WHENCE_LONG") else EVERY_DAY)
def test_spark_gives_what_structural_recursion_gives(spark: SparkSession, name: str, query: str) -> None:
    semiring = SEMIRINGS[name]
    documents = {"d": figure_64(semiring, **dict(zip(("x1", "y3", "y1", "y2", "x2"), VALUES[name], strict=True)))}
    checked = load_query(query, semiring)
    answer = evaluate_on_spark(checked, documents, semiring, spark)
    assert answer == evaluate_query(checked, documents, semiring)
    assert answer


def test_semirings_without_operations_of_sparks_are_refused(spark: SparkSession) -> None:
    semiring = SEMIRINGS["polynomial"]
    with pytest.raises(NotInThisSemiring, match="no operations on Spark"):
        evaluate_on_spark(load_query("$d//c", semiring), {"d": figure_64(semiring)}, semiring, spark)
