"""What Python calls to have a loop run: a function of Python's, in compiled code.

It reads arrays from the objects that Python passes, by the fields that NumPy promises to leave where they are, after a look at
whether they are what the loop was compiled for; and lets other threads of Python run meanwhile. So it takes nothing of Numba's to
call a loop, and less time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import populate_array

from whence.backends.local.crossing import FAILED, NDARRAY, NONE, RETURNED, TYPE_ERROR

_WORD, _HALF, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_OBJECT = _BYTE.as_pointer()
# Where the fields of an array and of its type of elements are: after the head that all objects have.
_TYPE = object.__basicsize__ - 8
_DATA, _NDIM, _SHAPE, _OF, _FLAGS = (object.__basicsize__ + each for each in (0, 8, 16, 40, 48))
_BYTE_ORDER, _NUMBER = object.__basicsize__ + 10, object.__basicsize__ + 12
# C_CONTIGUOUS, ALIGNED and WRITEABLE.
_IS_PLAIN = 0x0001 | 0x0100 | 0x0400
_HEAD = 40  # before memory that a loop has allocated
_NUMBERS = {types.int32: np.dtype(np.int32).num, types.int64: np.dtype(np.int64).num}


class Entry:
    """The entry of a loop, as it is written."""

    def __init__(self, module: ir.Module, symbol: str, loop: str) -> None:
        self.module, self.loop = module, loop
        kind = ir.FunctionType(_OBJECT, [_OBJECT, _OBJECT.as_pointer(), _WORD])
        self.function = ir.Function(module, kind, symbol)
        self.builder = ir.IRBuilder(self.function.append_basic_block())

    def call_python(self, name: str, result: ir.Type, *arguments: ir.Value, is_variadic: int | None = None) -> Any:
        """Calls a function of Python's own, with its first so many arguments declared if it takes any number."""
        known = self.module.globals.get(name)
        if known is None:
            kinds = [each.type for each in arguments[:is_variadic]]
            kind = ir.FunctionType(result, kinds, var_arg=is_variadic is not None)
            known = ir.Function(self.module, kind, name)
        return self.builder.call(known, arguments)

    def object_named(self, name: str) -> Any:
        """An object by its address."""
        return self.module.globals.get(name) or ir.GlobalVariable(self.module, _BYTE, name)

    def text(self, text: str) -> Any:
        return self.builder.bitcast(
            cgutils.global_constant(self.builder, "whence_text", cgutils.make_bytearray(f"{text}\0".encode())), _OBJECT
        )

    def field(self, place: Any, offset: int, kind: ir.Type) -> Any:
        found = self.builder.gep(place, [_WORD(offset)])
        return self.builder.load(self.builder.bitcast(found, kind.as_pointer()))

    def refuse(self, text: str) -> None:
        """Raises a TypeError."""
        self.call_python(
            "PyErr_SetString", ir.VoidType(), self.object_named(TYPE_ERROR), self.text(f"{self.loop}: {text}")
        )
        self.builder.ret(_OBJECT(None))

    def read_word(self, given: Any) -> Any:
        builder = self.builder
        word = self.call_python("PyLong_AsLongLong", _WORD, given)
        with cgutils.if_unlikely(builder, builder.icmp_signed("==", word, _WORD(-1))):
            raised = self.call_python("PyErr_Occurred", _OBJECT)
            with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, raised)):
                builder.ret(_OBJECT(None))
        return word

    def read_array(self, context: Any, kind: Any, parameter: str, given: Any) -> Any:
        builder = self.builder
        is_other = builder.append_basic_block()
        with builder.goto_block(is_other):
            self.refuse(
                f"{parameter} has to be an array of {kind.dtype} with {kind.ndim} dimension{'s' * (kind.ndim > 1)}, "
                "contiguous, aligned and writable"
            )

        def require(found: Any, wanted: Any) -> None:
            following = builder.append_basic_block()
            builder.cbranch(builder.icmp_unsigned("==", found, wanted), following, is_other)
            builder.position_at_end(following)

        # Only an array has the fields that are looked at next, and only one of so many dimensions has a shape of that length.
        require(self.field(given, _TYPE, _OBJECT), self.object_named(NDARRAY))
        require(self.field(given, _NDIM, _HALF), _HALF(kind.ndim))
        of = self.field(given, _OF, _OBJECT)
        require(self.field(of, _NUMBER, _HALF), _HALF(_NUMBERS[kind.dtype]))
        require(self.field(of, _BYTE_ORDER, _BYTE), _BYTE(ord("=")))
        require(builder.and_(self.field(given, _FLAGS, _HALF), _HALF(_IS_PLAIN)), _HALF(_IS_PLAIN))
        width = kind.dtype.bitwidth // 8
        sizes = self.field(given, _SHAPE, _OBJECT)
        shape = [self.field(sizes, 8 * axis, _WORD) for axis in range(kind.ndim)]
        strides = [_WORD(width)]
        for size in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], size))
        array = context.make_array(kind)(context, builder)
        data = builder.bitcast(self.field(given, _DATA, _OBJECT), array.data.type)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=width, meminfo=None, parent=given)
        return array._getvalue()  # noqa: SLF001 - Numba has no other name for it

    def give_back(self, context: Any, kind: Any, value: Any) -> Any:
        """An object for what the loop has returned."""
        builder = self.builder
        match kind:
            case types.NoneType():
                none = self.object_named(NONE)
                self.call_python("Py_IncRef", ir.VoidType(), none)
                return none
            case types.Integer() if kind == types.int64:
                return self.call_python("PyLong_FromLongLong", _OBJECT, value)
            case types.Array() if kind.dtype in _NUMBERS and kind.layout == "C":
                return self.give_array(context.make_array(kind)(context, builder, value), kind)
            case types.BaseTuple():
                parts = [
                    self.give_back(context, each, builder.extract_value(value, at))
                    for at, each in enumerate(cast("Any", kind))
                ]
                return self.call_python(
                    "Py_BuildValue", _OBJECT, self.text(f"({'N' * len(parts)})"), *parts, is_variadic=1
                )
        raise TypeError(f"{self.loop} returns {kind}")

    def give_array(self, array: Any, kind: Any) -> Any:
        """The very object if it is an array that was passed, or else one for memory that the loop has allocated."""
        builder, found = self.builder, cgutils.alloca_once(self.builder, _OBJECT)
        memory, parent, data = (builder.ptrtoint(each, _WORD) for each in (array.meminfo, array.parent, array.data))
        shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        words = [memory, parent, data, _WORD(kind.dtype.bitwidth // 8), *shape]
        builder.store(_OBJECT(None), found)
        with cgutils.if_likely(builder, builder.icmp_unsigned("==", memory, _WORD(0))):
            is_same = builder.icmp_unsigned("==", data, self.field(array.parent, _DATA, _WORD))
            sizes = self.field(array.parent, _SHAPE, _OBJECT)
            for axis, size in enumerate(shape):
                same_size = builder.icmp_unsigned("==", size, self.field(sizes, 8 * axis, _WORD))
                is_same = builder.and_(is_same, same_size)
            with cgutils.if_likely(builder, is_same):
                self.call_python("Py_IncRef", ir.VoidType(), array.parent)
                builder.store(array.parent, found)
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, builder.load(found))):
            builder.store(self.call_back(RETURNED, words), found)
        return builder.load(found)

    def call_back(self, name: str, words: Sequence[Any]) -> Any:
        """Calls one of `crossing`."""
        takes = self.text("L" * len(words) if len(words) > 1 else "(L)")
        return self.call_python("PyObject_CallFunction", _OBJECT, self.object_named(name), takes, *words, is_variadic=2)


def write_entry(module: ir.Module, symbol: str, loop: str, parameters: Sequence[str], compiled: Any) -> None:
    """The entry of a loop with these parameters, of which Numba has compiled the rest."""
    context, kinds, result = compiled.target_context, compiled.signature.args, compiled.signature.return_type
    entry = Entry(module, symbol, loop)
    builder, convention = entry.builder, context.call_conv
    _, given, count = entry.function.args
    with cgutils.if_unlikely(builder, builder.icmp_signed("!=", count, _WORD(len(kinds)))):
        entry.refuse(f"takes {len(kinds)} arguments")
    arguments = []
    for at, (kind, parameter) in enumerate(zip(kinds, parameters, strict=True)):
        each = builder.load(builder.gep(given, [_WORD(at)]))
        is_array = isinstance(kind, types.Array)
        arguments.append(entry.read_array(context, kind, parameter, each) if is_array else entry.read_word(each))
    own = ir.Function(module, convention.get_function_type(result, kinds), compiled.fndesc.llvm_func_name)
    thread = entry.call_python("PyEval_SaveThread", _OBJECT)
    status, value = convention.call_function(builder, own, result, kinds, arguments, attrs=("noinline",))
    entry.call_python("PyEval_RestoreThread", ir.VoidType(), thread)
    with cgutils.if_unlikely(builder, status.is_error):
        builder.ret(entry.call_back(FAILED, [builder.ptrtoint(status.excinfoptr, _WORD)]))
    builder.ret(entry.give_back(context, result, value))


def write_memory(module: ir.Module) -> None:
    """What arrays that loops make are in: memory of Python's, after a head that Numba's code and `returned` look at."""
    allocate = ir.Function(module, ir.FunctionType(_OBJECT, [_WORD, _HALF]), "NRT_MemInfo_alloc_aligned")
    raw = ir.Function(module, ir.FunctionType(_OBJECT, [_WORD]), "PyMem_RawMalloc")
    builder = ir.IRBuilder(allocate.append_basic_block())
    size, align = allocate.args
    align = builder.zext(align, _WORD)
    found = builder.call(raw, [builder.add(size, builder.add(align, _WORD(_HEAD)))])
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, found)):
        builder.ret(_OBJECT(None))
    end = builder.add(builder.ptrtoint(found, _WORD), builder.add(align, _WORD(_HEAD - 1)))
    data = builder.and_(end, builder.neg(align))
    # How many have it, nothing to do at the end and with nothing, where it begins, and its size.
    head = builder.bitcast(found, _WORD.as_pointer())
    for at, word in enumerate((_WORD(1), _WORD(0), _WORD(0), data, size)):
        builder.store(word, builder.gep(head, [_WORD(at)]))
    builder.ret(found)
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [_OBJECT]), "NRT_MemInfo_call_dtor")
    builder = ir.IRBuilder(free.append_basic_block())
    builder.call(ir.Function(module, free.function_type, "PyMem_RawFree"), free.args)
    builder.ret_void()
    allocate.linkage = free.linkage = "linkonce_odr"
