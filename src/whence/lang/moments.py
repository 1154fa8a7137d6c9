"""The functors of dates and timestamps, on Python values. What lies outside of the years 1 to 9999 has no value."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

from whence.lang.scalars import days_of, micros_of

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}
_MICROS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}

_PARTS: Mapping[str, Callable[[date], int]] = {
    "year": lambda at: at.year,
    "quarter": lambda at: (at.month + 2) // 3,
    "month": lambda at: at.month,
    "week": lambda at: at.isocalendar().week,
    "day": lambda at: at.day,
    "weekday": lambda at: at.isoweekday(),
    "yearday": lambda at: at.timetuple().tm_yday,
}
_TIMES: Mapping[str, Callable[[datetime], int]] = {
    "hour": lambda at: at.hour,
    "minute": lambda at: at.minute,
    "second": lambda at: at.second,
    "microsecond": lambda at: at.microsecond,
}


class NoMoment(ValueError):
    """There is none: the message says why."""


def date_part(unit: str, at: date) -> int:
    """
    >>> date_part("quarter", date(2024, 5, 1))
    2
    """
    if unit in _PARTS:
        return _PARTS[unit](at)
    if unit in _TIMES:
        return _TIMES[unit](at) if isinstance(at, datetime) else 0
    raise NoMoment(f'"{unit}" is not a part of a date')


def date_trunc(unit: str, at: date) -> date:
    """
    >>> date_trunc("week", date(2024, 2, 29)).isoformat()
    '2024-02-26'
    """
    day = at.date() if isinstance(at, datetime) else at
    match unit:
        case "year":
            day = day.replace(month=1, day=1)
        case "quarter":
            day = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            day = day.replace(day=1)
        case "week":
            day = _moved(day, timedelta(days=1 - day.isoweekday()))
        case "day":
            pass
        case _ if unit in _MICROS:
            return _without_rest(at, _MICROS[unit]) if isinstance(at, datetime) else at
        case _:
            raise NoMoment(f'"{unit}" is not a unit of time')
    return datetime(day.year, day.month, day.day) if isinstance(at, datetime) else day  # noqa: DTZ001


def _without_rest(at: datetime, size: int) -> datetime:
    return at - timedelta(microseconds=micros_of(at) % size)


def date_add(at: date, count: int, unit: str = "day") -> date:
    """A month later is the same day of the next month, or its last one.

    >>> date_add(date(2024, 1, 31), 1, "month").isoformat()
    '2024-02-29'
    """
    if unit in _MONTHS:
        return _months_later(at, count * _MONTHS[unit])
    if unit in _DAYS:
        return _moved(at, _span(days=count * _DAYS[unit]))
    if unit in _MICROS and isinstance(at, datetime):
        return _moved(at, _span(microseconds=count * _MICROS[unit]))
    if unit in _MICROS:
        raise NoMoment("a date has no time of day: to_timestamp makes one that has")
    raise NoMoment(f'"{unit}" is not a unit of time')


def _span(**size: int) -> timedelta:
    try:
        return timedelta(**size)
    except OverflowError:
        raise NoMoment("the result is not in the years 1 to 9999") from None


def _moved(at: date, span: timedelta) -> date:
    try:
        return at + span
    except OverflowError:
        raise NoMoment("the result is not in the years 1 to 9999") from None


def _months_later(at: date, count: int) -> date:
    year, month = divmod(at.year * 12 + at.month - 1 + count, 12)
    if not 1 <= year <= 9999:
        raise NoMoment("the result is not in the years 1 to 9999")
    return at.replace(year=year, month=month + 1, day=min(at.day, monthrange(year, month + 1)[1]))


def days_between(start: date, end: date) -> int:
    """
    >>> days_between(date(2024, 2, 28), date(2024, 3, 1))
    2
    """
    return days_of(end) - days_of(start)


def micros_between(start: datetime, end: datetime) -> int:
    return micros_of(end) - micros_of(start)


def make_date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise NoMoment(f"{year}-{month}-{day} is not a date") from None
