"""What tables of several sessions have in common."""

from __future__ import annotations

from whence.backends.local.assemble import Assembler
from whence.backends.local.instructions import Scratch
from whence.backends.local.words import Dictionary


class Epochs:
    """Those under way: while one lasts there are words on their way, and when none is, words may be given up."""

    count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1


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
        self.buffers: list[Scratch] = []  # one for each thread
        self.epoch = Epochs()

    def buffer(self, thread: int) -> Scratch:
        """What a thread uses while it runs plans."""
        while len(self.buffers) <= thread:
            self.buffers.append(Scratch())
        return self.buffers[thread]

    def reclaim(self) -> None:
        """Gives up the words that nobody holds, if there are many."""
        if not self.epoch.count and self.dictionary.is_outgrown:
            self.dictionary.reclaim()
