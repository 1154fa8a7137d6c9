"""Functors and comparisons as SQL, with exactly the language's meaning; null is "no value".

Spark raises on overflow or answers null, depending on its mode; numbers here wrap around in both. What SQL computes differently
(powers, regular expressions, texts of floats, …) and registered functions are Arrow UDFs that call the language's definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from whence.backends.spark.arrow import from_values, to_values
from whence.backends.spark.shapes import Shapes
from whence.backends.spark.udfs import as_udf
from whence.lang.calls import FunctionError, checked_call
from whence.lang.functors import cast, holds, implementation, ordinal
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    UNSIGNED,
    DecimalKind,
    Kind,
    ListKind,
    Types,
    Value,
    base,
    is_whole,
    may_be_nil,
)
from whence.lang.undefined import Undefined

_WORD = "18446744073709551616BD"
_HALF = "9223372036854775808BD"
_LOWEST = "bigint('-9223372036854775808')"


def wrapped(decimal: str) -> str:
    """A decimal as a number of 64 bits."""
    return f"bigint(pmod({decimal} + {_HALF}, {_WORD}) - {_HALF})"


def _wrapping(function: str, sign: str) -> Callable[..., str]:
    def operate(left: str, right: str) -> str:
        exact = f"cast({left} as decimal(19,0)) {sign} cast({right} as decimal(19,0))"
        return f"coalesce({function}({left}, {right}), {wrapped(exact)})"

    return operate


def _negated(value: str) -> str:
    return f"if({value} = {_LOWEST}, {value}, -{value})"


def _divided(left: str, right: str) -> str:
    return f"if({right} = -1L, {_negated(left)}, {left} div nullif({right}, 0L))"


def _shift(function: str) -> Callable[[str, str], str]:
    return lambda value, by: f"{function}({value}, int({by} & 63L))"


def _truth(condition: str) -> str:
    return f"if({condition}, 1L, 0L)"


_NUMBER: Mapping[str, Callable[..., str]] = {
    "+": _wrapping("try_add", "+"),
    "-": lambda left, right=None: _negated(left) if right is None else _wrapping("try_subtract", "-")(left, right),
    "*": _wrapping("try_multiply", "*"),
    "/": _divided,
    "%": lambda left, right: f"if({right} = -1L, 0L, {left} % nullif({right}, 0L))",
    "bshr": _shift("shiftright"),
    "min": lambda *args: f"least({', '.join(args)})",
    "max": lambda *args: f"greatest({', '.join(args)})",
}
# The same for numbers and unsigned numbers, on their bits.
_BITS: Mapping[str, Callable[..., str]] = {
    "+": _NUMBER["+"],
    "-": _NUMBER["-"],
    "*": _NUMBER["*"],
    "band": lambda left, right: f"({left} & {right})",
    "bor": lambda left, right: f"({left} | {right})",
    "bxor": lambda left, right: f"({left} ^ {right})",
    "bnot": lambda value: f"(~{value})",
    "bshl": _shift("shiftleft"),
    "bshru": _shift("shiftrightunsigned"),
    "land": lambda left, right: _truth(f"{left} != 0L and {right} != 0L"),
    "lor": lambda left, right: _truth(f"{left} != 0L or {right} != 0L"),
    "lxor": lambda left, right: _truth(f"({left} != 0L) != ({right} != 0L)"),
    "lnot": lambda value: _truth(f"{value} = 0L"),
}
_UNSIGNED: Mapping[str, Callable[..., str]] = {"bshr": _BITS["bshru"]}


def _real(text: str) -> str:
    """A float, with one zero, that is a number."""
    return f"nullif({text} + 0D, double('NaN'))"


_FLOAT: Mapping[str, Callable[..., str]] = {
    "+": lambda left, right: _real(f"{left} + {right}"),
    "-": lambda left, right=None: _real(f"-{left}" if right is None else f"{left} - {right}"),
    "*": lambda left, right: _real(f"{left} * {right}"),
    "/": lambda left, right: (
        f"if({right} = 0D, nullif({left} * double('Infinity'), double('NaN')), {_real(f'{left} / {right}')})"
    ),
    "min": lambda *args: f"least({', '.join(args)})",
    "max": lambda *args: f"greatest({', '.join(args)})",
}
_DECIMAL: Mapping[str, Callable[..., str]] = {
    "+": lambda left, right: f"({left} + {right})",
    "-": lambda left, right=None: f"(-{left})" if right is None else f"({left} - {right})",
    "*": lambda left, right: f"({left} * {right})",
}
_SYMBOL: Mapping[str, Callable[..., str]] = {
    "+": lambda left, right: f"concat({left}, {right})",
    "cat": lambda *args: f"concat({', '.join(args)})",
    "min": lambda *args: f"least({', '.join(args)})",
    "max": lambda *args: f"greatest({', '.join(args)})",
}
_BY_RESULT: Mapping[Kind, Mapping[str, Callable[..., str]]] = {
    NUMBER: _BITS | _NUMBER,  # type: ignore[operator]
    UNSIGNED: _BITS | _UNSIGNED,  # type: ignore[operator]
    FLOAT: _FLOAT,
    SYMBOL: _SYMBOL,
    BOOL: {name: _BITS[name] for name in ("land", "lor", "lxor", "lnot")},
}
# Functors whose arguments are of other kinds than their result.
_CONVERSIONS: Mapping[tuple[str, Kind], Callable[..., str]] = {
    ("strlen", SYMBOL): lambda text: f"bigint(length({text}))",
    ("substr", SYMBOL): lambda text, start, length: (
        f"if({start} between 0L and length({text}) - 1L and {length} > 0L,"
        f" substring({text}, int({start}) + 1, int(least({length}, 2147483647L))), '')"
    ),
    ("to_string", NUMBER): lambda value: f"string({value})",
    ("to_string", SYMBOL): lambda text: text,
    ("itof", NUMBER): lambda value: f"double({value})",
    ("to_float", NUMBER): lambda value: f"double({value})",
    ("to_float", FLOAT): lambda value: value,
    **{
        (name, kind): lambda bits: bits
        for name in ("itou", "utoi", "to_number", "to_unsigned")
        for kind in (NUMBER, UNSIGNED)
    },
}


def _scale(kind: Kind) -> int | None:
    """How many digits behind the point a number has."""
    return kind.scale if isinstance(kind, DecimalKind) else 0 if kind == NUMBER else None


def _as_decimal(value: str, source: Kind, kind: DecimalKind) -> str | None:
    """Rounded, half a unit away from zero."""
    scale = _scale(source)
    if scale is None:
        return None
    size = 10 ** abs(scale - kind.scale)
    units = f"cast({value} as decimal(19,0)) * {size}BD"
    if scale > kind.scale:
        units = f"if({value} < 0L, -1L, 1L) * ((abs({value}) + {size // 2}L) div {size}L)"
    return f"if(abs({units}) < 1{'0' * kind.precision}BD, bigint({units}), null)"


def _compared(values: Sequence[str], kinds: Sequence[Kind]) -> str:
    scales = [_scale(kind) or 0 for kind in kinds]
    one, other = (
        f"cast({value} as decimal(19,0)) * {10 ** (max(scales) - scale)}BD"
        for value, scale in zip(values, scales, strict=True)
    )
    return f"if({one} < {other}, -1L, if({one} > {other}, 1L, 0L))"


def functor_sql(functor: str, args: Sequence[str], arg_kinds: Sequence[Kind], kind: Kind) -> str | None:
    """The functor's value as SQL, null where it has none; or None if there is no SQL that means the same."""
    if functor == "constant":
        return args[0]
    if functor == "coalesce":
        return f"coalesce({', '.join(args)})"
    if functor == "nullif":
        return f"if({args[0]} <=> {args[1]}, null, {args[0]})"
    if functor == "as" and arg_kinds[0] in (NUMBER, UNSIGNED) and kind in (NUMBER, UNSIGNED):
        return args[0]
    if (functor, arg_kinds[0] if arg_kinds else None) in _CONVERSIONS:
        return _CONVERSIONS[functor, arg_kinds[0]](*args)
    if isinstance(kind, DecimalKind) and functor in _DECIMAL and isinstance(arg_kinds[0], DecimalKind):
        exact = _DECIMAL[functor](*(f"cast({each} as decimal(18,0))" for each in args))
        return f"if(abs({exact}) < 1{'0' * kind.precision}BD, bigint({exact}), null)"
    if functor == "as" and isinstance(kind, DecimalKind):
        return _as_decimal(args[0], arg_kinds[0], kind)
    if functor == "compare":
        return _compared(args, arg_kinds)
    if functor == "%" and isinstance(kind, DecimalKind):
        return f"({args[0]} % nullif({args[1]}, 0L))"
    if functor in ("floor", "ceil") and isinstance(arg_kinds[0], DecimalKind):
        sign, size = "" if functor == "floor" else "-", 10 ** arg_kinds[0].scale
        value = f"({sign}{args[0]})"
        return f"({sign}(({value} - pmod({value}, {size}L)) div {size}L))"
    if is_whole(kind) and functor in ("min", "max"):
        return _NUMBER[functor](*args)
    if functor == "year" and arg_kinds[0] == DATE:
        return f"bigint(year(date_from_unix_date(int({args[0]}))))"
    if kind in _BY_RESULT and functor in _BY_RESULT[kind] and all(each == kind for each in arg_kinds):
        return _BY_RESULT[kind][functor](*args)
    if functor == "length" and isinstance(arg_kinds[0], ListKind):
        return f"bigint(size({args[0]}))"
    return None


def comparison_sql(op: str, left: str, right: str, kind: Kind) -> str | None:
    """A condition that is never null; None if there is no SQL that means the same."""
    if op in ("=", "!="):
        equal = equality(left, right, kind)
        return equal if op == "=" else f"not ({equal})"
    if op in ("contains", "!contains"):
        return f"{'not ' if op[0] == '!' else ''}contains({right}, {left})"
    if op in ("match", "!match"):
        return None
    if kind == UNSIGNED:
        return f"({left} ^ {_LOWEST}) {op} ({right} ^ {_LOWEST})"
    return f"{left} {op} {right}"


def equality(left: str, right: str, kind: Kind) -> str:
    """nil equals nil, which is null here."""
    return f"{left} {'<=>' if may_be_nil(kind) else '='} {right}"


@dataclass(frozen=True)
class Caller:
    """A function of values over Arrow arrays, as shipped to executors; what is undefined is null."""

    function: Callable[..., Value]
    arg_kinds: tuple[Kind, ...]
    kind: Kind
    shapes: Shapes

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        """The first array only tells how many rows there are."""
        columns = [to_values(array, kind, self.shapes) for array, kind in zip(arrays[1:], self.arg_kinds, strict=True)]
        rows = zip(*columns, strict=True) if columns else [()] * len(arrays[0])
        values: list[Value] = []
        places: list[int | None] = []
        for args in rows:
            try:
                values.append(self.function(*args))
                places.append(len(values) - 1)
            except Undefined:
                places.append(None)
        return from_values(values, self.kind, self.shapes).take(pa.array(places, pa.int64()))


@dataclass(frozen=True)
class Registered:
    """A registered function, checked: what it returns has to be of the kind declared."""

    name: str
    function: Callable[..., object]
    kind: Kind
    types: Types
    where: str

    def __call__(self, *args: Value) -> Value:
        try:
            return checked_call(self.name, self.function, args, self.kind, self.types)
        except FunctionError as error:
            raise FunctionError(f"{self.where}: {error}") from error.__cause__


def functor_udf(functor: str, args: Sequence[Column], arg_kinds: Sequence[Kind], kind: Kind, shapes: Shapes) -> Column:
    """The functor as an Arrow UDF around its definition."""
    if functor == "as":
        function = cast(arg_kinds[0], kind)
        assert function is not None
    elif functor == "ord":
        function = ordinal
    else:
        function = implementation(functor, base(arg_kinds[0]), base(kind))
    return _udf(function, args, arg_kinds, kind, shapes)


def function_udf(registered: Registered, args: Sequence[Column], arg_kinds: Sequence[Kind], shapes: Shapes) -> Column:
    return _udf(registered, args, arg_kinds, registered.kind, shapes)


def match_udf(op: str, left: Column, right: Column, shapes: Shapes) -> Column:
    """`match` and `!match`, for which a text that is not a pattern is undefined."""
    return _udf(lambda *args: int(holds(op, *args)), (left, right), (SYMBOL, SYMBOL), NUMBER, shapes) == 1


def _udf(
    function: Callable[..., Value], args: Sequence[Column], arg_kinds: Sequence[Kind], kind: Kind, shapes: Shapes
) -> Column:
    caller = Caller(function, tuple(arg_kinds), kind, shapes)
    udf = as_udf(caller.__call__, shapes.sql_type(kind))
    column: Column = udf(F.lit(0), *args)
    return column
