"""Functions that loops take in.

Numba optimizes and makes machine code of every function it compiles, then once more of what takes it in. These are never run by
themselves, so the first is time lost: what there is of them is handed on as it was written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import binding, ir
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

    def object_code(self, more: ir.Module, entry: str, named: Mapping[str, str]) -> bytes:
        """Finished with `more`, in which is the `entry`. What else can be called from outside is `named`, by new names."""
        self._final_module.link_in(binding.parse_assembly(str(more)))
        for each in (*self._final_module.functions, *self._final_module.global_variables):
            if each.name in named:
                each.name = named[each.name]
                each.linkage = "external"
            elif each.name != entry and not each.is_declaration:
                each.linkage = "internal"  # and left out, where it has been taken in
        super()._optimize_final_module()  # type: ignore[no-untyped-call]
        self._final_module.verify()
        code: bytes = self._codegen._tm.emit_object(self._final_module)  # noqa: SLF001 - as Numba does it
        return code

    @property
    def codegen(self) -> Any:
        return _Nowhere()


class _Nowhere:
    """Where functions are that have no address."""

    def set_env(self, _name: str, _environment: object) -> None:
        """What Python's objects would be found in; loops have none."""


class TakingIn(Compiler):
    def compile_extra(self, func: Any) -> Any:
        self.state.library = _Unfinished(self.state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        return super().compile_extra(func)  # type: ignore[no-untyped-call]
