"""Arrow UDFs: functions of whole columns."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf


def as_udf(function: Callable[..., object], sql_type: str) -> Callable[..., Column]:
    """The function's annotations tell Spark what it is: one that returns no array aggregates a group."""
    udf: Callable[..., Column] = arrow_udf(function, sql_type)  # type: ignore[call-overload]
    return udf
