"""Memory by address, for the compiled loops.

What a loop works on it is told by a *handle*: one array of words with the addresses and sizes of everything else. A call passes
the address of a handle, whatever it needs, arrays may grow between calls, and instructions can name tables by address.
"""

from __future__ import annotations

import hashlib
import mmap
import sys
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.loop import Called, Intrinsic, Loop, TakenIn
from whence.engine import protocol
from whence.lang import sizes

# The loops that Python calls; see `compiling`.
KERNELS: dict[str, Loop] = {}
A = TypeVar("A", bound=np.generic)
_PAGE, _LARGE = 1 << 21, 1 << 22


def _digest() -> str:
    """Of all that goes into the loops, from whichever file."""
    sources = [
        Path(__file__).with_stem(name)
        for name in (
            "apart",
            "best",
            "best_rounds",
            "blocks",
            "bundles",
            "by_column",
            "cascade",
            "cells",
            "chains",
            "compiler",
            "crossing",
            "entry",
            "gathered",
            "hashing",
            "heap",
            "intrinsics",
            "kernels",
            "links",
            "loop",
            "machine",
            "memory",
            "operands",
            "plans",
            "rounds",
            "sieves",
            "taken_in",
            "text_in",
            "text_order",
            "text_out",
            "waiting",
            "walks",
        )
    ]
    joined = b"".join(path.read_bytes() for path in (*sources, Path(protocol.__file__), Path(sizes.__file__)))
    return hashlib.sha256(joined).hexdigest()[:12]


DIGEST = _digest()


def compiled(function: Any) -> Any:
    """A function that loops take in."""
    return TakenIn(function, is_inlined=False)


def inlined(function: Any) -> Any:
    """The same for one that is written out wherever it is called: what it takes apart and puts together costs nothing then."""
    return TakenIn(function, is_inlined=True)


def kernel(arguments: str) -> Any:
    """A compiled loop that Python calls. `arguments` are the types of its arguments, in short."""

    def compile_later(function: Any) -> Any:
        KERNELS[function.__name__] = Loop(function, arguments, DIGEST.encode())
        return KERNELS[function.__name__]

    return compile_later


def called(loop: Any, result: str) -> Any:
    """What compiled code calls to have another loop run, which is not compiled into it; `result` is the type it returns."""
    return Called(loop, result)


# The words, halves or bytes at an address, and an array of what is there.
words_at: Any = Intrinsic("words_at")
halves_at: Any = Intrinsic("halves_at")
bytes_at: Any = Intrinsic("bytes_at")
carray: Any = Intrinsic("carray")
# The eight bytes from any address on, which need not be that of a word.
word_within: Any = Intrinsic("word_within")
# Asks for the cache line at an address, without waiting for it.
prefetch: Any = Intrinsic("prefetch")
# The place of the lowest bit of a word that is not 0.
first_bit: Any = Intrinsic("first_bit")
# Adds to the word at an address, which other threads may do at the same time; the word before.
fetch_add: Any = Intrinsic("fetch_add")


def address_of(array: NDArray[A]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class Growing:
    """An array of 32-bit halves with room to grow, in lines of `width` halves.

    Large ones are moved by the system, which copies nothing, and are in large pages: NumPy asks for these when it makes an
    array, but not when it resizes one, and touching memory for the first time costs more than anything done with it here.
    """

    def __init__(self, lines: int, width: int) -> None:
        self.array: NDArray[np.int32] = np.empty((lines, width), dtype=np.int32)
        self._map: mmap.mmap | None = None

    def grow(self, lines: int, *, in_small_pages: bool = False) -> None:
        """To at least so many lines. No view of the array may be in use.

        `in_small_pages` is for what is written all at once and not looked at here and there meanwhile: large pages that were
        given back to a host have to be got from it again, small ones are mostly there.
        """
        old, width = self.array, self.array.shape[1]
        size = -(-lines * width * 4 // _PAGE) * _PAGE
        if lines <= len(old):
            return
        if size < _LARGE or sys.platform != "linux":
            self.array = np.empty((lines, width), dtype=np.int32)
            self.array[: len(old)] = old
            return
        if self._map is None:
            self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if not in_small_pages:
                self._map.madvise(mmap.MADV_HUGEPAGE)
            self._view(width)[: len(old)] = old
        else:
            self.array = old = np.empty((0, width), dtype=np.int32)
            self._map.resize(size)
            self._view(width)

    def shrink(self, lines: int) -> None:
        """To about so many lines, if that is less and worth it. No view of the array may be in use."""
        width = self.array.shape[1]
        size = -(-lines * width * 4 // _PAGE) * _PAGE
        if self._map is not None and size < len(self._map):
            self.array = np.empty((0, width), dtype=np.int32)
            self._map.resize(size)
            self._view(width)

    def put_into_large_pages(self) -> None:
        """What is not written yet, and the rest when the system comes to it."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_HUGEPAGE)

    def give_up(self, lines: int) -> None:
        """The first so many lines: nobody will read them again, and their memory may be used by others."""
        size = lines * self.array.shape[1] * 4 // _PAGE * _PAGE
        if self._map is not None and size:
            self._map.madvise(mmap.MADV_DONTNEED, 0, size)

    def _view(self, width: int) -> NDArray[np.int32]:
        assert self._map is not None
        lines = len(self._map) // (4 * width)
        self.array = np.frombuffer(self._map, dtype=np.int32, count=lines * width).reshape(lines, width)
        return self.array
