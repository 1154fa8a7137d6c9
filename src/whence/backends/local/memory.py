"""Memory by address, for the compiled loops.

What a loop works on it is told by a *handle*: one array of words with the addresses and sizes of everything else. A call passes
the address of a handle, whatever it needs, arrays may grow between calls, and instructions can name tables by address.
"""

from __future__ import annotations

import gc
import hashlib
import mmap
import sys
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.extending import intrinsic
from numpy.typing import NDArray

from whence.backends.local.announcing import announce
from whence.backends.local.apart import Called, Calling, called_by
from whence.backends.local.taken_in import taken_in
from whence.engine import protocol
from whence.lang import sizes

# The loops that Python calls, with the types it calls them with; see `compiling`.
KERNELS: dict[str, tuple[Any, tuple[Any, ...]]] = {}
A = TypeVar("A", bound=np.generic)
_PAGE, _LARGE = 1 << 21, 1 << 22


def _pointer_to(element: Any) -> Any:
    @intrinsic
    def pointer(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), generate

    return pointer


def _digest() -> str:
    """Of all that goes into the loops. Numba keeps them by the file that a function is in, and does not see that a constant or
    a function changed that it takes from another file."""
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
            "hashing",
            "heap",
            "kernels",
            "links",
            "machine",
            "memory",
            "plans",
            "rounds",
            "taken_in",
            "waiting",
            "walks",
        )
    ]
    joined = b"".join(path.read_bytes() for path in (*sources, Path(protocol.__file__), Path(sizes.__file__)))
    return hashlib.sha256(joined).hexdigest()[:12]


class _Compilations(event.Listener):
    """Announces what is compiled, and lets nobody collect garbage meanwhile: compiling makes many objects and few cycles, and
    looking for those takes a sixth of the time."""

    def __init__(self) -> None:
        self._depth = 0
        self._collects = False

    def on_start(self, started: event.Event) -> None:
        announce(started.data["dispatcher"].py_func.__name__)
        if self._depth == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, _: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._collects:
            gc.enable()


event.register("numba:compile", _Compilations())  # type: ignore[no-untyped-call]
DIGEST = _digest()
_njit: Any = njit  # its type does not know all options


def compiled(function: Any) -> Any:
    """A function that loops take in."""
    return taken_in(_njit, function)


def inlined(function: Any) -> Any:
    """The same for one that is written out wherever it is called: what it takes apart and puts together costs nothing then."""
    return taken_in(_njit, function, forceinline=True)


def kernel(arguments: str) -> Any:
    """A compiled loop that Python calls. `arguments` are the types of its arguments, in short."""

    def compile_later(function: Any) -> Any:
        function.__qualname__ += f"_{DIGEST}"
        dispatcher = _njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function)
        KERNELS[function.__name__] = (dispatcher, tuple(_TYPES[each] for each in arguments.split()))
        return Calling(dispatcher) if any(called_by(dispatcher)) else dispatcher

    return compile_later


@cache
def called(loop: Any, result: str) -> Any:
    """What compiled code calls to have another loop run, which is not compiled into it; `result` is the type it returns."""
    dispatcher, arguments = KERNELS[getattr(loop, "dispatcher", loop).py_func.__name__]
    return Called(dispatcher, arguments, _TYPES[result]).in_compiled_code()


# Types, and not their names: what is compiled for a name is kept under that name, where no call looks for it.
_TYPES: dict[str, Any] = {
    "none": types.none,
    "int": types.int64,
    "ids": types.int32[::1],
    "words": types.int64[::1],
    "lines": types.int64[:, ::1],
    "rows": types.int32[:, ::1],
    "blocks": types.int64[:, :, ::1],
}


words_at = _pointer_to(types.int64)
halves_at = _pointer_to(types.int32)


def _prefetch(_typing: Any, _address: Any) -> Any:
    """Asks for the cache line at an address, without waiting for it."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        builder.call(function, [builder.inttoptr(args[0], byte), flag(1), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


prefetch: Any = intrinsic(_prefetch)


def _first_bit(_typing: Any, _word: Any) -> Any:
    """The place of the lowest bit of a word that is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


first_bit: Any = intrinsic(_first_bit)


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
