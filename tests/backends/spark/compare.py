"""Evaluating on Spark what the reference evaluates."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from whence import Program
from whence.backends.spark.boundary import frame_to_rows, rows_to_frame
from whence.backends.spark.shapes import Shapes
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.reference import evaluate as evaluate_by_reference
from whence.spark import Views, evaluate

LIMITS = Limits(max_rounds=300)
LOOSE = Limits(max_rounds=1_000)  # of what is under test, so that the reference alone says what does not end


def frames(spark: SparkSession, program: Program, facts: Mapping[str, Iterable[Tuple]]) -> dict[str, DataFrame]:
    shapes = Shapes(program.types)
    return {
        name: rows_to_frame(spark, sorted(set(rows), key=repr), program.relations[name], shapes)
        for name, rows in facts.items()
    }


@contextmanager
def broadcasting(spark: SparkSession, threshold: str) -> Iterator[None]:
    """What is larger is shuffled to the tasks that have a part each; nothing is broadcast below 0."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def rows_of(views: Views, program: Program) -> dict[str, list[Tuple]]:
    shapes = Shapes(program.types)
    return {name: frame_to_rows(frame, program.relations[name], shapes) for name, frame in views.items()}


def assert_same(
    spark: SparkSession,
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    wanted: Iterable[str] | None = None,
    **options: object,
) -> Views:
    """Evaluates on Spark and compares with the reference: the same rows, each once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = evaluate_by_reference(program, facts, limits=LIMITS)
    views = evaluate(program, frames(spark, program, facts), spark=spark, wanted=wanted, limits=LOOSE, **options)  # type: ignore[arg-type]
    found = rows_of(views, program)
    for name, rows in found.items():
        assert len(rows) == len(set(rows)), f"{name} has a row twice\n{views.explain()}"
        assert set(rows) == expected[name], f"{name}\n{views.explain()}"
    views.unpersist()
    return views
