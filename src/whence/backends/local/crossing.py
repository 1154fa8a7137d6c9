"""Between Python and the object code of loops: what each has of the other. See `entry` for the code on the other side."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np

from whence.backends.local import object_code

# The objects that entries of loops know, by names of ours: Numba gives Python's names for some of them another meaning.
NDARRAY, NONE, TYPE_ERROR = "whence_ndarray", "whence_none", "whence_type_error"
RETURNED, FAILED = "whence_returned", "whence_failed"
_FASTCALL = 0x80
_NAMES = {4: np.dtype(np.int32).str, 8: np.dtype(np.int64).str}


class _Method(ctypes.Structure):
    """A PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Failure(ctypes.Structure):
    """Numba's note of an exception: what was pickled of it when the loop was compiled."""

    _fields_ = (("pickled", ctypes.c_void_p), ("size", ctypes.c_int32))


_free = ctypes.pythonapi.PyMem_RawFree
_free.argtypes, _free.restype = [ctypes.c_void_p], None


class _Memory:
    """Memory that a loop has allocated and given to an array, until nobody has that any more."""

    def __init__(self, address: int, interface: dict[str, Any]) -> None:
        self._address = address
        self.__array_interface__ = interface

    def __del__(self, free: Any = _free) -> None:  # at Python's end the module may be gone
        free(self._address)


_new_function = ctypes.pythonapi.PyCFunction_NewEx
_new_function.argtypes, _new_function.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p], ctypes.py_object
_keep = ctypes.pythonapi.Py_IncRef
_keep.argtypes, _keep.restype = [ctypes.py_object], None


@cache
def tell_python() -> None:
    """Code that is loaded from now on finds what it needs of Python."""
    objects = {NDARRAY: np.ndarray, NONE: None, TYPE_ERROR: TypeError, RETURNED: returned, FAILED: failed}
    for name, each in objects.items():
        object_code.tell(name, id(each))


def callable_at(name: str, address: int) -> Callable[..., Any]:
    """The function of Python's whose code is there, a METH_FASTCALL."""
    method = _Method(name.encode(), address, _FASTCALL, None)
    _keep(
        method
    )  # for ever: Python looks into it as long as there is the function, and at its own end after all modules
    found: Callable[..., Any] = _new_function(ctypes.addressof(method), None, None)
    return found


def returned(memory: int, owner: int, data: int, width: int, *shape: int) -> Any:
    """An array that a loop returns: one it was given, or one in memory that it has allocated."""
    if memory:
        assert ctypes.c_size_t.from_address(memory).value == 1, "others have it too"
        interface = {"data": (data, False), "shape": shape, "typestr": _NAMES[width], "version": 3}
        return np.asarray(_Memory(memory, interface))
    array = ctypes.cast(owner, ctypes.py_object).value
    assert array.ctypes.data == data
    assert array.shape == shape
    return array


def failed(address: int) -> NoReturn:
    """A loop has raised an exception, and left a note of it there."""
    note = _Failure.from_address(address)
    kind, arguments, _place = pickle.loads(ctypes.string_at(note.pickled, note.size))  # noqa: S301 - of our own code
    raise kind(*arguments)
