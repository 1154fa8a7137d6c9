"""Memory by address, for the compiled loops.

What a loop works on it is told by a *handle*: one array of words with the addresses and sizes of everything else. So a call
passes a few arguments whatever it needs, arrays may grow between calls, and instructions can name tables by address.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

compiled: Any = njit(cache=True, nogil=True)
inlined: Any = njit(cache=True, nogil=True, inline="always")
A = TypeVar("A", bound=np.generic)
_PAGE, _LARGE = 1 << 21, 1 << 22


def _pointer_to(element: Any) -> Any:
    @intrinsic
    def pointer(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), generate

    return pointer


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

    def grow(self, lines: int) -> None:
        """To at least so many lines. No view of the array may be in use."""
        old, width = self.array, self.array.shape[1]
        size = -(-lines * width * 4 // _PAGE) * _PAGE
        if size < _LARGE or sys.platform != "linux":
            self.array = np.empty((lines, width), dtype=np.int32)
            self.array[: len(old)] = old
            return
        if self._map is None:
            self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self._map.madvise(mmap.MADV_HUGEPAGE)
            self._view(width)[: len(old)] = old
        else:
            self.array = old = np.empty((0, width), dtype=np.int32)
            self._map.resize(size)
            self._view(width)

    def _view(self, width: int) -> NDArray[np.int32]:
        assert self._map is not None
        lines = len(self._map) // (4 * width)
        self.array = np.frombuffer(self._map, dtype=np.int32, count=lines * width).reshape(lines, width)
        return self.array
