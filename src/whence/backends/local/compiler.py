"""Loops become object code. This is where Numba comes in, and it is imported for nothing else."""

from __future__ import annotations

import gc
import inspect
from typing import Any

from numba import njit, types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from whence.backends.local.announcing import announce
from whence.backends.local.entry import write_entry, write_memory
from whence.backends.local.loop import Loop, entry_name, in_numba, native_name
from whence.backends.local.taken_in import TakingIn

# Types, and not their names.
TYPES: dict[str, Any] = {
    "none": types.none,
    "int": types.int64,
    "ids": types.int32[::1],
    "words": types.int64[::1],
    "lines": types.int64[:, ::1],
    "rows": types.int32[:, ::1],
    "blocks": types.int64[:, :, ::1],
}


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
_njit: Any = njit  # its type does not know all options


def taken_in(function: Any, **options: bool) -> Any:
    """Compiled once for each types of its arguments. A constant in a call is of a type of its own to Numba, but not here: where
    the function is taken in, it is known."""
    found = _njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=TakingIn, **options)(
        function
    )
    by_types = found.get_call_template
    found.get_call_template = lambda arguments, named: by_types(tuple(map(types.unliteral, arguments)), named)
    return found


@global_compiler_lock
def object_code_of(loop: Loop) -> bytes:
    """All of a loop: what Python calls, what other loops call, and what both take in."""
    dispatcher, arguments = taken_in(in_numba(loop.function)), tuple(TYPES[each] for each in loop.arguments)
    dispatcher.compile(arguments)
    compiled = dispatcher.overloads[arguments]
    module = compiled.target_context.create_module(loop.name)
    write_entry(module, entry_name(loop.name), loop.name, tuple(inspect.signature(loop.function).parameters), compiled)
    write_memory(module)
    result = next((name for name, kind in TYPES.items() if kind == compiled.signature.return_type), "several")
    code: bytes = compiled.library.object_code(
        module, entry_name(loop.name), {compiled.fndesc.llvm_func_name: native_name(loop.name, result)}
    )
    return code
