"""Loops that Python calls, and what goes into them. Nothing here needs the compiler until something has to be compiled.

What a loop takes in is only *declared*: an object stands for it that can say what the compiler is to have in its place
(`in_numba`). A loop that has been compiled once, on this machine, is object code on disk, which is loaded and called as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from ctypes import addressof, c_int64
from functools import cached_property
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any

from whence.backends.local import crossing, object_code

# Held while something is compiled or loaded. A process is not forked meanwhile: its child would wait forever.
_LOCK = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class Intrinsic:
    """What the compiler writes out by itself; see `intrinsics`."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def in_numba(self) -> Any:
        from whence.backends.local import intrinsics  # noqa: PLC0415 - brings the compiler

        return getattr(intrinsics, self.name)


class TakenIn:
    """A function that loops take in."""

    def __init__(self, function: Callable[..., Any], *, is_inlined: bool) -> None:
        self.function, self.is_inlined = function, is_inlined

    @cached_property
    def in_numba(self) -> Any:
        from whence.backends.local.compiler import taken_in  # noqa: PLC0415 - brings the compiler

        return taken_in(in_numba(self.function), forceinline=self.is_inlined)


class Called:
    """What calls a loop from others, where it is: it is not compiled into them. `result` is the type it returns."""

    def __init__(self, loop: Loop, result: str) -> None:
        self.loop, self.result = loop, result

    @cached_property
    def in_numba(self) -> Any:
        from whence.backends.local.apart import calling  # noqa: PLC0415 - brings the compiler

        return calling(self.loop, self.result)


class Loop:
    """A compiled loop that Python calls. `arguments` are the types of its arguments, in short."""

    def __init__(self, function: Any, arguments: str, made_from: bytes) -> None:
        self.function, self.arguments = function, tuple(arguments.split())
        self.name: str = function.__name__
        self._made_from = made_from
        self._is_loaded = False
        self._entry: Callable[..., Any] | None = None
        # Where others find it: compiled code knows a cell by name, so that it can be kept on disk.
        self.cell, self._address = f"whence_cell_{self.name}", c_int64()

    def __call__(self, *arguments: Any) -> Any:
        return (self._entry or self._begin())(*arguments)

    def load(self) -> bool:
        """Compiles it if need be, but not what it calls. Returns whether it did."""
        with _LOCK:
            if self._is_loaded:
                return False
            name = self.file_name
            code = object_code.find(name)
            is_missing = code is None
            if code is None:
                from whence.backends.local.compiler import object_code_of  # noqa: PLC0415 - and the compiler with it

                code = object_code_of(self)
                object_code.keep(name, code)
            for each in called_by(self.function):
                object_code.tell(each.loop.cell, addressof(each.loop._address))  # noqa: SLF001 - of this class
            crossing.tell_python()
            object_code.load(code)
            self._is_loaded = True
            return is_missing

    @property
    def file_name(self) -> str:
        source = Path(self.function.__code__.co_filename).read_bytes()
        return object_code.file_name(self.name, self._made_from, source, " ".join(self.arguments).encode())

    def _begin(self) -> Callable[..., Any]:
        """What Python calls, when all that it calls is there too."""
        with _LOCK:
            for each in called_by(self.function):
                each.loop.load()
                address = object_code.address_of(native_name(each.loop.name, each.result))
                assert address, f"{each.loop.name} does not return {each.result}"
                each.loop._address.value = address  # noqa: SLF001 - of this class
            self.load()
            self._entry = crossing.callable_at(self.name, object_code.address_of(entry_name(self.name)))
            return self._entry


def called_by(function: Any) -> Iterator[Called]:
    """What a loop calls where it is, itself or through functions that it takes in or others called."""
    for each in _declared(function).values():
        if isinstance(each, Called):
            yield each
            yield from called_by(each.loop.function)
        elif isinstance(each, TakenIn):
            yield from called_by(each.function)


def in_numba(function: Any) -> Any:
    """The function as the compiler is to see it."""
    known = {name: each.in_numba for name, each in _declared(function).items()}
    found = FunctionType(function.__code__, {**function.__globals__, **known}, function.__name__, function.__defaults__)
    found.__module__, found.__qualname__ = function.__module__, function.__qualname__
    return found


def _declared(function: Any) -> dict[str, Intrinsic | TakenIn | Called]:
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    return {name: each for name, each in named.items() if isinstance(each, (Intrinsic, TakenIn, Called))}


def entry_name(loop: str) -> str:
    """Of what Python calls."""
    return f"whence_entry_{loop}"


def native_name(loop: str, result: str) -> str:
    """Of what other loops call. It says what is returned, so that none is called for something else."""
    return f"whence_{loop}_{result}"
