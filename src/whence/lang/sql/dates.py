"""Intervals, parts and units of SQL's dates and timestamps, as functors of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from whence.lang import tree
from whence.lang.moments import NoMoment, date_add
from whence.lang.sql.constants import moment_in, of_moment

Term = tree.Term


def _call(name: str, *args: Term) -> tree.Call:
    return tree.Call(name, args, span=args[-1].span)


def _unit(name: str) -> tree.String:
    return tree.String(name)


def _part(name: str) -> Callable[[Term], Term]:
    return lambda at: _call("date_part", _unit(name), at)


def _at_midnight(at: Term) -> Term:
    return _call("to_timestamp", at)


# -- parts ------------------------------------------------------------------------------------------------------------


def _smaller(count: int) -> Callable[[Term], Term]:
    """The seconds as so many parts of a second."""

    def part(at: Term) -> Term:
        whole = _call("*", _call("second", at), tree.Number(count))
        return _call("+", whole, _call("/", _part("microsecond")(at), tree.Number(10**6 // count)))

    return part


def _years(count: int, first: int) -> Callable[[Term], Term]:
    return lambda at: _call("/", _call("+", _call("year", at), tree.Number(first)), tree.Number(count))


def seconds_between(start: Term, end: Term) -> Term:
    """As a float."""
    micros = _call("micros_between", _at_midnight(start), _at_midnight(end))
    return _call("/", _call("to_float", micros), tree.Number(1e6, "."))


PARTS: Mapping[str, Callable[[Term], Term]] = {
    **{name.upper(): lambda at, name=name: _call(name, at) for name in "year month day hour minute second".split()},  # type: ignore[misc]
    "QUARTER": _part("quarter"),
    "WEEK": _part("week"),
    "DOW": lambda at: _call("%", _part("weekday")(at), tree.Number(7)),
    "ISODOW": _part("weekday"),
    "DOY": _part("yearday"),
    "ISOYEAR": lambda at: _call("year", _call("date_add", _call("date_trunc", _unit("week"), at), tree.Number(3))),
    "MILLISECOND": _smaller(1000),
    "MICROSECOND": _smaller(10**6),
    "DECADE": _years(10, 0),
    "CENTURY": _years(100, 99),
    "MILLENNIUM": _years(1000, 999),
    "EPOCH": lambda at: seconds_between(of_moment(date(1970, 1, 1), at.span), at),
}
_OTHER_NAMES = {
    **dict.fromkeys(("DAYOFWEEK", "WEEKDAY"), "DOW"),
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "WEEKOFYEAR": "WEEK",
    "CENTURIES": "CENTURY",
    "MILLENNIA": "MILLENNIUM",
    "MSEC": "MILLISECOND",
    "USEC": "MICROSECOND",
    "MIN": "MINUTE",
    "SEC": "SECOND",
    "MON": "MONTH",
}
# Functions of their own for parts of dates.
NAMED_PARTS = frozenset({*PARTS, *_OTHER_NAMES}) - {
    "MIN",
    "SEC",
    "MON",
    "MSEC",
    "USEC",
    "CENTURIES",
    "MILLENNIA",
    "DOW",
    "DOY",
}


def unit_named(text: str) -> str:
    """The name of a part or unit: `days` is `DAY`."""
    name = text.strip().upper()
    name = name if name in PARTS or name in _OTHER_NAMES else name.removesuffix("S")
    return _OTHER_NAMES.get(name, name)


# -- units ------------------------------------------------------------------------------------------------------------

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200, "MILLENNIUM": 12000}
_DAYS = {"DAY": 1, "WEEK": 7}
_MICROS = {"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6}
UNITS = tuple(name for name in (*reversed(_MONTHS), "WEEK", "DAY", *reversed(_MICROS)) if name != "MILLENNIUM")
TRUNCATED = ("DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", *reversed(_MICROS))


def truncated(unit: str, at: Term) -> Term:
    """DATE_TRUNC, a timestamp as in DuckDB and PostgreSQL."""
    if unit == "DECADE":
        tens = _call("*", PARTS["DECADE"](at), tree.Number(10))
        return _at_midnight(_call("make_date", tens, tree.Number(1), tree.Number(1)))
    return _at_midnight(_call("date_trunc", _unit(unit.lower()), at))


def difference(unit: str, start: Term, end: Term) -> Term:
    """DATE_DIFF: how many beginnings of the unit lie between."""
    if unit in _MONTHS:
        return _call("-", _counted(end, _MONTHS[unit]), _counted(start, _MONTHS[unit]))
    if unit == "DAY":
        return _call("days_between", _at_midnight(start), _at_midnight(end))
    one, other = (_at_midnight(_call("date_trunc", _unit(unit.lower()), at)) for at in (start, end))
    return _call("/", _call("micros_between", one, other), tree.Number(_MICROS[unit]))


def _counted(at: Term, months: int) -> Term:
    """How many spans of so many months lie before."""
    before = _call("-", _call("month", at), tree.Number(1))
    count = _call("+", _call("*", _call("year", at), tree.Number(12)), before)
    return count if months == 1 else _call("/", count, tree.Number(months))


def last_day(at: Term) -> Term:
    first = _call("date_trunc", _unit("month"), _call("to_date", at))
    return _call("date_add", _call("date_add", first, tree.Number(1), _unit("month")), tree.Number(-1), _unit("day"))


# -- intervals --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """What is added in turn: numbers, or terms for them, of months, days and microseconds, or of one unit of these."""

    steps: Sequence[tuple[Term, str]]

    def times(self, factor: Term) -> Interval:
        return Interval([(_product(count, factor), unit) for count, unit in self.steps])

    def after(self, at: Term) -> Term | None:
        """The timestamp that much later, as a literal if all is known; None if there is no such time."""
        known = moment_in(at)
        if known is not None and all(isinstance(count, tree.Number) for count, _ in self.steps):
            moved: date = known if isinstance(known, datetime) else datetime(known.year, known.month, known.day)  # noqa: DTZ001
            try:
                for count, unit in self.steps:
                    assert isinstance(count, tree.Number)
                    moved = date_add(moved, int(count.value), unit)
            except NoMoment:
                return None
            return of_moment(moved, at.span)
        moving: Term = _at_midnight(at)
        for count, unit in self.steps:
            moving = tree.Call("date_add", (moving, count, _unit(unit)), span=at.span)
        return moving


def _product(one: Term, other: Term) -> Term:
    if isinstance(one, tree.Number) and isinstance(other, tree.Number):
        return tree.Number(int(one.value) * int(other.value))
    return other if one == tree.Number(1) else tree.Call("*", (one, other), span=other.span)


def of_unit(count: Term, name: str) -> Interval | None:
    """So many of one unit."""
    unit = unit_named(name)
    if unit in _MONTHS:
        return Interval([(_product(tree.Number(_MONTHS[unit]), count), "month")])
    if unit in _DAYS:
        return Interval([(_product(tree.Number(_DAYS[unit]), count), "day")])
    return Interval([(count, unit.lower())]) if unit in _MICROS else None


_AMOUNT = re.compile(
    r"([+-]?)(\d{1,12})(?:\.(\d{1,6}))?\s*([A-Za-z]+)\s*|([+-]?)(\d{1,6}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?\s*",
    re.ASCII,
)


def read_interval(text: str) -> Interval | None:
    """An interval in words: `1 year 2 months`, `3 days 02:30:00`. None if it is none."""
    months = days = micros = 0
    at, text = 0, text.strip()
    while at < len(text):
        found = _AMOUNT.match(text, at)
        if found is None:
            return None
        at = found.end()
        if found[6] is not None:
            time = (int(found[6]) * 60 + int(found[7])) * 60 * 10**6 + int(found[8] or 0) * 10**6
            micros += (-1 if found[5] == "-" else 1) * (time + int(f"{found[9] or '':0<6}"))
            continue
        sign, unit = -1 if found[1] == "-" else 1, unit_named(found[4])
        amount = Decimal(f"{found[2]}.{found[3] or 0}") * sign
        size = _MICROS.get(unit) or _DAYS.get(unit) or _MONTHS.get(unit)
        if size is None or amount * size != int(amount * size):
            return None
        months += int(amount * size) if unit in _MONTHS else 0
        days += int(amount * size) if unit in _DAYS else 0
        micros += int(amount * size) if unit in _MICROS else 0
    unit = next(name for name in reversed(_MICROS) if micros % _MICROS[name] == 0)
    steps = [(months, "month"), (days, "day"), (micros // _MICROS[unit], unit.lower())]
    return Interval([(tree.Number(count), unit) for count, unit in steps if count]) if text else None
