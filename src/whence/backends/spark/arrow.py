"""Columns between Arrow, as Spark hands them to tasks, and the words of the local backend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whence.backends.local.words import Dictionary, Words, nil_word
from whence.backends.spark.shapes import BRANCH, Shapes
from whence.io.values import format_value, parse_value
from whence.lang.deep import compound
from whence.lang.functors import to_signed, to_unsigned
from whence.lang.scalars import of_whole, to_whole
from whence.lang.types import (
    FLOAT,
    NUMBER,
    SYMBOL,
    UNSIGNED,
    AdtKind,
    Field,
    Kind,
    ListKind,
    Nullable,
    RecordKind,
    Value,
    Variant,
    base,
    is_whole,
)

_SIMPLE = {UNSIGNED: pa.int64(), FLOAT: pa.float64(), SYMBOL: pa.string()}


def arrow_type(kind: Kind, shapes: Shapes) -> pa.DataType:
    kind = base(kind)
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if is_whole(kind):
        return pa.int64()
    if shapes.is_text(kind):
        return pa.string()
    match kind:
        case ListKind(element):
            return pa.list_(arrow_type(element, shapes))
        case RecordKind():
            return _struct(shapes.fields_of(kind), shapes)
        case AdtKind():
            branches = [(branch, _struct(fields, shapes)) for branch, fields in shapes.branches_of(kind).items()]
            return pa.struct([(BRANCH, pa.string()), *branches])
    raise AssertionError(kind)


def _struct(fields: tuple[Field, ...], shapes: Shapes) -> pa.DataType:
    return pa.struct([(each.name, arrow_type(each.kind, shapes)) for each in fields])


def to_words(array: pa.Array, kind: Kind, shapes: Shapes, dictionary: Dictionary) -> Words:
    if isinstance(kind, Nullable):
        return _nullable_to_words(array, kind, shapes, dictionary)
    if kind == UNSIGNED or is_whole(kind):
        words: Words = array.to_numpy(zero_copy_only=False)
        return words
    if kind == FLOAT:
        return dictionary.encode_column(array.to_numpy(zero_copy_only=False), kind)
    if kind == SYMBOL:
        encoded = array.dictionary_encode()
        numbers = np.array([dictionary.number(text) for text in encoded.dictionary.to_pylist()], dtype=np.int64)
        return numbers[encoded.indices.to_numpy(zero_copy_only=False)] if len(numbers) else numbers
    return dictionary.encode_column(to_values(array, kind, shapes), kind)


def _nullable_to_words(array: pa.Array, kind: Nullable, shapes: Shapes, dictionary: Dictionary) -> Words:
    if not array.null_count:
        return to_words(array, kind.of, shapes, dictionary)
    words: Words = np.full(len(array), nil_word(kind), dtype=np.int64)
    valid = array.is_valid()
    words[valid.to_numpy(zero_copy_only=False)] = to_words(array.filter(valid), kind.of, shapes, dictionary)
    return words


class Texts:
    """The symbols of a dictionary as an Arrow array, from which columns of symbols are taken."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.array = pa.array(dictionary.values, pa.string())

    def take(self, words: Words) -> pa.Array:
        return self.array.take(pa.array(words))


def from_words(words: Words, kind: Kind, shapes: Shapes, dictionary: Dictionary, texts: Texts) -> pa.Array:
    if isinstance(kind, Nullable) and kind.of != SYMBOL:
        array = from_words(words, kind.of, shapes, dictionary, texts)
        return pc.if_else(pa.array(words == nil_word(kind)), pa.scalar(None, array.type), array)
    kind = base(kind)  # the text of nil is null
    if kind == UNSIGNED or is_whole(kind):
        return pa.array(words)
    if kind == FLOAT:
        return pa.array(np.ascontiguousarray(words).view(np.float64))
    if kind == SYMBOL:
        return texts.take(words)
    return from_values(dictionary.decode_column(words, kind), kind, shapes)


def to_values(array: pa.Array, kind: Kind, shapes: Shapes) -> list[Value]:
    """The values of an array, in the language's form."""
    read = _reader(kind, shapes)
    return [read(item) for item in array.to_pylist()]


def from_values(values: list[Value], kind: Kind, shapes: Shapes) -> pa.Array:
    write = _writer(kind, shapes)
    return pa.array([write(value) for value in values], arrow_type(kind, shapes))


def _reader(kind: Kind, shapes: Shapes) -> Callable[..., Value]:
    if isinstance(kind, Nullable):
        read_present = _reader(kind.of, shapes)
        return lambda item: None if item is None else read_present(item)
    if kind in (NUMBER, FLOAT, SYMBOL):
        return lambda item: item
    if kind == UNSIGNED:
        return to_unsigned
    if is_whole(kind):
        return of_whole(kind)
    if shapes.is_text(kind):
        return lambda text: parse_value(text, kind, shapes.types)
    match kind:
        case ListKind(element):
            read = _reader(element, shapes)
            return lambda items: compound(read(item) for item in items)
        case RecordKind():
            fields = _readers(shapes.fields_of(kind), shapes)
            return lambda item: None if item is None else tuple(read(item[name]) for name, read in fields)
        case AdtKind():
            branches = {branch: _readers(parts, shapes) for branch, parts in shapes.branches_of(kind).items()}

            def read_branch(item: dict[str, dict[str, object]]) -> Value:
                branch = str(item[BRANCH])
                return Variant(branch, tuple(read(item[branch][name]) for name, read in branches.get(branch, ())))

            return read_branch
    raise AssertionError(kind)


def _readers(fields: tuple[Field, ...], shapes: Shapes) -> list[tuple[str, Callable[..., Value]]]:
    return [(each.name, _reader(each.kind, shapes)) for each in fields]


def _writer(kind: Kind, shapes: Shapes) -> Callable[..., object]:
    if isinstance(kind, Nullable):
        write_present = _writer(kind.of, shapes)
        return lambda value: None if value is None else write_present(value)
    if kind in (NUMBER, FLOAT, SYMBOL):
        return lambda value: value
    if kind == UNSIGNED:
        return to_signed
    if is_whole(kind):
        return to_whole(kind)
    if shapes.is_text(kind):
        return lambda value: format_value(value, kind, shapes.types)
    match kind:
        case ListKind(element):
            write = _writer(element, shapes)
            return lambda items: [write(item) for item in items]
        case RecordKind():
            fields = _writers(shapes.fields_of(kind), shapes)
            return lambda value: None if value is None else _written(value, fields)
        case AdtKind():
            branches = {branch: _writers(parts, shapes) for branch, parts in shapes.branches_of(kind).items()}

            def write_branch(value: Variant) -> object:
                fields = branches.get(value.branch)
                return {BRANCH: value.branch} | ({} if fields is None else {value.branch: _written(value.args, fields)})

            return write_branch
    raise AssertionError(kind)


def _writers(fields: tuple[Field, ...], shapes: Shapes) -> list[tuple[str, Callable[..., object]]]:
    return [(each.name, _writer(each.kind, shapes)) for each in fields]


def _written(values: tuple[Value, ...], fields: list[tuple[str, Callable[..., object]]]) -> dict[str, object]:
    return {name: write(value) for (name, write), value in zip(fields, values, strict=True)}
