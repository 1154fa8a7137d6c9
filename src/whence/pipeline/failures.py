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
        reason = _reason(str(error) if java is None else str(java.getMessage()))
        hint = "started again, the query goes on with this micro-batch"
        raise BatchFailed([f"{problem}: {reason}"], hints=[hint]) from error


def _reason(text: str) -> str:
    """Its first line, and if a traceback follows, what the traceback ends with."""
    first, *rest = text.splitlines()
    ends = [line for line in rest if line.strip() and not line.startswith(" ")]
    return f"{first} {ends[-1]}" if first.endswith(":") and ends else first
