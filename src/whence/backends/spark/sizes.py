"""How large a DataFrame is, as far as Spark knows without running it."""

from __future__ import annotations

from pyspark.sql import DataFrame

# What Spark says of rows that came from Python objects or an RDD: it does not know.
_UNKNOWN = 1 << 62
_WORD = 8


def size_in_bytes(frame: DataFrame) -> int:
    """Spark's estimate; where it has none the rows are counted, which is a job."""
    estimate = estimated_size(frame)
    return estimate if estimate < _UNKNOWN else frame.count() * len(frame.columns) * _WORD


def estimated_size(frame: DataFrame) -> int:
    """Bytes, and more than there can be if Spark has no estimate."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))  # noqa: SLF001 - Spark offers no other way
