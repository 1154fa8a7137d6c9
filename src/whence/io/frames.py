"""Tables that people have: Parquet, Arrow and JSON-lines files; DataFrames of pandas, polars and Spark, relations of DuckDB.

All of them speak Arrow. Columns are found by name, whatever their case, or by position if no name fits; they may be in another
type that holds the same values, dates and times may become text. A null is nil, and an error with its row where that may not be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from whence.io.errors import FactError
from whence.lang.program import Relation
from whence.lang.scalars import read_text
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    RESERVED,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    DecimalKind,
    Field,
    Kind,
    Nullable,
    Tuple,
    base,
)

if TYPE_CHECKING:
    import pyarrow as pa

_BOUND = "the values of column {name} do not fit {kind}"


class Frame(Protocol):
    """A table that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def is_frame(given: object) -> TypeGuard[Frame]:
    """Whether it is one; Spark's and the lazy ones of polars say it in their own ways."""
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "toArrow") or _is_lazy(given)


def table_of(given: Any) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and most do without

    if _is_lazy(given):
        given = given.collect()
    return given.toArrow() if hasattr(given, "toArrow") else pa.table(given)


def _is_lazy(given: object) -> bool:
    return hasattr(given, "collect_schema") and hasattr(given, "collect")


def rows_of_table(table: pa.Table, relation: Relation, name: str) -> list[Tuple]:
    """Raises FactError, with `name` for what the table is called."""
    if not relation.fields:
        return [()] * min(1, len(table))
    columns = [_values(table.column(at), field, name) for at, field in places(table.column_names, relation, name)]
    return list(zip(*columns, strict=True))


def places(names: list[str], relation: Relation, where: str) -> list[tuple[int, Field]]:
    """Where the columns of a relation are. Raises FactError."""
    folded = [each.casefold() for each in names]
    if all(field.name.casefold() in folded for field in relation.fields):
        return [(folded.index(field.name.casefold()), field) for field in relation.fields]
    if len(names) != len(relation.fields):
        missing = next(field.name for field in relation.fields if field.name.casefold() not in folded)
        raise FactError([f"{where} has no column {missing}"], hints=[f"its columns are {', '.join(names)}"])
    return list(enumerate(relation.fields))


def _values(column: pa.ChunkedArray, field: Field, where: str) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if column.null_count and not isinstance(field.kind, Nullable):
        row = pc.index(pc.is_null(column), pa.scalar(value=True)).as_py()
        raise FactError(
            [f"{where}, row {row + 1}: column {field.name} is null"],
            hints=[f"declare it as {field.kind}? if it may be nil, or leave the row out"],
        )
    kinds: Mapping[Kind, pa.DataType] = {
        NUMBER: pa.int64(), UNSIGNED: pa.uint64(), FLOAT: pa.float64(), SYMBOL: pa.string(),
        BOOL: pa.bool_(), DATE: pa.date32(), TIMESTAMP: pa.timestamp("us"),
    }  # fmt: skip
    kind = base(field.kind)
    wanted = pa.decimal128(kind.precision, kind.scale) if isinstance(kind, DecimalKind) else kinds.get(kind)
    if wanted is None:
        raise FactError([f"{where}: column {field.name} of kind {field.kind} cannot be read from a table"])
    if column.type != pa.null():
        _refuse_other(column.type, field, where)
    try:
        values: list[Any] = column.cast(wanted).to_pylist()
    except (pa.ArrowInvalid, OverflowError, ValueError) as error:  # years that Python has not, among others
        raise FactError([f"{where}: {_BOUND.format(name=field.name, kind=field.kind)}: {error}"]) from None
    if isinstance(field.kind, Nullable) and field.kind.of in RESERVED and RESERVED[field.kind.of] in values:
        problem = f"{RESERVED[field.kind.of]} is the one {field.kind.of} that a {field.kind} cannot be"
        raise FactError([f"{where}: {_BOUND.format(name=field.name, kind=field.kind)}: {problem}"])
    return values


def _refuse_other(found: pa.DataType, field: Field, where: str) -> None:
    """Numbers are not made of text, nor text of numbers: what looks alike may be something else."""
    import pyarrow as pa  # noqa: PLC0415

    value = found.value_type if pa.types.is_dictionary(found) else found
    is_number = pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_decimal(value)
    is_text = pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value)
    is_time = pa.types.is_temporal(value)
    fits: Mapping[Kind, bool] = {
        NUMBER: is_number or pa.types.is_boolean(value),
        UNSIGNED: is_number or pa.types.is_boolean(value),
        FLOAT: is_number,
        SYMBOL: is_text or is_time,
        BOOL: pa.types.is_boolean(value),
        DATE: pa.types.is_date(value),
        TIMESTAMP: pa.types.is_timestamp(value) or pa.types.is_date(value),
    }
    kind = base(field.kind)
    if not (pa.types.is_integer(value) or pa.types.is_decimal(value) if isinstance(kind, DecimalKind) else fits[kind]):
        raise FactError([f"{where}: column {field.name} holds {found}, not {field.kind}"])


# -- files

Read = Callable[[Path, Relation], "pa.Table"]


def _parquet(path: Path, relation: Relation) -> pa.Table:
    """Texts as they are in the file: each once, by its number."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.read_table(path, read_dictionary=[each.name for each in relation.fields if base(each.kind) == SYMBOL])


def _arrow(path: Path, _: Relation) -> pa.Table:
    """A file of Arrow's, of either form, or a stream of it that was written to one."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import feather  # noqa: PLC0415

    with path.open("rb") as file:
        is_file = file.read(4) in (b"ARRO", b"FEA1")
    if is_file:
        return feather.read_table(path)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_stream(source).read_all()


def _json_lines(path: Path, relation: Relation) -> pa.Table:
    """Decimals digit by digit, and text as it is: what looks like a time is one only where the relation holds times."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import json  # noqa: PLC0415

    table = json.read_json(path)
    exact: dict[str, pa.DataType] = {}
    for at, field in places(table.column_names, relation, str(path)):
        name, found, kind = table.column_names[at], table.schema.field(at).type, base(field.kind)
        if isinstance(kind, DecimalKind) and (pa.types.is_floating(found) or pa.types.is_string(found)):
            exact[name] = pa.decimal128(kind.precision, kind.scale)
        elif pa.types.is_timestamp(found):
            exact[name] = pa.string()
    if exact:
        options = json.ParseOptions(explicit_schema=pa.schema(exact.items()))
        table = json.read_json(path, parse_options=options)
    for at, field in places(table.column_names, relation, str(path)):
        if base(field.kind) in (DATE, TIMESTAMP) and pa.types.is_string(table.schema.field(at).type):
            table = table.set_column(at, table.column_names[at], _moments(table.column(at), field, str(path)))
    return table


def _moments(column: pa.ChunkedArray, field: Field, where: str) -> pa.Array:
    """Dates or timestamps of text, which JSON has for them."""
    import pyarrow as pa  # noqa: PLC0415

    kind = base(field.kind)
    values: list[Any] = []
    for row, text in enumerate(column.to_pylist(), 1):
        try:
            values.append(None if text is None else read_text(text, kind))
        except ValueError:
            raise FactError([f"{where}, row {row}: column {field.name}: {text!r} is not a {kind}"]) from None
    return pa.array(values, pa.date32() if kind == DATE else pa.timestamp("us"))


FORMATS: Mapping[str, Read] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".arrows": _arrow,
    ".feather": _arrow,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}


def read_table_file(path: Path, relation: Relation) -> list[Tuple]:
    """The rows of a file whose ending is among `FORMATS`; a folder of Parquet files is one, too. Raises FactError."""
    return rows_of_table(table_in(path, relation), relation, str(path))


def table_in(path: Path, relation: Relation) -> pa.Table:
    """Raises FactError."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        return FORMATS[path.suffix](path, relation)
    except (pa.ArrowException, OSError) as error:
        raise FactError([f"{path} cannot be read: {str(error).splitlines()[0]}"]) from None


def found_beside(path: Path, endings: Iterable[str] = (".csv", *FORMATS)) -> Path | None:
    """Another file of the same name, for a relation whose `.facts` file is not there."""
    return next((other for ending in endings if (other := path.with_suffix(ending)).exists()), None)
