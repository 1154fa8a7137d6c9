"""Functions of SQL that rules have no functor for, in Python. They are not called for nulls."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from whence.lang.scalars import EXACT, text_of


@dataclass(frozen=True, slots=True)
class Function:
    """`params` and `result` are kinds; of the parameters, `optional` ones at the end may be left out."""

    call: Callable[..., object]
    params: tuple[str, ...]
    result: str
    optional: int = 0


def trim(text: str, characters: str = " ") -> str:
    return text.strip(characters)


def trim_left(text: str, characters: str = " ") -> str:
    return text.lstrip(characters)


def trim_right(text: str, characters: str = " ") -> str:
    return text.rstrip(characters)


def replace(text: str, part: str, other: str) -> str:
    return text.replace(part, other) if part else text


def left(text: str, count: int) -> str:
    return text[:count]


def right(text: str, count: int) -> str:
    """A negative count leaves so many out at the beginning."""
    if count < 0:
        return text[-count:]
    return text[-count:] if count else ""


def position(text: str, part: str) -> int:
    return text.find(part) + 1


def split_part(text: str, separator: str, number: int) -> str:
    """Counted from 1, or from the end if negative; empty where there are not so many."""
    parts = text.split(separator) if separator else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if number and 0 <= at < len(parts) else ""


def reverse(text: str) -> str:
    return text[::-1]


def repeat(text: str, count: int) -> str:
    return text * max(0, count)


def pad_left(text: str, length: int, filling: str = " ") -> str:
    missing = max(0, length - len(text))
    return _filling(filling, missing) + text[: max(0, length)] if filling else text[: max(0, length)]


def pad_right(text: str, length: int, filling: str = " ") -> str:
    missing = max(0, length - len(text))
    return text[: max(0, length)] + (_filling(filling, missing) if filling else "")


def _filling(filling: str, length: int) -> str:
    return (filling * (length // len(filling) + 1))[:length]


def initcap(text: str) -> str:
    """Each word with a capital; what is no letter and no digit ends a word."""
    words: list[str] = []
    inside = False
    for char in text:
        words.append(char.lower() if inside else char.upper())
        inside = char.isalnum()
    return "".join(words)


def code(text: str) -> int:
    return ord(text[0]) if text else 0


def character(number: int) -> str:
    return chr(number)


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def round_to(number: float, digits: int = 0) -> float:
    """Halves away from zero."""
    if not math.isfinite(number) or abs(digits) > 300:
        return number if digits > 0 else 0.0
    scale = 10.0 ** abs(digits)
    scaled = number * scale if digits >= 0 else number / scale
    if not math.isfinite(scaled):
        return number
    whole = math.floor(abs(scaled) + 0.5) * (1 if scaled >= 0 else -1)
    return whole / scale if digits >= 0 else whole * scale


def round_even(number: float) -> float:
    """To a whole number, halves to the even one: how a float becomes an integer."""
    return float(round(number)) if math.isfinite(number) else number


def round_tens(number: Decimal, digits: int) -> Decimal:
    """To tens, hundreds and so on, halves away from zero."""
    return EXACT.quantize(number, Decimal((0, (1,), -digits))).quantize(Decimal(1)) if digits > -40 else Decimal(0)


def timestamp_text(at: datetime) -> str:
    """With as many digits of a second as matter."""
    return text_of(at).rstrip("0").rstrip(".") if at.microsecond else text_of(at)


def truncate(number: float) -> float:
    return float(math.trunc(number)) if math.isfinite(number) else number


def log10(number: float) -> float:
    return math.log10(number)


def log2(number: float) -> float:
    return math.log2(number)


def pi() -> float:
    return math.pi


def upper(text: str) -> str:
    return text.upper()


def lower(text: str) -> str:
    return text.lower()


FUNCTIONS: Mapping[str, Function] = {
    "UPPER": Function(upper, ("symbol",), "symbol"),
    "UCASE": Function(upper, ("symbol",), "symbol"),
    "LOWER": Function(lower, ("symbol",), "symbol"),
    "LCASE": Function(lower, ("symbol",), "symbol"),
    "TRIM": Function(trim, ("symbol", "symbol"), "symbol", 1),
    "BTRIM": Function(trim, ("symbol", "symbol"), "symbol", 1),
    "LTRIM": Function(trim_left, ("symbol", "symbol"), "symbol", 1),
    "RTRIM": Function(trim_right, ("symbol", "symbol"), "symbol", 1),
    "REPLACE": Function(replace, ("symbol", "symbol", "symbol"), "symbol"),
    "LEFT": Function(left, ("symbol", "number"), "symbol"),
    "RIGHT": Function(right, ("symbol", "number"), "symbol"),
    "STRPOS": Function(position, ("symbol", "symbol"), "number"),
    "INSTR": Function(position, ("symbol", "symbol"), "number"),
    "SPLIT_PART": Function(split_part, ("symbol", "symbol", "number"), "symbol"),
    "REVERSE": Function(reverse, ("symbol",), "symbol"),
    "REPEAT": Function(repeat, ("symbol", "number"), "symbol"),
    "LPAD": Function(pad_left, ("symbol", "number", "symbol"), "symbol", 1),
    "RPAD": Function(pad_right, ("symbol", "number", "symbol"), "symbol", 1),
    "INITCAP": Function(initcap, ("symbol",), "symbol"),
    "ASCII": Function(code, ("symbol",), "number"),
    "CHR": Function(character, ("number",), "symbol"),
    "SIGN": Function(sign, ("float",), "number"),
    "ROUND": Function(round_to, ("float", "number"), "float", 1),
    "TRUNC": Function(truncate, ("float",), "float"),
    "LOG10": Function(log10, ("float",), "float"),
    "LOG2": Function(log2, ("float",), "float"),
    "PI": Function(pi, (), "float"),
}
# What these are called in rules: of decimals, they are something else.
OF_DECIMALS: Mapping[str, str] = {
    "sql_round_to1": "ROUND",
    "sql_round_to2": "ROUND",
    "sql_truncate": "TRUNC",
    "sql_sign": "SIGN",
}
