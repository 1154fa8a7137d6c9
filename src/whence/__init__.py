"""Whence keeps recursive views over changing data exact, and can say why every row is there."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from whence.lang import Program, ProgramError, load, load_file

if TYPE_CHECKING:
    from whence.session import Changes, Session, Update

__version__ = version("whence")
__all__ = ["Changes", "Program", "ProgramError", "Session", "Update", "__version__", "load", "load_file"]


def __getattr__(name: str) -> Any:
    # The engine brings compiled code with it: programs that only read the language need not wait for it.
    if name in ("Changes", "Session", "Update"):
        from whence import session  # noqa: PLC0415

        return getattr(session, name)
    raise AttributeError(f"module 'whence' has no attribute {name!r}")
