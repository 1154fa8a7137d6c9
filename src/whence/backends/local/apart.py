"""Loops that call other loops where these are.

What Numba compiles takes in all that it calls: a loop that goes through rounds would have the machine, and all else that it
runs, compiled once more, which takes longer than the rest of it. So what it calls is loaded by itself and called by its
address. That stands in a cell of its own; compiled code knows cells by name, and so it can be kept on disk.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils
from numba.extending import intrinsic


class Called:
    """A loop that others call, with the types of its arguments and of what it returns."""

    def __init__(self, dispatcher: Any, arguments: tuple[Any, ...], result: Any) -> None:
        self.dispatcher, self.arguments, self.result = dispatcher, arguments, result
        self.cell = np.zeros(1, dtype=np.int64)
        self.name = f"whence_{dispatcher.py_func.__qualname__}"
        binding.add_symbol(self.name, self.cell.ctypes.data)

    def load(self) -> None:
        """Compiles it if need be, and says where it is."""
        self.dispatcher.compile(self.arguments)
        found = self.dispatcher.overloads[self.arguments]
        assert found.signature.return_type == self.result, (self.name, found.signature)
        self.cell[0] = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)

    def in_compiled_code(self) -> Any:
        """What calls it there, with the same arguments."""

        def call(_typing: Any, *_arguments: Any) -> Any:
            return self.result(*self.arguments), self._generate

        own = inspect.signature(self.dispatcher.py_func).parameters.values()
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter("_typing", inspect.Parameter.POSITIONAL_OR_KEYWORD), *own]
        )
        found: Any = intrinsic(call)
        found.called = self
        return found

    def _generate(self, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convention, result, kinds = context.call_conv, signature.return_type, signature.args
        word = ir.IntType(64)
        cell = builder.module.globals.get(self.name) or ir.GlobalVariable(builder.module, word, self.name)
        kind = convention.get_function_type(result, kinds).as_pointer()
        loop = builder.inttoptr(builder.load(cell), kind)
        status, returned = convention.call_function(builder, loop, result, kinds, arguments)
        with cgutils.if_unlikely(builder, status.is_error):  # type: ignore[no-untyped-call]
            convention.return_status_propagate(builder, status)
        return returned


class Calling:
    """A loop that Python calls, and that calls others."""

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher
        self._missing: tuple[Called, ...] = tuple(called_by(dispatcher))

    def __call__(self, *arguments: Any) -> Any:
        if self._missing:
            for each in self._missing:
                each.load()
            self._missing = ()
        return self.dispatcher(*arguments)


def called_by(dispatcher: Any) -> Iterator[Called]:
    """What a loop calls by address, itself or through functions compiled into it or others called."""
    function = dispatcher.py_func
    for name in function.__code__.co_names:
        each = function.__globals__.get(name)
        if isinstance(called := getattr(each, "called", None), Called):
            yield called
            yield from called_by(called.dispatcher)
        elif hasattr(each, "py_func"):
            yield from called_by(each)
