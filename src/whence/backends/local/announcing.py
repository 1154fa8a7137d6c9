"""Who is told when loops have to be compiled. Asking for it brings no compiler: that comes with the loops."""

from __future__ import annotations

from collections.abc import Callable

# Each is called with the name of a loop, before it is compiled. Functions that loops call count as loops here.
LISTENERS: list[Callable[[str], None]] = []


def announce(name: str) -> None:
    for listener in LISTENERS:
        listener(name)
