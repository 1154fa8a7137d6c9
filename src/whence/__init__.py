"""Whence keeps recursive views over changing data exact, and can say why every row is there."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whence.lang import Program, ProgramError, load, load_file
    from whence.session import Changes, Session, Update

__version__ = version("whence")
__all__ = ["Changes", "Program", "ProgramError", "Session", "Update", "__version__", "load", "load_file"]


def __getattr__(name: str) -> Any:
    # The engine brings compiled code with it: programs that only read the language need not wait for it.
    if name in __all__:
        home = "whence.session" if name in ("Changes", "Session", "Update") else "whence.lang"
        return getattr(import_module(home), name)
    raise AttributeError(f"module 'whence' has no attribute {name!r}")
