"""Values as Arrow arrays, column by column.

Records are structs and `nil` is null. A value of an algebraic data type is a struct with its branch under `$` and a struct
for each branch, null but for the one it is. Lists are lists. Arrow has no types that contain themselves: values of such types
are given as the text they have in fact files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import pyarrow as pa

from whence.io.values import format_value
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    AdtKind,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    Primitive,
    RecordKind,
    Types,
    Value,
    Variant,
    base,
)

BRANCH = "$"
_PRIMITIVES: Mapping[Kind, pa.DataType] = {
    NUMBER: pa.int64(),
    UNSIGNED: pa.uint64(),
    FLOAT: pa.float64(),
    SYMBOL: pa.string(),
    BOOL: pa.bool_(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us"),
}


def as_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_stream(stream: bytes) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()


def arrow_schema(fields: Sequence[Field], types: Types) -> pa.Schema:
    return pa.schema([(field.name, arrow_type(field.kind, types)) for field in fields])


def arrow_type(kind: Kind, types: Types) -> pa.DataType:
    """
    >>> arrow_type(ListKind(NUMBER), Types())
    ListType(list<item: int64>)
    """
    kind = base(kind)
    if isinstance(kind, DecimalKind):
        return pa.decimal128(kind.precision, kind.scale)
    if kind in _PRIMITIVES or _contains_itself(kind, types):
        return _PRIMITIVES.get(kind, pa.string())
    match kind:
        case ListKind(element=element):
            return pa.list_(arrow_type(element, types))
        case RecordKind(name=name):
            return _struct(types.records[name], types)
        case AdtKind(name=name):
            branches = [(branch, _struct(fields, types)) for branch, fields in types.adts[name].items()]
            return pa.struct([(BRANCH, pa.string()), *branches])
    raise AssertionError(kind)


def arrow_array(values: Sequence[Value], kind: Kind, types: Types) -> pa.Array:
    """None stands for `nil`, and for a value that is not there because its parent is not."""
    kind = base(kind)
    if isinstance(kind, Primitive):
        return pa.array(values, arrow_type(kind, types))
    if _contains_itself(kind, types):
        return pa.array([format_value(value, kind, types) for value in values], pa.string())
    match kind:
        case ListKind(element=element):
            return _list_array([_items(value) for value in values], element, types)
        case RecordKind(name=name):
            return _struct_array(values, types.records[name], types)
        case AdtKind(name=name):
            parts = [pa.array([value.branch if isinstance(value, Variant) else None for value in values], pa.string())]
            for branch, fields in types.adts[name].items():
                arguments = [
                    value.args if isinstance(value, Variant) and value.branch == branch else None for value in values
                ]
                parts.append(_struct_array(arguments, fields, types))
            return pa.StructArray.from_arrays(parts, fields=list(arrow_type(kind, types)), mask=_missing(values))
    raise AssertionError(kind)


def _struct(fields: Sequence[Field], types: Types) -> pa.DataType:
    return pa.struct([(field.name, arrow_type(field.kind, types)) for field in fields])


def _struct_array(values: Sequence[Value], fields: Sequence[Field], types: Types) -> pa.Array:
    if not fields:
        return pa.array([None if value is None else {} for value in values], pa.struct([]))
    parts = [
        arrow_array([_items(value)[at] if value is not None else None for value in values], field.kind, types)
        for at, field in enumerate(fields)
    ]
    return pa.StructArray.from_arrays(parts, fields=list(_struct(fields, types)), mask=_missing(values))


def _list_array(values: Sequence[tuple[Value, ...]], element: Kind, types: Types) -> pa.Array:
    ends = pa.array(accumulate((len(value) for value in values), initial=0), pa.int32())
    return pa.ListArray.from_arrays(ends, arrow_array([item for value in values for item in value], element, types))


def _items(value: Value) -> tuple[Value, ...]:
    """The parts of a record or list; an absent list has none."""
    return value if isinstance(value, tuple) else ()


def _missing(values: Sequence[Value]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _contains_itself(kind: Kind, types: Types) -> bool:
    """Whether a value of this kind may hold another of a kind on the way to it."""

    def visit(each: Kind, above: tuple[Kind, ...]) -> bool:
        if each in above:
            return True
        return any(visit(part, (*above, each)) for part in _parts(each, types))

    return visit(kind, ())


def _parts(kind: Kind, types: Types) -> list[Kind]:
    match kind:
        case ListKind(element=element):
            return [element]
        case RecordKind(name=name):
            return [field.kind for field in types.records[name]]
        case AdtKind(name=name):
            return [field.kind for fields in types.adts[name].values() for field in fields]
        case _:
            return []
