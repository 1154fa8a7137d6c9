"""Python functions for a program, from a file."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import typer


def load_functions(path: Path | None) -> Mapping[str, Callable[..., object]]:
    """The functions that the file defines, by name; those it imports, and those that start with _, are its own."""
    if path is None:
        return {}
    name = f"whence_functions_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise typer.BadParameter(f"{path} is not a Python file: its name has to end in .py", param_hint="--functions")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 -- the file is the user's and may raise anything
        raise typer.BadParameter(f"cannot import {path}: {describe(error)}", param_hint="--functions") from None
    functions = {
        key: value
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == name and not key.startswith("_")
    }
    if not functions:
        raise typer.BadParameter(f"{path} defines no functions", param_hint="--functions")
    return functions


def describe(error: Exception) -> str:
    """The error with the line that raised it."""
    line = error.__traceback__
    while line is not None and line.tb_next is not None:
        line = line.tb_next
    place = f" (line {line.tb_lineno} of {line.tb_frame.f_code.co_filename})" if line is not None else ""
    return f"{type(error).__name__}: {error}{place}"
