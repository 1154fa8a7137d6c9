"""Whence on Spark: DataFrames in, DataFrames and streams of changes out."""

from whence.pipeline.streaming import Maintenance, maintain

__all__ = ["Maintenance", "maintain"]
