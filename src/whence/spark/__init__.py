"""Whence on Spark: DataFrames in, DataFrames and streams of changes out."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whence.backends.spark.annotated import evaluate_annotated
    from whence.backends.spark.boundary import SchemaError
    from whence.backends.spark.choose import Choice, ModeError
    from whence.backends.spark.evaluate import Views, evaluate
    from whence.backends.spark.options import Mode
    from whence.backends.spark.session import running_spark
    from whence.pipeline.report import EpochReport
    from whence.pipeline.sinks import CallbackSink
    from whence.pipeline.streaming import Maintenance, maintain
    from whence.plan.record import with_derivations

__all__ = [
    "CallbackSink",
    "Choice",
    "EpochReport",
    "Maintenance",
    "Mode",
    "ModeError",
    "SchemaError",
    "Views",
    "evaluate",
    "evaluate_annotated",
    "maintain",
    "running_spark",
    "with_derivations",
]

_HOMES = {
    "evaluate": "whence.backends.spark.evaluate",
    "evaluate_annotated": "whence.backends.spark.annotated",
    "Views": "whence.backends.spark.evaluate",
    "SchemaError": "whence.backends.spark.boundary",
    "Choice": "whence.backends.spark.choose",
    "Mode": "whence.backends.spark.options",
    "ModeError": "whence.backends.spark.choose",
    "CallbackSink": "whence.pipeline.sinks",
    "EpochReport": "whence.pipeline.report",
    "running_spark": "whence.backends.spark.session",
    "Maintenance": "whence.pipeline.streaming",
    "maintain": "whence.pipeline.streaming",
    "with_derivations": "whence.plan.record",
}


def __getattr__(name: str) -> Any:
    # Spark and the engine are slow to import: each is when it is used.
    if name in _HOMES:
        from importlib import import_module  # noqa: PLC0415

        from whence.pipeline.extras import extra  # noqa: PLC0415

        with extra("spark"):
            return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'whence.spark' has no attribute {name!r}")
