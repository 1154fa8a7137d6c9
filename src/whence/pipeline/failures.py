"""What Spark raises, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from whence.io import FactError


class BatchFailed(FactError):
    """Spark could not do its part of a micro-batch. Nothing of the batch has been applied."""


@contextmanager
def reported_failures(problem: str) -> Iterator[None]:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        java = getattr(error, "java_exception", None)
        reason = str(error).splitlines()[0] if java is None else str(java.getMessage()).splitlines()[0]
        hint = "started again, the query goes on with this micro-batch"
        raise BatchFailed([f"{problem}: {reason}"], hints=[hint]) from error
