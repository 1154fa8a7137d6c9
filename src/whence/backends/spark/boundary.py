"""DataFrames in and out: columns found by name, types that fit, nulls refused or dropped.

Inside, a relation is a DataFrame with the columns c0, c1, …, in the shapes of `shapes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import NoReturn

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from whence.backends.spark.arrow import from_values, to_values
from whence.backends.spark.shapes import BRANCH, UNIT, Shapes, name, string
from whence.backends.spark.udfs import as_udf
from whence.io.values import format_value, parse_value
from whence.lang.program import Relation
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    RESERVED,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    AdtKind,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    Nullable,
    Primitive,
    RecordKind,
    Tuple,
    Types,
    base,
    is_whole,
    may_be_nil,
)

NULLS = ("refuse", "drop")
_SMALL = (ByteType, ShortType, IntegerType)
_TEXT = (StringType, CharType, VarcharType)
_MICROS = "timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {})"
_ISO = "yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS"


_OUTGOING: dict[Kind, str] = {
    BOOL: "({} != 0L)",
    DATE: "date_from_unix_date(int({}))",
    TIMESTAMP: "timestampadd(MICROSECOND, {}, timestamp_ntz'1970-01-01 00:00:00')",
}
_YEARS: dict[Kind, tuple[date, date]] = {DATE: (date.min, date.max), TIMESTAMP: (datetime.min, datetime.max)}  # noqa: DTZ901


class SchemaError(ValueError):
    """A DataFrame does not fit the relation it is given for."""


def columns(relation: Relation) -> list[str]:
    """The names of a relation's columns inside."""
    return [f"c{at}" for at in range(relation.arity)] or [UNIT]


def bring_in(frame: DataFrame, relation: Relation, shapes: Shapes, nulls: str) -> DataFrame:
    """A DataFrame given for a relation, as it looks inside. Raises `SchemaError`."""
    if relation.arity == 0:
        return frame.limit(1).select(F.lit(True).alias(UNIT))
    found = _pair_columns(frame, relation)
    if nulls == "drop":
        needed = [each for each, part in zip(found, relation.fields, strict=True) if _is_required(part.kind)]
        frame = frame.dropna(subset=needed) if needed else frame
    parsed = _Incoming(shapes)
    texts = []
    for at, (each, part) in enumerate(zip(found, relation.fields, strict=True)):
        where = f"relation {relation.name}, column {each}"
        texts.append(f"{parsed.required(name(each), frame.schema[each].dataType, part.kind, where)} as c{at}")
    return _with_parsed(frame.selectExpr(*texts), relation, shapes)


def copies(frame: DataFrame) -> DataFrame:
    """The second, third … copy of each row of a table that was brought in, with their numbers behind the columns."""
    counted = frame.groupBy(*frame.columns).agg(F.count(F.lit(1)).alias("copies")).filter("copies > 1")
    return counted.selectExpr(*frame.columns, f"explode(sequence(2L, copies)) as c{len(frame.columns)}")


def take_out(frame: DataFrame, relation: Relation, shapes: Shapes) -> DataFrame:
    """A relation as the user sees it: under the names of its declaration."""
    if relation.arity == 0:
        return frame
    named = zip(relation.fields, columns(relation), strict=True)
    return frame.selectExpr(*(f"{_outgoing(column, part.kind, shapes)} as {name(part.name)}" for part, column in named))


def inner_rows(spark: SparkSession, rows: Sequence[Tuple], relation: Relation, shapes: Shapes) -> DataFrame:
    """Tuples as a DataFrame, as it looks inside."""
    if relation.arity == 0:
        return spark.range(len(rows)).selectExpr(f"true as {UNIT}")
    values = zip(*rows, strict=True) if rows else [()] * relation.arity
    named = zip(columns(relation), values, relation.fields, strict=True)
    return spark.createDataFrame(
        pa.table({column: from_values(list(each), part.kind, shapes) for column, each, part in named})
    )


def rows_to_frame(spark: SparkSession, rows: Sequence[Tuple], relation: Relation, shapes: Shapes) -> DataFrame:
    """Tuples as a DataFrame that a user could have given for the relation."""
    return take_out(inner_rows(spark, rows, relation, shapes), relation, shapes)


def frame_to_rows(frame: DataFrame, relation: Relation, shapes: Shapes) -> list[Tuple]:
    """The tuples of a relation that was taken out, collected."""
    if relation.arity == 0:
        return [()] * frame.count()
    table = bring_in(frame, relation, shapes, "refuse").toArrow()
    named = zip(table.columns, relation.fields, strict=True)
    return list(zip(*(to_values(each, part.kind, shapes) for each, part in named), strict=True))


def _pair_columns(frame: DataFrame, relation: Relation) -> list[str]:
    """The DataFrame's column for each of the relation's: by name, or in order where no name is the same."""
    wanted = [each.name for each in relation.fields]
    there = {each.lower(): each for each in frame.columns}
    matched = [there.get(each.lower()) for each in wanted]
    if all(matched):
        return [each for each in matched if each is not None]
    if not any(matched) and len(there) == len(frame.columns) == len(wanted):
        return list(frame.columns)
    missing = ", ".join(each for each, match in zip(wanted, matched, strict=True) if match is None)
    raise SchemaError(
        f"relation {relation.name} has the columns {', '.join(wanted)}; the DataFrame has {', '.join(frame.columns)}, "
        f"without {missing}. Rename its columns, or give {len(wanted)} columns in this order under other names"
    )


def _is_required(kind: Kind) -> bool:
    return not may_be_nil(kind)


class _Incoming:
    """Columns from outside as SQL that has the shape of a kind, or fails where a value does not fit."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes

    def required(self, value: str, found: DataType, kind: Kind, where: str) -> str:
        """With a check for null, which nil may be, and for the number that nil takes the place of."""
        converted = self.convert(value, found, base(kind), where)
        if not _is_required(kind):
            return self._told_apart(converted, kind, where) if isinstance(kind, Nullable) else converted
        advice = (
            f"declare it as {kind}? if it may be nil; evaluate(…, nulls='drop') leaves out rows with a null"
            if "." not in where
            else "null is not a value"
        )
        return f"coalesce({converted}, raise_error({string(f'{where}: there is a null; {advice}')}))"

    def _told_apart(self, converted: str, kind: Nullable, where: str) -> str:
        if kind.of not in RESERVED:
            return converted
        problem = string(f"{where}: {RESERVED[kind.of]} is out of range for {kind}")
        return (
            f"if({converted} = {self.shapes.literal(RESERVED[kind.of], kind.of)}, raise_error({problem}), {converted})"
        )

    def convert(self, value: str, found: DataType, kind: Kind, where: str) -> str:
        if isinstance(found, NullType):
            return f"cast({value} as {self.shapes.sql_type(kind)})"
        if self.shapes.is_text(kind):
            return value if isinstance(found, _TEXT) else self._misfit(found, kind, where)
        if kind == NUMBER:
            return self._number(value, found, kind, where)
        if kind == UNSIGNED:
            return self._unsigned(value, found, kind, where)
        if kind == FLOAT:
            return self._float(value, found, kind, where)
        if kind == SYMBOL:
            return self._symbol(value, found, kind, where)
        if isinstance(kind, DecimalKind):
            return self._decimal(value, found, kind, where)
        if is_whole(kind):
            return self._moment(value, found, kind, where)
        match kind, found:
            case ListKind(element), ArrayType(elementType=inner):
                return f"transform({value}, item -> {self.required('item', inner, element, f'{where}.item')})"
            case RecordKind(), StructType():
                parts = self._fields(value, found, self.shapes.fields_of(kind), kind, where)
                return f"if({value} is null, null, {self.shapes.record(kind, parts)})"
            case AdtKind(), StructType():
                return self._branch(value, found, kind, where)
            case _:
                return self._misfit(found, kind, where)

    def _number(self, value: str, found: DataType, kind: Kind, where: str) -> str:
        match found:
            case LongType():
                return value
            case ByteType() | ShortType() | IntegerType():
                return f"bigint({value})"
            case DecimalType(scale=0, precision=precision) if precision <= 18:
                return f"bigint({value})"
            case DateType():
                return f"bigint(unix_date({value}))"
            case TimestampType():
                return f"unix_micros({value})"
            case TimestampNTZType():
                return _MICROS.format(value)
            case _:
                return self._misfit(found, kind, where)

    def _unsigned(self, value: str, found: DataType, kind: Kind, where: str) -> str:
        if isinstance(found, (*_SMALL, LongType)):
            bits, fits = f"bigint({value})", f"{value} >= 0"
        elif isinstance(found, DecimalType) and found.scale == 0:
            bits = f"bigint(if({value} > 9223372036854775807BD, {value} - 18446744073709551616BD, {value}))"
            fits = f"{value} between 0BD and 18446744073709551615BD"
        else:
            return self._misfit(found, kind, where)
        problem = string(f"{where}: a number is outside the range of unsigned")
        return f"case when {value} is null then null when {fits} then {bits} else raise_error({problem}) end"

    def _float(self, value: str, found: DataType, kind: Kind, where: str) -> str:
        if isinstance(found, (*_SMALL, DecimalType)):
            return f"double({value})"
        if not isinstance(found, FloatType | DoubleType):
            self._misfit(found, kind, where)
        problem = string(f"{where}: there is a NaN, which is not a value")
        return f"if(isnan({value}), raise_error({problem}), double({value}) + 0D)"

    def _decimal(self, value: str, found: DataType, kind: DecimalKind, where: str) -> str:
        is_integer = isinstance(found, (*_SMALL, LongType))
        if not is_integer and not isinstance(found, DecimalType):
            self._misfit(found, kind, where)
        units = f"try_multiply(cast({value} as decimal(38,18)), 1{'0' * kind.scale}BD)"
        if is_integer:
            units = f"cast({value} as decimal(19,0)) * 1{'0' * kind.scale}BD"
        fits = f"{units} = floor({units}) and abs({units}) < 1{'0' * kind.precision}BD"
        problem = string(f"{where}: there is a value that is not a {kind}")
        return f"if({value} is null, null, if({fits}, cast({units} as bigint), raise_error({problem})))"

    def _moment(self, value: str, found: DataType, kind: Kind, where: str) -> str:
        """A truth value, a date or a timestamp; what has a zone is taken in UTC."""
        match found:
            case BooleanType() if kind == BOOL:
                return f"bigint({value})"
            case DateType() if kind == DATE:
                return self._in_years(f"bigint(unix_date({value}))", kind, where)
            case TimestampType() if kind == TIMESTAMP:
                return self._in_years(f"unix_micros({value})", kind, where)
            case TimestampNTZType() if kind == TIMESTAMP:
                return self._in_years(_MICROS.format(value), kind, where)
            case _:
                return self._misfit(found, kind, where)

    def _in_years(self, value: str, kind: Kind, where: str) -> str:
        low, high = (self.shapes.literal(each, kind) for each in _YEARS[kind])
        problem = string(f"{where}: there is a {kind} that is not in the years 1 to 9999")
        return f"if({value} not between {low} and {high}, raise_error({problem}), {value})"

    def _symbol(self, value: str, found: DataType, kind: Kind, where: str) -> str:
        match found:
            case StringType() | CharType() | VarcharType():
                return f"string({value})"
            case DateType():
                return f"string({value})"
            case TimestampType():
                return f"date_format(to_utc_timestamp({value}, current_timezone()), '{_ISO}\\'Z\\'')"
            case TimestampNTZType():
                return f"date_format({value}, '{_ISO}')"
            case _:
                return self._misfit(found, kind, where)

    def _fields(self, value: str, found: StructType, fields: tuple[Field, ...], kind: Kind, where: str) -> list[str]:
        there = {each.name.lower(): each for each in found.fields}
        if len(there) != len(fields) or any(each.name.lower() not in there for each in fields):
            self._misfit(found, kind, where)
        parts = [(there[each.name.lower()], each) for each in fields]
        return [
            self.required(f"{value}.{name(inner.name)}", inner.dataType, each.kind, f"{where}.{each.name}")
            for inner, each in parts
        ]

    def _branch(self, value: str, found: StructType, kind: AdtKind, where: str) -> str:
        there = {each.name.lower(): each for each in found.fields}
        branches = self.shapes.types.adts[kind.name]
        unknown = there.keys() - {BRANCH, *(each.lower() for each in branches)}
        if BRANCH not in there or unknown:
            self._misfit(found, kind, where)
        tag = f"{value}.{name(there[BRANCH].name)}"
        cases = []
        for branch, fields in branches.items():
            inner = there.get(branch.lower())
            if fields and (inner is None or not isinstance(inner.dataType, StructType)):
                self._misfit(found, kind, where)
            parts = []
            if fields and inner is not None and isinstance(inner.dataType, StructType):
                below = f"{value}.{name(inner.name)}"
                parts = self._fields(below, inner.dataType, fields, kind, f"{where}.{branch}")
            cases.append(f"when {string(branch)} then {self.shapes.branch(kind, branch, parts)}")
        problem = string(f"{where}: {kind} has no branch of this name: ")
        return f"case {tag} {' '.join(cases)} else if({tag} is null, null, raise_error({problem} || {tag})) end"

    def _misfit(self, found: DataType, kind: Kind, where: str) -> NoReturn:
        wanted = self.shapes.sql_type(kind, outside=True)
        raise SchemaError(f"{where}: found {found.simpleString()}, wanted {wanted} for {kind}")


def _with_parsed(frame: DataFrame, relation: Relation, shapes: Shapes) -> DataFrame:
    """Values that travel as text in their one way of writing, so that equal values are equal texts."""
    at_text = {f"c{at}": each for at, each in enumerate(relation.fields) if shapes.is_text(each.kind)}
    if not at_text:
        return frame
    canonical = {
        column: as_udf(_rewriter(each.kind, shapes.types, f"relation {relation.name}, column {each.name}"), "string")
        for column, each in at_text.items()
    }
    return frame.select(
        *(canonical[each](each).alias(each) if each in canonical else F.col(each) for each in frame.columns)
    )


def _rewriter(kind: Kind, types: Types, where: str) -> Callable[[pa.Array], pa.Array]:
    def rewrite(texts: pa.Array) -> pa.Array:
        try:
            values = [parse_value(text, kind, types) for text in texts.to_pylist()]
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        return pa.array([format_value(value, kind, types) for value in values], pa.string())

    return rewrite


def _outgoing(value: str, kind: Kind, shapes: Shapes) -> str:
    """A value in its outer shape: only what holds unsigned numbers differs."""
    if shapes.sql_type(kind) == shapes.sql_type(kind, outside=True):
        return value
    match base(kind):
        case ListKind(element):
            return f"transform({value}, item -> {_outgoing('item', element, shapes)})"
        case RecordKind() as record:
            return f"if({value} is null, null, {_outgoing_struct(value, shapes.fields_of(record), shapes)})"
        case AdtKind() as adt:
            members = [f"{string(BRANCH)}, {value}.{BRANCH}"]
            for branch, fields in shapes.branches_of(adt).items():
                below = f"{value}.{name(branch)}"
                members.append(
                    f"{string(branch)}, if({below} is null, null, {_outgoing_struct(below, fields, shapes)})"
                )
            return f"named_struct({', '.join(members)})"
        case DecimalKind() as decimal:
            return f"cast(cast({value} as decimal(19,0)) / 1{'0' * decimal.scale}BD as {decimal.name})"
        case Primitive() as primitive if primitive in _OUTGOING:
            return _OUTGOING[primitive].format(value)
        case _:
            shifted = f"cast({value} as decimal(20,0)) + if({value} < 0, 18446744073709551616BD, 0BD)"
            return f"cast({shifted} as decimal(20,0))"


def _outgoing_struct(value: str, fields: tuple[Field, ...], shapes: Shapes) -> str:
    parts = (f"{string(each.name)}, {_outgoing(f'{value}.{name(each.name)}', each.kind, shapes)}" for each in fields)
    return f"named_struct({', '.join(parts)})"
