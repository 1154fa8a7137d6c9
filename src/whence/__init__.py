"""Whence keeps recursive views over changing data exact, and can say why every row is there."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whence.io.changes import Changes, Update
    from whence.lang import Program, ProgramError, load, load_file
    from whence.lang.types import Variant
    from whence.session import Session

    __version__: str
__all__ = ["Changes", "Program", "ProgramError", "Session", "Update", "Variant", "__version__", "load", "load_file"]
_HOMES = {
    **dict.fromkeys(("Changes", "Update"), "whence.io.changes"),
    **dict.fromkeys(("Program", "ProgramError", "load", "load_file"), "whence.lang"),
    "Session": "whence.session",
    "Variant": "whence.lang.types",
}


def __getattr__(name: str) -> Any:
    # The engine brings compiled code with it: programs that only read the language need not wait for it.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("whence")
    raise AttributeError(f"module 'whence' has no attribute {name!r}")
