"""Truth values, dates, timestamps and decimals: as whole numbers, which engines keep them as, and as text.

A date is the number of days since 1970, a timestamp that of microseconds, without a zone. Both lie in the years 1 to 9999. A
decimal is the number of its smallest units.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache

from whence.lang.types import BOOL, DATE, NUMBER, TIMESTAMP, DecimalKind, Kind, Value

EPOCH = date(1970, 1, 1)
_START = datetime(1970, 1, 1)  # noqa: DTZ001 - timestamps have no zone
_MICROSECOND = timedelta(microseconds=1)

_DECIMAL = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?) ?(Z|[+-]\d{2}(?::?\d{2})?)?)?", re.ASCII
)


def days_of(value: date) -> int:
    return value.toordinal() - EPOCH.toordinal()


def micros_of(value: datetime) -> int:
    return (value - _START) // _MICROSECOND


def date_of(days: int) -> date:
    """Raises ValueError or OverflowError where there is no such date."""
    return date.fromordinal(days + EPOCH.toordinal())


def timestamp_of(micros: int) -> datetime:
    """Raises OverflowError where there is no such timestamp."""
    return _START + timedelta(microseconds=micros)


_TO_WHOLE: Mapping[Kind, Callable[..., int]] = {NUMBER: int, BOOL: int, DATE: days_of, TIMESTAMP: micros_of}
_OF_WHOLE: Mapping[Kind, Callable[[int], Value]] = {NUMBER: int, BOOL: bool, DATE: date_of, TIMESTAMP: timestamp_of}


def to_whole(kind: Kind) -> Callable[..., int]:
    """What makes whole numbers of the values of a kind that is kept so."""
    return _units(kind.scale) if isinstance(kind, DecimalKind) else _TO_WHOLE[kind]


def of_whole(kind: Kind) -> Callable[[int], Value]:
    """What makes values of whole numbers."""
    return _of_units(kind.scale) if isinstance(kind, DecimalKind) else _OF_WHOLE[kind]


# Wide enough for products of any two decimals.
EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


@cache
def _units(scale: int) -> Callable[[Decimal | int], int]:
    return lambda value: int(EXACT.scaleb(Decimal(value), scale))


@cache
def _of_units(scale: int) -> Callable[[int], Decimal]:
    return lambda units: EXACT.scaleb(Decimal(units), -scale)


def rounded(value: Decimal, kind: DecimalKind) -> Decimal | None:
    """The decimal of this kind that is next to a value, away from zero if two are; None if it has too many digits."""
    if not value.is_finite() or value.adjusted() > kind.precision:
        return None
    near = EXACT.add(EXACT.quantize(value, _unit(kind.scale)), Decimal(0))  # -0 is 0
    return near if abs(to_whole(kind)(near)) < 10**kind.precision else None


@cache
def _unit(scale: int) -> Decimal:
    return Decimal((0, (1,), -scale))


def is_scalar(value: object, kind: Kind) -> bool:
    """Whether it is a value of one of these kinds, which Python has several classes for."""
    if isinstance(kind, DecimalKind):
        if not isinstance(value, Decimal | int) or isinstance(value, bool):
            return False
        return rounded(Decimal(value), kind) == value
    if kind == BOOL:
        return isinstance(value, bool)
    if kind == DATE:
        return isinstance(value, date) and not isinstance(value, datetime)
    return isinstance(value, datetime) and value.tzinfo is None


# -- text -------------------------------------------------------------------------------------------------------------


def text_of(value: Value, kind: Kind | None = None) -> str:
    """
    >>> text_of(True), text_of(date(2024, 2, 29)), text_of(datetime(2024, 2, 29, 12, 30))
    ('true', '2024-02-29', '2024-02-29 12:30:00')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(kind, DecimalKind):
        return f"{Decimal(value):.{kind.scale}f}"  # type: ignore[arg-type]
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def read_text(text: str, kind: Kind) -> Value:
    """Raises ValueError if the text is not that of a value."""
    if isinstance(kind, DecimalKind):
        value = Decimal(text) if _DECIMAL.fullmatch(text) else None
        near = None if value is None else rounded(value, kind)
        return near if near is not None and near == value else _refuse(text)
    if kind == BOOL:
        return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse(text)
    if kind == DATE:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else _refuse(text)
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return _refuse(text)
    day, time, zone = found.groups()
    seconds, _, fraction = (time or "00:00").partition(".")
    local = datetime.fromisoformat(f"{day}T{seconds}{f'.{fraction:0<6}' if fraction else ''}{zone or ''}")
    try:
        return local if zone is None else local.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        return _refuse(text)


def _refuse(text: str) -> Value:
    raise ValueError(text)
