"""Annotated evaluation on Spark against the local engine."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from whence import load
from whence.annotated import evaluate_annotated as evaluate_locally
from whence.lang.types import Tuple
from whence.semiring import SEMIRINGS, Access, Boolean, Natural, NotInThisSemiring, Semiring, Tropical
from whence.spark import SchemaError, evaluate_annotated

TEXT = """
.decl link(x: symbol, y: symbol) .input link
.decl blocked(x: symbol) .input blocked
link("e", "f").
two(x, z) :- link(x, y), link(y, z), !blocked(y).
some(x) :- link(x, _), link(_, _).
busy() :- two(_, _).
"""
REACH = "reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), reach(y, z), !blocked(y)."
LINKS = ["ab", "bc", "ca", "ad", "de", "db", "cc"]
VALUES: list[tuple[Semiring[Any], list[Any], str]] = [
    (Boolean(), [1, 1, 1, 1, 0, 1, 1], "long"),
    (Tropical(), [4.0, 1.0, 7.0, 1.0, 2.0, 1.0, 0.0], "double"),
    (Access(), ["secret", "public", "nobody", "public", "secret", "top-secret", "public"], "string"),
    (Natural(), [2, 1, 3, 1, 2, 1, 5], "long"),
]


@pytest.mark.parametrize(("semiring", "values", "kind"), VALUES, ids=lambda each: getattr(each, "name", ""))
def test_the_same_annotations_as_the_local_engine(
    spark: SparkSession, semiring: Semiring[Any], values: list[Any], kind: str
) -> None:
    program = load(TEXT if isinstance(semiring, Natural) else TEXT + REACH)
    rows = [(*link, value) for link, value in zip(LINKS, values, strict=True)]
    inputs = {
        "link": spark.createDataFrame(rows, f"x string, y string, worth {kind}"),
        "blocked": spark.createDataFrame([("d",)], "x string"),
    }
    given = {
        tuple(link): bool(value) if isinstance(semiring, Boolean) else value
        for link, value in zip(LINKS, values, strict=True)
    }

    def annotate(relation: str, row: Tuple) -> Any:
        return given.get(row) if relation == "link" else None  # type: ignore[arg-type]

    expected = evaluate_locally(
        program, {"link": [tuple(link) for link in LINKS], "blocked": [("d",)]}, semiring, annotate
    )
    found = evaluate_annotated(program, inputs, semiring, {"link": "worth"})
    for name in program.relations:
        listed = {tuple(row)[:-1]: row["annotation"] for row in found[name].collect()}
        assert {row: value for row, value in listed.items() if value != semiring.zero} == expected[name], name


def test_recursive_counts_are_refused(spark: SparkSession) -> None:
    with pytest.raises(NotInThisSemiring, match=r"natural is not idempotent, and on Spark a recursion \(reach\)"):
        evaluate_annotated(load(TEXT + REACH), {}, Natural(), spark=spark)


def test_semirings_without_operations_are_refused(spark: SparkSession) -> None:
    with pytest.raises(NotInThisSemiring, match="posbool has no operations on Spark"):
        evaluate_annotated(load(TEXT), {}, SEMIRINGS["posbool"], spark=spark)


def test_mistakes_are_named(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", "b", -1.0)], "x string, y string, worth double")
    with pytest.raises(SchemaError, match="link has no column price to take annotations from; it has x, y, worth"):
        evaluate_annotated(load(TEXT), {"link": frame}, Tropical(), {"link": "price"})
    with pytest.raises(PySparkException, match=r"link: -1\.0 is no value of tropical"):
        evaluate_annotated(load(TEXT), {"link": frame}, Tropical(), {"link": "worth"})["two"].collect()
