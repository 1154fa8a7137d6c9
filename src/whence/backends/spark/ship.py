"""Registered Python functions on their way to executors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.machinery import PathFinder

from pyspark import cloudpickle


def ship_by_value(functions: Iterable[Callable[..., object]]) -> None:
    """Has functions of modules that no import finds, such as files given to --functions, sent along with their code.

    Others are imported where they run, as Whence itself is.
    """
    for function in functions:
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        if module is not None and PathFinder.find_spec(module.__name__.partition(".")[0]) is None:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
