"""Whence keeps recursive views over changing data exact, and can say why every row is there."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whence.io.changes import Changes, Update
    from whence.lang import Program, ProgramError, load, load_file
    from whence.lang.types import Variant
    from whence.provenance.graph import Fact
    from whence.provenance.how import how
    from whence.provenance.whatif import whatif
    from whence.provenance.why import why
    from whence.provenance.whynot import whynot
    from whence.session import Session

    __version__: str

__all__ = [
    "Changes",
    "Fact",
    "Program",
    "ProgramError",
    "Session",
    "Update",
    "Variant",
    "__version__",
    "how",
    "load",
    "load_file",
    "whatif",
    "why",
    "whynot",
]
_HOMES = {
    **dict.fromkeys(("Changes", "Update"), "whence.io.changes"),
    **dict.fromkeys(("Program", "ProgramError", "load", "load_file"), "whence.lang"),
    **dict.fromkeys(("Fact", "how", "whatif", "why", "whynot"), "whence.provenance"),
    "Session": "whence.session",
    "Variant": "whence.lang.types",
}
# Packages with more of it, imported when they are asked for.
_PACKAGES = frozenset(
    "events exchange network optimizer profile provenance reasoning semiring sensors serve spark topology trees".split()
)


def __getattr__(name: str) -> Any:
    # The engine brings compiled code with it: programs that only read the language need not wait for it.
    if name == "__version__":
        return import_module("importlib.metadata").version("whence")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return import_module(f"whence.{name}")
    raise AttributeError(f"module 'whence' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is: names to import, and packages with more."""
    return sorted({*__all__, *_PACKAGES})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext whence` in a notebook."""
    import_module("whence.notebook").load_ipython_extension(shell)
