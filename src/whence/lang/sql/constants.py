"""Constants of decimals, dates and timestamps: how rules write them, and what it means to compare something with them.

A constant may be finer than what it is compared with, or out of its range: `price < 0.005` for cents. Instead of making
the column finer, for which there may be too few digits, the comparison is one with the next value that the column can have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import ROUND_FLOOR, Decimal

from whence.lang import tree
from whence.lang.declare import decimal_of
from whence.lang.scalars import EXACT, days_of, micros_of, read_text, rounded, text_of
from whence.lang.types import DATE, MOST_DIGITS, TIMESTAMP, DecimalKind, Value, decimal_kind

_READERS = {"to_date": DATE, "to_timestamp": TIMESTAMP}
# For each kind of whole numbers, its least and greatest one.
_BOUNDS: Mapping[str, tuple[int, int]] = {
    "number": (-(1 << 63), (1 << 63) - 1),
    "unsigned": (0, (1 << 64) - 1),
    "date": (days_of(date.min), days_of(date.max)),
}
_DAY = 24 * 3600 * 10**6
MIRRORED: Mapping[str, str] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


# -- numbers ----------------------------------------------------------------------------------------------------------


def written(text: str, span: tree.Span) -> tree.Term | None:
    """A literal with a point as a decimal with as many digits behind it, or None if there are too many in all."""
    whole, _, fraction = text.partition(".")
    if len(whole.lstrip("0")) + len(fraction) > MOST_DIGITS:
        return None
    return of_decimal(Decimal(text), decimal_kind(MOST_DIGITS, len(fraction)), span)


def of_decimal(value: Decimal, kind: DecimalKind, span: tree.Span) -> tree.Term:
    """The term for a decimal that fits its kind, wherever it stands."""
    return tree.Cast(beside(value, kind, span, is_sure=False), tree.TypeRef(str(kind)), span)


def beside(value: Decimal, kind: DecimalKind, span: tree.Span, *, is_sure: bool = True) -> tree.Term:
    """The term for a decimal beside something of its kind, which tells its own."""
    if value == value.to_integral_value():
        return tree.Number(int(value), "", span)
    if Decimal(repr(float(value))) == value:
        return tree.Number(float(value), ".", span)
    text = tree.String(text_of(value, kind), span)
    return tree.Cast(text, tree.TypeRef(str(kind)), span) if is_sure else text


def number_in(term: tree.Term) -> Decimal | None:
    """The exact number that a term is a literal for."""
    if isinstance(term, tree.Number) and term.suffix in ("", "u"):
        return Decimal(term.value)
    kind = decimal_of(term.type.name) if isinstance(term, tree.Cast) else None
    if not isinstance(term, tree.Cast) or kind is None:
        return None
    value = None
    if isinstance(term.term, tree.Number):
        value = Decimal(repr(term.term.value))
    elif isinstance(term.term, tree.String):
        value = _read_decimal(term.term.value)
    return None if value is None else rounded(value, kind)


def _read_decimal(text: str) -> Decimal | None:
    found = re.fullmatch(r"\s*([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))\s*", text)
    return Decimal(found[1]) if found is not None else None


def negated(term: tree.Cast) -> tree.Term:
    """The literal of a decimal with the other sign."""
    value, kind = number_in(term), decimal_of(term.type.name)
    assert value is not None
    assert kind is not None
    return of_decimal(-value, kind, term.span)


def nearest(term: tree.Term, kind: DecimalKind) -> Decimal | None:
    """The decimal that a literal, of a number or in text, is stored as; None if it is none, or has too many digits."""
    value = _read_decimal(term.value) if isinstance(term, tree.String) else number_in(term)
    return None if value is None else rounded(value, kind)


# -- dates and timestamps ---------------------------------------------------------------------------------------------


def moment(text: str, kind: str, span: tree.Span) -> tree.Term | None:
    """The term for a date or timestamp in text, where months and days may have one digit; None if it is none."""
    padded = re.sub(
        r"^\s*(\d{1,4})-(\d{1,2})-(\d{1,2})(?!\d)",
        lambda found: f"{int(found[1]):04}-{int(found[2]):02}-{int(found[3]):02}",
        text,
        flags=re.ASCII,
    )
    try:
        value = read_text(padded.strip(), DATE if kind == "date" else TIMESTAMP)
    except ValueError:
        return None
    return of_moment(value, span)


def has_zone(text: str) -> bool:
    return re.search(r":\d\d(\.\d+)? ?(Z|[+-]\d\d(:?\d\d)?)\s*$", text, re.ASCII) is not None


def of_moment(value: Value, span: tree.Span) -> tree.Term:
    name = "to_timestamp" if isinstance(value, datetime) else "to_date"
    return tree.Call(name, (tree.String(text_of(value), span),), span=span)


def moment_in(term: tree.Term) -> date | None:
    """The date or timestamp that a term is a literal for."""
    if not isinstance(term, tree.Call) or term.name not in _READERS or not isinstance(term.args[0], tree.String):
        return None
    try:
        value = read_text(term.args[0].value, _READERS[term.name])
    except ValueError:
        return None
    return value if isinstance(value, date) else None


# -- comparisons ------------------------------------------------------------------------------------------------------


def against_constant(op: str, term: tree.Term, kind: str, constant: tree.Term, span: tree.Span) -> tree.Formula | None:
    """The comparison of a term with a literal that is finer than its kind or out of its range; None for other literals."""
    number, when = number_in(constant), moment_in(constant)
    exact = decimal_of(kind)
    if number is not None and (exact is not None or kind in _BOUNDS) and kind != "date":
        scale = exact.scale if exact is not None else 0
        most = 10**exact.precision - 1 if exact is not None else 0
        least, greatest = (-most, most) if exact is not None else _BOUNDS[kind]
        units = EXACT.scaleb(number, scale)
        low = int(units.to_integral_value(ROUND_FLOOR))
        op, low = _bounded(op, low, low == units, least, greatest)
        if exact is None:
            return tree.Constraint(op, term, tree.Number(low, "u" if kind == "unsigned" else "", constant.span), span)
        bound = beside(EXACT.scaleb(Decimal(low), -scale), exact, constant.span)
        return tree.Constraint(op, term, bound, span)
    if kind == "date" and isinstance(when, datetime):
        low, rest = divmod(micros_of(when), _DAY)
        op, low = _bounded(op, low, rest == 0, *_BOUNDS["date"])
        return tree.Constraint(op, term, of_moment(date.fromordinal(low - _BOUNDS["date"][0] + 1), constant.span), span)
    return None


def _bounded(op: str, low: int, is_exact: bool, least: int, most: int) -> tuple[str, int]:
    """A comparison of whole numbers from `least` to `most` with one that lies at `low`, or between it and the next."""
    if is_exact and least <= low <= most:
        return op, low
    if op == "=":
        return ">", most
    if op == "!=":
        return "<=", most
    if low < least:
        return ("<", least) if op in ("<", "<=") else (">=", least)
    return ("<=" if op in ("<", "<=") else ">"), min(low, most)
