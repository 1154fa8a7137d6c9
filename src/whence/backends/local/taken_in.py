"""Functions that loops take in.

Numba optimizes and makes machine code of every function it compiles, then once more of what takes it in. These are never run by
themselves, so the first is time lost: what there is of them is handed on as it was written down.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Unfinished(JITCodeLibrary):
    """What was compiled of a function, which others link."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, _: str) -> int:
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0  # nobody calls it

    @property
    def codegen(self) -> Any:
        return _Nowhere()


class _Nowhere:
    """Where functions are that have no address."""

    def set_env(self, _name: str, _environment: object) -> None:
        """What Python's objects would be found in; loops have none."""


class _TakenIn(Compiler):
    def compile_extra(self, func: Any) -> Any:
        self.state.library = _Unfinished(self.state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


def taken_in(njit: Any, function: Any, **options: bool) -> Any:
    """Compiled once for each types of its arguments. A constant in a call is of a type of its own to Numba, but not here: where
    the function is taken in, it is known."""
    found = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_TakenIn, **options)(
        function
    )
    by_types = found.get_call_template
    found.get_call_template = lambda arguments, named: by_types(tuple(map(types.unliteral, arguments)), named)
    return found
