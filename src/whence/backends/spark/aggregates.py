"""Aggregates over complete relations, grouped by Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from whence.backends.spark.arrow import to_values
from whence.backends.spark.functors import wrapped
from whence.backends.spark.shapes import Shapes
from whence.backends.spark.udfs import as_udf
from whence.lang.aggregates import combine
from whence.lang.functors import Undefined
from whence.lang.types import FLOAT, SYMBOL, UNSIGNED, Kind
from whence.plan.extract_aggregates import AggregateSpec

_LOWEST = "bigint('-9223372036854775808')"


@dataclass(frozen=True)
class Exact:
    """An aggregate by its definition, for floats: their sum does not depend on an order. Shipped to executors."""

    op: str
    value_kind: Kind
    kind: Kind
    shapes: Shapes

    def __call__(self, values: pa.Array) -> Any:  # a float, or None
        try:
            result = combine(self.op, to_values(values, self.value_kind, self.shapes), self.kind)
        except Undefined:
            return None
        assert result is None or isinstance(result, float)
        return result


def aggregate(spec: AggregateSpec, rows: DataFrame, value: str, context: DataFrame | None, shapes: Shapes) -> DataFrame:
    """The groups: their keys and values. `rows` is a set, with the values to be aggregated in the column `value`.

    A group without rows is there if `context` asks for it and the aggregate has a value for it; without keys there is one group.
    """
    keys = [f"c{at}" for at in range(spec.keys)]
    target = f"c{spec.keys}"
    grouped = rows.groupBy(*keys)
    if spec.op == "sum" and spec.kind != FLOAT:
        # Halves of 32 bits cannot overflow; put together they wrap around.
        halves = grouped.agg(
            F.expr(f"sum(shiftright({value}, 32)) as high"), F.expr(f"sum({value} & 4294967295L) as low")
        )
        exact = "cast(high as decimal(20,0)) * 4294967296BD + low"
        whole = f"coalesce(try_add(try_multiply(high, 4294967296L), low), {wrapped(exact)})"
        groups = halves.select(*keys, F.expr(f"{whole} as {target}"))
    else:
        groups = grouped.agg(_aggregated(spec, value, shapes).alias(target))
    empty = {"count": shapes.literal(0, spec.kind), "sum": shapes.literal(0, spec.kind)}.get(spec.op)
    if empty is None:
        return groups.filter(f"{target} is not null")
    if keys and context is None:
        return groups
    asked = rows.sparkSession.range(1) if context is None else context
    joined = asked.selectExpr(*(f"{key} as k_{key}" for key in keys), "true as asked").join(
        groups, F.expr(" and ".join(f"k_{key} <=> {key}" for key in keys) or "true"), "left"
    )
    return joined.selectExpr(*(f"k_{key} as {key}" for key in keys), f"coalesce({target}, {empty}) as {target}")


def _aggregated(spec: AggregateSpec, value: str, shapes: Shapes) -> Column:
    assert spec.op != "sum" or spec.kind == FLOAT
    match spec.op:
        case "count":
            return F.expr(f"{shapes.sql_type(spec.kind)}(count(1))")
        case "min" | "max" if spec.value_kind == UNSIGNED:
            return F.expr(f"{spec.op}({value} ^ {_LOWEST}) ^ {_LOWEST}")
        case "min" | "max":
            return F.expr(f"{spec.op}({value})")
        case _:
            assert spec.value_kind is not None
            assert spec.value_kind != SYMBOL
            exact = Exact(spec.op, spec.value_kind, spec.kind, shapes)
            udf = as_udf(exact.__call__, shapes.sql_type(spec.kind))
            column: Column = udf(value)
            return column
