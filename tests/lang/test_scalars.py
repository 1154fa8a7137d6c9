"""Functors of dates, timestamps and decimals against DuckDB, which shares nothing with them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.lang.functors import cast, implementation
from whence.lang.scalars import is_scalar, read_text
from whence.lang.types import (
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    DecimalKind,
    Kind,
    decimal_kind,
)
from whence.lang.undefined import Undefined

SETTINGS = settings(max_examples=60, deadline=None)
PEER = duckdb.connect()
DATES = st.dates(min_value=date(1, 1, 8), max_value=date(9990, 1, 1))
TIMES = st.datetimes(min_value=datetime(1, 1, 8), max_value=datetime(9990, 1, 1))  # noqa: DTZ001 - timestamps have no zone
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
PARTS = {"weekday": "isodow", "yearday": "doy", **{each: each for each in ("year", "quarter", "month", "week", "day")}}
SCALES = st.integers(0, 9)


def ask(query: str, *values: object) -> object:
    found = PEER.execute(query, list(values)).fetchone()
    assert found is not None
    return found[0]


@SETTINGS
@given(DATES, TIMES, st.sampled_from(UNITS))
def test_starts_of_units(day: date, time: datetime, unit: str) -> None:
    trunc = implementation("date_trunc", SYMBOL, TIMESTAMP)
    assert trunc(unit, time) == ask(f"SELECT date_trunc('{unit}', ?::TIMESTAMP)", time)
    if unit in UNITS[:5]:
        assert trunc(unit, day) == ask(f"SELECT date_trunc('{unit}', ?::DATE)::DATE", day)


@SETTINGS
@given(DATES, st.sampled_from(sorted(PARTS)))
def test_parts(day: date, part: str) -> None:
    assert implementation("date_part", SYMBOL, NUMBER)(part, day) == ask(
        f"SELECT date_part('{PARTS[part]}', ?::DATE)", day
    )


@SETTINGS
@given(TIMES, st.integers(-90000, 90000), st.sampled_from(("year", "month", "week", "day", "hour", "second")))
def test_moving_in_time(time: datetime, count: int, unit: str) -> None:
    later = implementation("date_add", TIMESTAMP, TIMESTAMP)
    count = count // 100 if unit in ("year", "month", "week") else count
    try:
        found = later(time, count, unit)
    except Undefined:
        assert unit == "year" or abs(count) > 11
        return
    assert found == ask(f"SELECT ?::TIMESTAMP + INTERVAL ({count}) {unit}", time)


@SETTINGS
@given(DATES, DATES)
def test_days_between(one: date, other: date) -> None:
    assert implementation("days_between", DATE, NUMBER)(one, other) == ask("SELECT ?::DATE - ?::DATE", other, one)


@st.composite
def decimals(draw: st.DrawFn, kind: DecimalKind) -> Decimal:
    most = 10**kind.precision - 1
    return Decimal(draw(st.integers(-most, most))).scaleb(-kind.scale)


@SETTINGS
@given(st.data(), SCALES, SCALES, st.sampled_from("+-*"))
def test_arithmetic_of_decimals(data: st.DataObject, one: int, other: int, operator: str) -> None:
    left_kind = decimal_kind(9, one)
    right_kind = decimal_kind(9, other) if operator == "*" else left_kind
    left, right = data.draw(decimals(left_kind)), data.draw(decimals(right_kind))
    result: Kind = decimal_kind(18, one + other) if operator == "*" else decimal_kind(18, one)
    found = implementation(operator, left_kind, result)(left, right)
    assert found == ask(f"SELECT ?::{left_kind} {operator} ?::{right_kind}", left, right)


@SETTINGS
@given(st.data(), SCALES, SCALES)
def test_rounding_of_decimals(data: st.DataObject, one: int, other: int) -> None:
    source, target = decimal_kind(18, one), decimal_kind(12, other)
    value, convert = data.draw(decimals(source)), cast(source, target)
    assert convert is not None
    expected = ask(f"SELECT TRY_CAST(?::{source} AS {target})", value)
    try:
        assert convert(value) == expected
    except Undefined:
        assert expected is None


@pytest.mark.parametrize("text", ["", "1.", "1e5", "--1", "1_0", "٣", "nan", "inf", "1" * 41])
def test_what_is_no_decimal(text: str) -> None:
    convert = cast(SYMBOL, decimal_kind(18, 2))
    assert convert is not None
    if text == "1.":
        assert convert(text) == 1
    else:
        with pytest.raises(Undefined):
            convert(text)


def test_a_quotient_is_the_next_float() -> None:
    divide = implementation("/", decimal_kind(18, 0), FLOAT)
    assert divide(Decimal(10**17 + 1), Decimal(3)) == (10**17 + 1) / 3
    with pytest.raises(Undefined, match="division by zero"):
        divide(Decimal(1), Decimal(0))


@SETTINGS
@given(st.data(), st.integers(0, 9), st.integers(0, 18))
def test_decimals_of_any_scales_compare(data: st.DataObject, one: int, other: int) -> None:
    left_kind, right_kind = decimal_kind(18, one), decimal_kind(18, other)
    left = data.draw(decimals(left_kind))
    near = st.just(left).filter(lambda value: is_scalar(value, right_kind))
    right = data.draw(decimals(right_kind) | near if is_scalar(left, right_kind) else decimals(right_kind))
    found = implementation("compare", left_kind, NUMBER)(left, right)
    query = "SELECT CAST(sign(?::DECIMAL(38,18) - ?::DECIMAL(38,18)) AS INT)"
    assert found == ask(query, left, right)


@SETTINGS
@given(st.data(), SCALES)
def test_whole_numbers_next_to_decimals(data: st.DataObject, scale: int) -> None:
    kind = decimal_kind(18, scale)
    value = data.draw(decimals(kind))
    for functor in ("floor", "ceil"):
        assert implementation(functor, kind, decimal_kind(18, 0))(value) == ask(f"SELECT {functor}(?::{kind})", value)


@SETTINGS
@given(st.data(), SCALES)
def test_remainders_of_decimals(data: st.DataObject, scale: int) -> None:
    kind = decimal_kind(18, scale)
    left, right = data.draw(decimals(kind)), data.draw(decimals(kind).filter(bool))
    assert implementation("%", kind, kind)(left, right) == ask(f"SELECT ?::{kind} % ?::{kind}", left, right)
    with pytest.raises(Undefined, match="division by zero"):
        implementation("%", kind, kind)(left, Decimal(0))


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-02-29T12:30:00Z", "2024-02-29 12:30:00"),
        ("2024-02-29 12:30:00.5+02", "2024-02-29 10:30:00.500000"),
        ("2024-03-01 00:15 -05:30", "2024-03-01 05:45:00"),
        ("2024-02-29 23:00:00-0200", "2024-03-01 01:00:00"),
    ],
)
def test_a_time_with_a_zone_is_taken_in_utc(text: str, utc: str) -> None:
    assert str(read_text(text, TIMESTAMP)) == utc


@pytest.mark.parametrize(
    "text", ["2024-02-29Z", "2024-02-29 12:30:00+2", "2024-02-29 12:30:00+25:00", "0001-01-01 00:00+02"]
)
def test_what_is_no_time_with_a_zone(text: str) -> None:
    with pytest.raises(Undefined, match="is not a timestamp"):
        implementation("to_timestamp", SYMBOL, TIMESTAMP)(text)
