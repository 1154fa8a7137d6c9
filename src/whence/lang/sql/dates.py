"""Dates and times of SQL, which are text here: `1995-03-15`, `1995-03-15 12:30:00`. Their order is that of the text."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import datetime, timedelta

_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DOW", "DOY")
UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def span_of_interval(number: int, unit: str) -> tuple[int, int, int] | None:
    """An interval as months, days and seconds, or None if there is no such unit."""
    name = unit.upper().removesuffix("S")
    if name in _MONTHS:
        return number * _MONTHS[name], 0, 0
    if name in _DAYS:
        return 0, number * _DAYS[name], 0
    return (0, 0, number * _SECONDS[name]) if name in _SECONDS else None


def shift_date(text: str, months: int, days: int, seconds: int) -> str:
    """The date or time that much later; the last day of a month is the last one of a shorter month."""
    moment = datetime.fromisoformat(text)
    month = moment.year * 12 + moment.month - 1 + months
    year, month = month // 12, month % 12 + 1
    day = min(moment.day, monthrange(year, month)[1])
    moved = moment.replace(year=year, month=month, day=day) + timedelta(days=days, seconds=seconds)
    return _written(moved, with_time=len(text) > 10 or seconds != 0)


def _written(moment: datetime, *, with_time: bool) -> str:
    return moment.isoformat(" ") if with_time else moment.date().isoformat()


def _part(name: str) -> Callable[[str], int]:
    def part(text: str) -> int:
        moment = datetime.fromisoformat(text)
        if name == "QUARTER":
            return (moment.month + 2) // 3
        if name == "DOW":
            return moment.isoweekday() % 7
        if name == "DOY":
            return moment.timetuple().tm_yday
        return int(getattr(moment, name.lower()))

    part.__name__ = part.__qualname__ = f"date_{name.lower()}"
    return part


date_year, date_quarter, date_month, date_day, date_hour, date_minute, date_second, date_dow, date_doy = map(
    _part, PARTS
)
PART_FUNCTIONS = dict(
    zip(
        PARTS,
        (date_year, date_quarter, date_month, date_day, date_hour, date_minute, date_second, date_dow, date_doy),
        strict=True,
    )
)


def truncate_date(unit: str, text: str) -> str:
    """The beginning of the year, month, day and so on that the date or time is in."""
    moment = datetime.fromisoformat(text)
    name = unit.upper()
    if name == "WEEK":
        moment = moment.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=moment.weekday())
        return _written(moment, with_time=len(text) > 10)
    least = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
    kept = ("year", "month", "day", "hour", "minute", "second")
    if name == "QUARTER":
        moment = moment.replace(month=(moment.month - 1) // 3 * 3 + 1)
        name = "MONTH"
    if name.lower() not in kept:
        return text
    keep = kept[: kept.index(name.lower()) + 1]
    moment = moment.replace(**{part: value for part, value in least.items() if part not in keep})  # type: ignore[arg-type]
    return _written(moment, with_time=len(text) > 10)
