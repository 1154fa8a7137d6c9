"""What went wrong in a task, as the error that was raised there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from whence.io import FactError
from whence.lang.calls import FunctionError
from whence.limits import RunawayError

_RAISED = re.compile(r"^whence\.[\w.]+\.(RunawayError|FunctionError): (.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
_REFUSED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?) SQLSTATE")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Around what makes Spark run: errors of the program and its data in place of Spark's, which stay the cause."""
    try:
        yield
    except PySparkException as error:
        text = str(error)
        if raised := _RAISED.search(text):
            kind = RunawayError if raised[1] == "RunawayError" else FunctionError
            raise kind(raised[2].strip()) from error
        if refused := _REFUSED.search(text):
            raise FactError([refused[1]]) from error
        raise
