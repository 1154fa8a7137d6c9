"""Queries of trees on Spark: the rules with annotations, on DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from whence.backends.spark.annotated import ANNOTATION, native
from whence.lang.types import NUMBER
from whence.semiring import Semiring
from whence.semiring.algebra import V
from whence.spark import evaluate_annotated
from whence.trees.compile import EDGE, INSIDE, MEMBER, ONCE, SCALAR, compile_query
from whence.trees.core import Query
from whence.trees.shred import base_rows, decode
from whence.trees.values import Forest, height

_COLUMNS = {EDGE: "parent string, node string, label string", SCALAR: "number bigint", ONCE: "number bigint"}
_TYPES = {"number": "bigint", "float": "double", "symbol": "string"}


def evaluate_on_spark(
    query: Query, documents: Mapping[str, Forest[V]], semiring: Semiring[V], spark: SparkSession
) -> Forest[V]:
    """The same as `evaluate_query`, by rules on Spark. Raises NotInThisSemiring for semirings that Spark has no operations for.

    Recursion there goes in rounds that meet derivations twice. Where that would count them twice, descendant steps are written
    out down to the depth of the documents.
    """
    annotation = _TYPES[str(native(semiring).kind)]
    depth = None if semiring.properties.idempotent else max((height(each) for each in documents.values()), default=0)
    compiled = compile_query(query, depth=depth)
    given: dict[str, DataFrame] = {}
    for name, rows in base_rows(compiled, documents, semiring).items():
        values = [(*row, _to_spark(value, annotation)) for row, value in rows.items()]
        given[name] = spark.createDataFrame(values, f"{_COLUMNS[name]}, {ANNOTATION} {annotation}")
    columns = dict.fromkeys(given, ANNOTATION)
    views = evaluate_annotated(compiled.program, given, semiring, columns, ones=compiled.guards, spark=spark)
    members, inside = (
        {tuple(row)[:-1]: _from_spark(row[ANNOTATION], semiring) for row in views[name].collect()}
        for name in (MEMBER, INSIDE)
    )
    return decode(semiring, members, inside)


def _to_spark(value: Any, type_: str) -> Any:
    return {"bigint": int, "double": float, "string": str}[type_](value)


def _from_spark(value: Any, semiring: Semiring[Any]) -> Any:
    if native(semiring).kind != NUMBER:
        return value
    return value if isinstance(value, bool) else int(value)
