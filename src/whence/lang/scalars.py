"""Truth values, dates and timestamps: as whole numbers, which engines keep them as, and as text.

A date is the number of days since 1970, a timestamp that of microseconds, without a zone. Both lie in the years 1 to 9999.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

from whence.lang.types import BOOL, DATE, NUMBER, TIMESTAMP, Kind, Value

EPOCH = date(1970, 1, 1)
_START = datetime(1970, 1, 1)  # noqa: DTZ001 - timestamps have no zone
_MICROSECOND = timedelta(microseconds=1)

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?", re.ASCII)


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
    return _TO_WHOLE[kind]


def of_whole(kind: Kind) -> Callable[[int], Value]:
    """What makes values of whole numbers."""
    return _OF_WHOLE[kind]


def is_scalar(value: object, kind: Kind) -> bool:
    """Whether it is a value of one of these kinds, which Python has several classes for."""
    if kind == BOOL:
        return isinstance(value, bool)
    if kind == DATE:
        return isinstance(value, date) and not isinstance(value, datetime)
    return isinstance(value, datetime) and value.tzinfo is None


# -- text -------------------------------------------------------------------------------------------------------------


def text_of(value: Value) -> str:
    """
    >>> text_of(True), text_of(date(2024, 2, 29)), text_of(datetime(2024, 2, 29, 12, 30))
    ('true', '2024-02-29', '2024-02-29 12:30:00')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return str(value)


def read_text(text: str, kind: Kind) -> Value:
    """Raises ValueError if the text is not that of a value."""
    if kind == BOOL:
        return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse(text)
    if kind == DATE:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else _refuse(text)
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return _refuse(text)
    day, time = found.groups()
    seconds, _, fraction = (time or "00:00").partition(".")
    return datetime.fromisoformat(f"{day}T{seconds}{f'.{fraction:0<6}' if fraction else ''}")


def _refuse(text: str) -> Value:
    raise ValueError(text)
