"""Aggregates over complete relations, grouped by Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from whence.backends.spark.arrow import arrow_type, from_values, to_values
from whence.backends.spark.functors import wrapped
from whence.backends.spark.shapes import Shapes
from whence.backends.spark.udfs import as_udf
from whence.lang.aggregates import combine
from whence.lang.types import FLOAT, SYMBOL, UNSIGNED, DecimalKind, Kind
from whence.lang.undefined import Undefined
from whence.plan.extract_aggregates import AggregateSpec, keeps_empty_groups

_NATIVE = ("count", "min", "max")  # sums of whole numbers, too
_LOWEST = "bigint('-9223372036854775808')"


@dataclass(frozen=True)
class Exact:
    """An aggregate by its definition: of floats, whose sum does not depend on an order, and lists. Shipped to executors."""

    op: str
    value_kind: Kind
    kind: Kind
    shapes: Shapes

    def __call__(self, values: pa.Array) -> Any:  # a float, a list as Spark has it, or None
        try:
            result = combine(self.op, to_values(values, self.value_kind, self.shapes), self.kind)
        except Undefined:
            return None
        return result if result is None else from_values([result], self.kind, self.shapes)[0].as_py()


@dataclass(frozen=True)
class ExactOfAll:
    """The same of all rows, which Spark has gathered: where there is but one group it puts plans together, and breaks if one of
    them aggregates in Python.
    """

    exact: Exact

    def __call__(self, gathered: pa.Array) -> pa.Array:
        found = [self.exact(each.values.field(0)) for each in gathered]
        return pa.array(found, arrow_type(self.exact.kind, self.exact.shapes))


def aggregate(spec: AggregateSpec, rows: DataFrame, context: DataFrame | None, shapes: Shapes) -> DataFrame:
    """The rows of the aggregate's output. `rows` is a set.

    A group without rows is there if `context` asks for it and the aggregate has a value for it; without keys there is one group.
    """
    keys = [f"g{at}" for at in range(len(spec.key_columns))]
    value, target = f"c{spec.value_column}", f"c{spec.output_value}"
    named = [f"c{column} as {key}" for key, column in zip(keys, spec.key_columns, strict=True)]
    rows = rows.selectExpr(*named, *([] if spec.value_column is None else [f"{value} as v"]), *([] if named else ["1"]))
    groups = _groups(spec, rows, keys, target, shapes)
    if spec.has_empty_groups:
        groups = _with_empty(groups, keys, target, context, shapes.literal(0, spec.kind))
    elif not keeps_empty_groups(spec.op):
        groups = groups.filter(f"{target} is not null")
    if isinstance(spec.kind, DecimalKind) and spec.op == "sum":
        groups = groups.filter(f"{target} != {_LOWEST}")  # what has too many digits
    places = {**{column: key for key, column in zip(keys, spec.output_keys, strict=True)}, spec.output_value: target}
    return groups.selectExpr(*(f"{places[column]} as c{column}" for column in range(len(places))))


def _groups(spec: AggregateSpec, rows: DataFrame, keys: list[str], target: str, shapes: Shapes) -> DataFrame:
    grouped = rows.groupBy(*keys)
    value = "v"
    if spec.op == "sum" and spec.kind != FLOAT:
        # Halves of 32 bits cannot overflow; put together they wrap around.
        halves = grouped.agg(
            F.expr(f"sum(shiftright({value}, 32)) as high"), F.expr(f"sum({value} & 4294967295L) as low")
        )
        exact = "cast(high as decimal(20,0)) * 4294967296BD + low"
        if isinstance(spec.kind, DecimalKind):
            fits = f"abs({exact}) < 1{'0' * spec.kind.precision}BD"
            return halves.select(*keys, F.expr(f"if({fits}, bigint({exact}), {_LOWEST}) as {target}"))
        whole = f"coalesce(try_add(try_multiply(high, 4294967296L), low), {wrapped(exact)})"
        return halves.select(*keys, F.expr(f"{whole} as {target}"))
    if spec.op not in _NATIVE and not keys:
        assert spec.value_kind is not None
        of_all = ExactOfAll(Exact(spec.op, spec.value_kind, spec.kind, shapes))
        gathered = grouped.agg(F.expr(f"collect_list(struct({value})) as gathered"))
        udf = as_udf(of_all.__call__, shapes.sql_type(spec.kind))
        return gathered.select(udf("gathered").alias(target))
    return grouped.agg(_aggregated(spec, value, shapes).alias(target))


def _with_empty(groups: DataFrame, keys: list[str], target: str, context: DataFrame | None, empty: str) -> DataFrame:
    """Groups that are asked for and have no rows come in; without keys there is one group."""
    asked = groups.sparkSession.range(1) if context is None else context
    joined = asked.selectExpr(*(f"c{at} as k_{key}" for at, key in enumerate(keys)), "true as asked").join(
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
            assert spec.value_kind != SYMBOL or spec.op == "collect"
            exact = Exact(spec.op, spec.value_kind, spec.kind, shapes)
            udf = as_udf(exact.__call__, shapes.sql_type(spec.kind))
            column: Column = udf(value)
            return column
