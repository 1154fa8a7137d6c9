"""Annotated evaluation on Spark against the reference."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from whence import load
from whence.backends.spark.annotated import native
from whence.lang.types import Tuple
from whence.reference.annotated import evaluate_annotated as evaluate_naively
from whence.semiring import (
    SEMIRINGS,
    Access,
    Boolean,
    Counting,
    Fuzzy,
    Integer,
    Natural,
    NotInThisSemiring,
    Semiring,
    Tropical,
    Viterbi,
)
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
    (Viterbi(), [0.5, 0.25, 1.0, 0.75, 0.0, 0.5, 1.0], "double"),
    (Fuzzy(), [0.9, 0.1, 1.0, 0.7, 0.0, 0.5, 0.3], "double"),
    (Natural(), [2, 1, 3, 1, 2, 1, 5], "long"),
    (Counting(), [2, 1, 3, 0, 2, 1, 5], "long"),
]


@pytest.mark.parametrize(("semiring", "values", "kind"), VALUES, ids=lambda each: getattr(each, "name", ""))
def test_the_same_annotations_as_the_reference(
    spark: SparkSession, semiring: Semiring[Any], values: list[Any], kind: str
) -> None:
    program = load(TEXT if isinstance(semiring, Natural | Counting) else TEXT + REACH)
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

    expected = evaluate_naively(
        program, {"link": [tuple(link) for link in LINKS], "blocked": [("d",)]}, semiring, annotate
    )
    found = evaluate_annotated(program, inputs, semiring, {"link": "worth"})
    for name in ("two", "reach") if "reach" in program.relations else ("two", "some", "busy"):
        listed = {tuple(row)[:-1]: row["annotation"] for row in found[name].collect()}
        assert listed == expected[name], name


def test_every_semiring_with_operations_is_tested() -> None:
    tested = {semiring.name for semiring, *_ in VALUES} | {"integer"}  # below
    for name, semiring in SEMIRINGS.items():
        if name not in tested:
            with pytest.raises(NotInThisSemiring, match=f"{name} has no operations on Spark"):
                native(semiring)


def test_what_cancels_out_is_not_there(spark: SparkSession) -> None:
    program = load(".decl e(x: symbol, y: symbol) .input e .decl two(x: symbol) two(x) :- e(x, _).")
    frame = spark.createDataFrame([("a", "b", 2), ("a", "c", -2), ("d", "e", 1)], "x string, y string, n long")
    found = evaluate_annotated(program, {"e": frame}, Integer(), {"e": "n"})
    assert [tuple(row) for row in found["two"].collect()] == [("d", 1)]


@pytest.mark.parametrize("semiring", [Natural(), Counting()], ids=lambda each: each.name)
def test_recursive_counts_are_refused(spark: SparkSession, semiring: Semiring[Any]) -> None:
    with pytest.raises(
        NotInThisSemiring,
        match=rf"{semiring.name} is not idempotent, and on Spark a recursion \(reach\) meets derivations twice; the local",
    ):
        evaluate_annotated(load(TEXT + REACH), {}, semiring, spark=spark)


def test_semirings_without_operations_are_refused(spark: SparkSession) -> None:
    with pytest.raises(NotInThisSemiring, match="posbool has no operations on Spark"):
        evaluate_annotated(load(TEXT), {}, SEMIRINGS["posbool"], spark=spark)


def test_mistakes_are_named(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="p has a column annotation of its own: call it something else"):
        evaluate_annotated(load(".decl p(annotation: number) .input p"), {}, Tropical(), spark=spark)
    frame = spark.createDataFrame([("a", "b", -1.0)], "x string, y string, worth double")
    with pytest.raises(SchemaError, match="link has no column price to take annotations from; it has x, y, worth"):
        evaluate_annotated(load(TEXT), {"link": frame}, Tropical(), {"link": "price"})
    whole = spark.createDataFrame([("a", "b", 2)], "x string, y string, worth long")
    with pytest.raises(PySparkException, match="link: 2 is not a value of boolean"):
        evaluate_annotated(load(TEXT), {"link": whole}, Boolean(), {"link": "worth"})["two"].collect()
    with pytest.raises(PySparkException, match=r"link: -1\.0 is not a value of tropical"):
        evaluate_annotated(load(TEXT), {"link": frame}, Tropical(), {"link": "worth"})["two"].collect()
