"""Loops that call other loops where these are.

What Numba compiles takes in all that it calls: a loop that goes through rounds would have the machine, and all else that it
runs, compiled once more, which takes longer than the rest of it. So what it calls is loaded by itself and called by its
address. That stands in a cell of its own; compiled code knows cells by name, and so it can be kept on disk.
"""

from __future__ import annotations

import inspect
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from whence.backends.local.compiler import TYPES
from whence.backends.local.loop import Loop


def calling(loop: Loop, result: str) -> Any:
    """What calls a loop in compiled code, with the same arguments."""
    signature = TYPES[result](*(TYPES[each] for each in loop.arguments))

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        convention, word = context.call_conv, ir.IntType(64)
        cell = builder.module.globals.get(loop.cell) or ir.GlobalVariable(builder.module, word, loop.cell)
        kind = convention.get_function_type(signature.return_type, signature.args).as_pointer()
        address = builder.inttoptr(builder.load(cell), kind)
        status, returned = convention.call_function(builder, address, signature.return_type, signature.args, arguments)
        with cgutils.if_unlikely(builder, status.is_error):  # type: ignore[no-untyped-call]
            convention.return_status_propagate(builder, status)
        return returned

    def call(_typing: Any, *_arguments: Any) -> Any:
        return signature, generate

    own = inspect.signature(loop.function).parameters.values()
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("_typing", inspect.Parameter.POSITIONAL_OR_KEYWORD), *own]
    )
    return intrinsic(call)
