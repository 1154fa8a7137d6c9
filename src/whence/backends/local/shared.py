"""What tables of several sessions have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from whence.backends.local.assemble import Assembler
from whence.backends.local.instructions import Scratch
from whence.backends.local.words import Dictionary


class Shared:
    """The words of values, the same in all backends that share it, so that encoded rows can be handed from one to the other;
    the instructions of plans; and memory that plans use while they run, which is why only one thread at a time may be in any
    of those backends.

    Between epochs, words that nobody holds are given up: the holders of the dictionary are asked, which all backends are.
    Whoever else keeps words from one epoch to another has to be one too.
    """

    def __init__(self) -> None:
        self.dictionary = Dictionary()
        self.assembler = Assembler(self.dictionary)
        self.buffers = (Scratch(), Scratch())
        self.epochs = 0  # under way

    @contextmanager
    def epoch(self) -> Iterator[None]:
        """While it lasts there are words on their way. When no other is under way after it, words may be given up."""
        self.epochs += 1
        try:
            yield
        finally:
            self.epochs -= 1

    def reclaim(self) -> None:
        """Gives up the words that nobody holds, if there are many."""
        if not self.epochs and self.dictionary.is_outgrown:
            self.dictionary.reclaim()
