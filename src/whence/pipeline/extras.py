"""Packages that only some connectors need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtra(ImportError):
    """A package that an extra of Whence brings is not installed."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Imports of what the extra brings. Raises MissingExtra, with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("whence"):
            raise
        package = (error.name or name).partition(".")[0]
        raise MissingExtra(f"{package} is not installed: pip install 'whence[{name}]'") from None
