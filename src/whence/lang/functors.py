"""The built-in functors: their meaning on Python values.

Numbers are 64-bit and wrap around. Where a functor has no value (division by zero, `to_number("x")`, a float that is not a
number), it raises `Undefined`, and the rule instance that asked for it derives nothing: the order in which a body is
evaluated then cannot change what a program means.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import cache, partial

import regex

from whence.lang.decimals import on_decimals, to_decimal
from whence.lang.deep import compound
from whence.lang.moments import (
    NoMoment,
    date_add,
    date_part,
    date_trunc,
    days_between,
    make_date,
    micros_between,
)
from whence.lang.scalars import read_text, text_of, to_whole
from whence.lang.sizes import check_structure, check_text
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    TIMESTAMP,
    UNSIGNED,
    DecimalKind,
    Kind,
    Value,
)
from whence.lang.undefined import Undefined

WORD = 1 << 64


def to_signed(value: int) -> int:
    value &= WORD - 1
    return value - WORD if value >> 63 else value


def to_unsigned(value: int) -> int:
    return value & (WORD - 1)


def _defined(value: float) -> float:
    if math.isnan(value):
        raise Undefined("the result is not a number")
    return value + 0.0  # -0.0 is 0.0


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _int_divide(left: int, right: int) -> int:
    if right == 0:
        raise Undefined("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _int_remainder(left: int, right: int) -> int:
    return left - right * _int_divide(left, right)


def _int_power(base: int, exponent: int) -> int:
    if exponent >= 0:
        return pow(base, exponent, WORD) if exponent > 64 else base**exponent
    if base == 0:
        raise Undefined("zero to a negative power")
    return base ** (exponent & 1) if abs(base) == 1 else 0


def _float_divide(left: float, right: float) -> float:
    if right == 0.0:
        return _defined(math.nan if left == 0.0 else math.copysign(math.inf, left))
    return _defined(left / right)


def _float_power(base: float, exponent: float) -> float:
    try:
        return _defined(math.pow(base, exponent))
    except OverflowError:
        return math.inf if base > 0 or exponent % 2 == 0 else -math.inf
    except ValueError:
        reason = "zero to a negative power" if base == 0.0 else "a negative number to a fractional power"
        raise Undefined(reason) from None


def _shift_left(value: int, by: int) -> int:
    return value << (by & 63)


def _shift_right(value: int, by: int) -> int:
    return value >> (by & 63)


def _shift_right_unsigned(value: int, by: int) -> int:
    return to_unsigned(value) >> (by & 63)


_INTEGER: dict[str, Callable[..., int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right=None: -left if right is None else left - right,
    "*": lambda left, right: left * right,
    "/": _int_divide,
    "%": _int_remainder,
    "^": _int_power,
    "band": lambda left, right: left & right,
    "bor": lambda left, right: left | right,
    "bxor": lambda left, right: left ^ right,
    "bnot": lambda value: ~value,
    "bshl": _shift_left,
    "bshr": _shift_right,
    "bshru": _shift_right_unsigned,
    "land": lambda left, right: int(left != 0 and right != 0),
    "lor": lambda left, right: int(left != 0 or right != 0),
    "lxor": lambda left, right: int((left != 0) != (right != 0)),
    "lnot": lambda value: int(value == 0),
}
_REAL: dict[str, Callable[..., float]] = {
    "+": lambda left, right: _defined(left + right),
    "-": lambda left, right=None: _defined(-left if right is None else left - right),
    "*": lambda left, right: _defined(left * right),
    "/": _float_divide,
    "^": _float_power,
}

# -- functions of floats ----------------------------------------------------------------------------------------------

MATH: dict[str, Callable[[float], float]] = {
    name: getattr(math, name)
    for name in (
        *("exp", "log", "sqrt", "floor", "ceil", "sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    )
}
# A program may bring functions of its own under these names.
PARTS_OF_DATES = ("year", "month", "day", "hour", "minute", "second")
_MOMENTS: dict[str, Callable[..., Value]] = {
    **{name: partial(date_part, name) for name in PARTS_OF_DATES},
    "date_part": date_part,
    "date_trunc": date_trunc,
    "date_add": date_add,
    "make_date": make_date,
    "days_between": days_between,
    "micros_between": micros_between,
}
REPLACEABLE = (
    frozenset(MATH)
    | frozenset(_MOMENTS)
    | {
        *("dist", "compare", "coalesce", "nullif", "to_bool", "to_date", "to_timestamp"),
    }
)


def _moment(name: str) -> Callable[..., Value]:
    compute = _MOMENTS[name]

    def computed(*args: Value) -> Value:
        try:
            return compute(*args)
        except NoMoment as why:
            raise Undefined(str(why)) from None

    return computed


def _math(name: str) -> Callable[[float], float]:
    """The function where it has a value that is a finite number."""
    compute = MATH[name]

    def computed(value: float) -> float:
        try:
            result = float(compute(value))
        except OverflowError:
            result = math.inf
        except ValueError:
            raise Undefined(f"{name} is not defined for this number") from None
        if math.isinf(result):
            raise Undefined(f"the result of {name} is too large for a float")
        return result + 0.0  # -0.0 is 0.0

    return computed


def _dist(x: float, y: float, other_x: float, other_y: float) -> float:
    """How far apart two places are."""
    apart = math.dist((x, y), (other_x, other_y))
    if not math.isfinite(apart):
        raise Undefined("the places are not apart by a finite number")
    return apart


# -- conversions ------------------------------------------------------------------------------------------------------


_INTEGER_TEXT = re.compile(r"([+-]?)(0x[0-9a-fA-F]+|0b[01]+|[0-9]+)u?")


def _parse_integer(text: str, low: int, high: int) -> int:
    found = _INTEGER_TEXT.fullmatch(text.strip())
    if found is None:
        raise Undefined(f'"{text}" is not a number')
    digits = found[2].removeprefix("0x").removeprefix("0b").lstrip("0") or "0"
    # No number of 64 bits has more digits, and Python refuses to read thousands of them.
    value = int(digits, {"0x": 16, "0b": 2}.get(found[2][:2], 10)) if len(digits) <= 64 else WORD
    value = -value if found[1] == "-" else value
    if not low <= value < high:
        raise Undefined(f'"{text}" is not a number of 64 bits')
    return value


def _parse_float(text: str) -> float:
    try:
        if "_" not in text and text.isascii():
            return _defined(float(text))
    except ValueError:
        pass
    raise Undefined(f'"{text}" is not a float')


def _read(text: str, kind: Kind) -> Value:
    try:
        return read_text(text.strip(), kind)
    except ValueError:
        raise Undefined(f'"{text}" is not a {kind}') from None


def _truncate(value: float) -> int:
    if math.isinf(value):
        raise Undefined("infinity is not an integer")
    return int(value)


def _bits_of(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def ordinal(value: Value) -> int:
    """A number for any value: equal values have equal ordinals, and the same in every run."""
    if isinstance(value, int):
        return to_signed(value)
    if isinstance(value, float):
        return _bits_of(value)
    if isinstance(value, Decimal):
        return to_signed(hash(value))
    if isinstance(value, date):
        return to_whole(TIMESTAMP if isinstance(value, datetime) else DATE)(value)
    digest = hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


# -- strings and lists ------------------------------------------------------------------------------------------------


def _substring(text: str, start: int, length: int) -> str:
    return text[start : start + length] if 0 <= start < len(text) and length > 0 else ""


_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
    "w": r"\w",
    "d": r"\d",
    "s": r"\s",
}
_BAD_REPEAT = re.compile(r"(?<!\\)(?:\\\\)*\{(?!\d+(?:,\d*)?\})")


@cache
def _pattern(text: str) -> regex.Pattern[str] | None:
    """The compiled regular expression, or None if it is not one: ECMAScript's rules where Python's differ."""
    translated = re.sub(r"\[:(\w+):\]", lambda match: _POSIX_CLASSES.get(match[1], match[0]), text)
    if _BAD_REPEAT.search(re.sub(r"\[[^\]]*\]", "", translated)):
        return None
    try:
        # What Python takes for a regular expression: the other knows more, which would be no language that anybody defined.
        re.compile(translated)
        return regex.compile(translated)
    except (re.error, regex.error):
        return None


def matches(pattern: str, text: str, seconds: float | None = None) -> bool:
    """Whether the whole text matches. A pattern that is not a regular expression is undefined.

    Some patterns take longer than anybody can wait: raises TimeoutError if it takes more than these seconds.
    """
    compiled = _pattern(pattern)
    if compiled is None:
        raise Undefined(f'"{pattern}" is not a regular expression')
    limit = None if seconds is None else max(seconds, 0.001)
    return compiled.fullmatch(text, timeout=limit) is not None


def holds(op: str, left: Value, right: Value, seconds: float | None = None) -> bool:
    """Whether a comparison other than `=` is true. But for `!=`, none is if a side is nil."""
    match op:
        case "!=":
            return left != right
        case _ if left is None or right is None:
            return False
        case "<":
            return left < right  # type: ignore[operator]
        case "<=":
            return left <= right  # type: ignore[operator]
        case ">":
            return left > right  # type: ignore[operator]
        case ">=":
            return left >= right  # type: ignore[operator]
        case "match":
            return matches(left, right, seconds)  # type: ignore[arg-type]
        case "!match":
            return not matches(left, right, seconds)  # type: ignore[arg-type]
        case "contains":
            return left in right  # type: ignore[operator]
        case "!contains":
            return left not in right  # type: ignore[operator]
        case _:
            raise AssertionError(op)


def _joined(*parts: str) -> str:
    check_text(sum(map(len, parts)))
    return "".join(parts)


def _last(items: tuple[Value, ...]) -> Value:
    if not items:
        raise Undefined("an empty list has no last item")
    return items[-1]


def solutions_of_range(start: float, end: float, step: float | None = None) -> Iterable[int | float]:
    """`range(start, end[, step])`: from start towards end, which is left out; without a step, by one towards it.

    As in Souffle, a step of 0 gives the start alone.
    """
    if step is None:
        step = -1 if start > end else 1
    if step == 0:
        return [] if start == end else [start]
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return range(start, end, step)
    return _float_steps(start, end, step)


def _float_steps(start: float, end: float, step: float) -> Iterator[float]:
    at, count = start, 0
    while (at < end) if step > 0 else (at > end):
        yield at
        count += 1
        at = start + count * step


# -- nil --------------------------------------------------------------------------------------------------------------

# Functors that take nil, each with when its result may be nil, given which of its arguments may be.
NIL_TAKING: dict[str, Callable[[list[bool]], bool]] = {"coalesce": all, "nullif": lambda _: True}


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _nullif(value: Value, other: Value) -> Value:
    return None if value == other else value


# -- by name ----------------------------------------------------------------------------------------------------------

INTEGRAL = frozenset({NUMBER, UNSIGNED})


def implementation(functor: str, argument: Kind | None, result: Kind) -> Callable[..., Value]:
    """The function behind a functor for the kinds it is used at. `autoinc`, `range` and the count of rounds have none."""
    if isinstance(argument, DecimalKind) and (of_decimals := on_decimals(functor, argument, result)) is not None:
        return of_decimals
    if functor in _INTEGER and result in INTEGRAL:
        operate, wrap = _INTEGER[functor], to_signed if result == NUMBER else to_unsigned
        if functor == "bshr" and result == UNSIGNED:
            operate = _shift_right_unsigned
        return lambda *args: wrap(operate(*args))
    if functor in ("land", "lor", "lxor", "lnot") and result == BOOL:
        decide = _INTEGER[functor]
        return lambda *args: bool(decide(*args))
    if functor in _REAL and result == FLOAT:
        return _REAL[functor]
    if functor in ("min", "max"):
        return min if functor == "min" else max
    if functor == "as" and argument is not None and (reinterpret := cast(argument, result)) is not None:
        return reinterpret
    return _NAMED[functor, str(argument)] if (functor, str(argument)) in _NAMED else _NAMED[functor, "any"]


_NAMED: dict[tuple[str, str], Callable[..., Value]] = {
    **{(name, "any"): _math(name) for name in MATH},
    **{(name, "any"): _moment(name) for name in _MOMENTS},
    ("dist", "any"): _dist,
    ("compare", "any"): lambda left, right: (left > right) - (left < right),
    ("+", "symbol"): lambda left, right: left + right,
    ("cat", "any"): _joined,
    ("strlen", "any"): len,
    ("substr", "any"): _substring,
    ("ord", "any"): ordinal,
    ("to_number", "symbol"): lambda text: _parse_integer(text, -(WORD >> 1), WORD >> 1),
    ("to_number", "float"): lambda value: to_signed(_truncate(value)),
    ("to_number", "any"): to_signed,
    ("to_unsigned", "symbol"): lambda text: _parse_integer(text, 0, WORD),
    ("to_unsigned", "float"): lambda value: to_unsigned(_truncate(value)),
    ("to_unsigned", "any"): to_unsigned,
    ("to_float", "symbol"): _parse_float,
    ("to_float", "any"): float,
    ("to_string", "float"): lambda value: f"{value:f}",
    ("to_string", "any"): text_of,
    ("to_bool", "symbol"): lambda text: _read(text, BOOL),
    ("to_bool", "any"): bool,
    ("to_date", "symbol"): lambda text: _read(text, DATE),
    ("to_date", "timestamp"): lambda at: at.date(),
    ("to_date", "any"): lambda at: at,
    ("to_timestamp", "symbol"): lambda text: _read(text, TIMESTAMP),
    ("to_timestamp", "date"): lambda at: datetime(at.year, at.month, at.day),  # noqa: DTZ001 - timestamps have no zone
    ("to_timestamp", "any"): lambda at: at,
    ("to_text", "any"): repr,
    ("itof", "any"): float,
    ("utof", "any"): float,
    ("ftoi", "any"): lambda value: to_signed(_truncate(value)),
    ("ftou", "any"): lambda value: to_unsigned(_truncate(value)),
    ("itou", "any"): to_unsigned,
    ("utoi", "any"): to_signed,
    ("length", "any"): len,
    ("append", "any"): lambda items, item: check_structure(compound((*items, item))),
    ("concat", "any"): lambda left, right: check_structure(compound(left + right)),
    ("last", "any"): _last,
    ("occurs", "any"): lambda items, item: items.count(item),
    ("coalesce", "any"): _coalesce,
    ("nullif", "any"): _nullif,
}


def cast(source: Kind, target: Kind) -> Callable[[Value], Value] | None:
    """The function behind `as(value, type)`, or None where the two kinds have no values in common."""
    if source == target:
        return lambda value: value
    if isinstance(target, DecimalKind):
        return to_decimal(source, target)
    if source in INTEGRAL and target in INTEGRAL:
        return to_signed if target == NUMBER else to_unsigned  # type: ignore[return-value]
    if source == FLOAT and target in INTEGRAL:
        wrap = to_signed if target == NUMBER else to_unsigned
        return lambda value: wrap(_bits_of(value))  # type: ignore[arg-type]
    if source in INTEGRAL and target == FLOAT:
        return lambda value: _defined(struct.unpack("<d", struct.pack("<q", to_signed(value)))[0])  # type: ignore[arg-type]
    return None
