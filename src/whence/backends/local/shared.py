"""What tables of several sessions have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from whence.backends.local.assemble import Scratch
from whence.backends.local.words import Dictionary

if TYPE_CHECKING:
    from whence.backends.local.backend import LocalBackend


class Shared:
    """The words of values, the same in all backends that share it, so that encoded rows can be handed from one to the other;
    and memory that plans use while they run, which is why only one thread at a time may be in any of those backends.

    Whoever numbers values anew has to look at the tables of all `backends`.
    """

    def __init__(self) -> None:
        self.dictionary = Dictionary()
        self.buffers = (Scratch(), Scratch())
        self.backends: WeakSet[LocalBackend] = WeakSet()
