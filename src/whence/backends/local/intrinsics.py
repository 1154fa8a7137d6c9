"""What loops say to the machine, as Numba is told of it; loops have it from `memory`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

__all__ = ["bytes_at", "carray", "fetch_add", "first_bit", "halves_at", "prefetch", "word_within", "words_at"]


def _pointer_to(element: Any) -> Any:
    @intrinsic
    def pointer(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), generate

    return pointer


words_at = _pointer_to(types.int64)
halves_at = _pointer_to(types.int32)
bytes_at = _pointer_to(types.uint8)


def _word_within(_typing: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.int64), generate


word_within: Any = intrinsic(_word_within)


def _prefetch(_typing: Any, _address: Any) -> Any:
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
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


first_bit: Any = intrinsic(_first_bit)


def _fetch_add(_typing: Any, _address: Any, _more: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        word = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", word, args[1], "monotonic")

    return types.int64(types.int64, types.int64), generate


fetch_add: Any = intrinsic(_fetch_add)
