"""Functors of decimals, dates and timestamps on columns of words: value by value what the language defines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.backends.local.scalars import WAYS
from whence.lang.functors import cast, implementation
from whence.lang.scalars import of_whole, to_whole
from whence.lang.types import DATE, FLOAT, NUMBER, TIMESTAMP, DecimalKind, Kind, Value, decimal_kind
from whence.lang.undefined import Undefined

SETTINGS = settings(max_examples=80, deadline=None)
KINDS = st.builds(
    lambda scale, more: decimal_kind(min(18, scale + more), scale), st.integers(0, 18), st.integers(1, 18)
)


def numbers(kind: Kind) -> st.SearchStrategy[int]:
    most = 10**kind.precision - 1 if isinstance(kind, DecimalKind) else 2**63 - 1
    return st.integers(-most, most) | st.sampled_from((-most, -51, -50, -1, 0, 1, 49, 50, most))


def agree(functor: str, kinds: Sequence[Kind], result: Kind, rows: Sequence[tuple[int, ...]]) -> None:
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    found = WAYS[functor](columns, kinds, result)
    if found is None:  # it has no quick way for these
        return
    define = cast(kinds[0], result) if functor == "as" else implementation(functor, kinds[0], result)
    assert define is not None
    for at, row in enumerate(rows):
        args = [of_whole(kind)(word) for kind, word in zip(kinds, row, strict=True)]
        try:
            expected: Value = define(*args)
        except Undefined:
            assert found.defined is not None
            assert not found.defined[at]
            continue
        assert found.defined is None or found.defined[at]
        word = found.words[at]
        assert (word.view(np.float64) if result == FLOAT else of_whole(result)(int(word))) == expected


@SETTINGS
@given(st.data(), KINDS | st.just(NUMBER), KINDS)
def test_another_kind_of_decimals(data: st.DataObject, source: Kind, target: Kind) -> None:
    agree("as", [source], target, [(data.draw(numbers(source)),) for _ in range(5)])


@SETTINGS
@given(st.data(), KINDS, KINDS | st.just(NUMBER))
def test_comparing(data: st.DataObject, left: Kind, right: Kind) -> None:
    rows = [(data.draw(numbers(left)), data.draw(numbers(right))) for _ in range(5)]
    equal = [
        (units, to_whole(right)(value))
        for units, _ in rows
        if (value := exactly(of_whole(left)(units), right)) is not None
    ]
    agree("compare", [left, right], NUMBER, [*rows, *equal])


def exactly(value: Value, kind: Kind) -> Decimal | None:
    assert isinstance(value, Decimal)
    units = value.scaleb(kind.scale if isinstance(kind, DecimalKind) else 0)
    most = 10**kind.precision if isinstance(kind, DecimalKind) else 2**63
    return value if units == int(units) and abs(units) < most else None


@SETTINGS
@given(st.data(), KINDS)
def test_whole_numbers_and_floats(data: st.DataObject, kind: Kind) -> None:
    rows = [(data.draw(numbers(kind)),) for _ in range(5)]
    agree("floor", [kind], decimal_kind(18, 0), rows)
    agree("ceil", [kind], decimal_kind(18, 0), rows)
    agree("to_float", [kind], FLOAT, rows)


@SETTINGS
@given(st.data(), KINDS)
def test_remainders_and_quotients(data: st.DataObject, kind: Kind) -> None:
    rows = [(data.draw(numbers(kind)), data.draw(numbers(kind))) for _ in range(5)]
    agree("%", [kind, kind], kind, rows)
    agree("/", [kind, kind], FLOAT, rows)


@SETTINGS
@given(st.lists(st.dates(), min_size=1), st.lists(st.datetimes(), min_size=1))
def test_parts_of_moments(days: list[date], times: list[datetime]) -> None:
    for kind, values in ((DATE, days), (TIMESTAMP, times)):
        rows = [(to_whole(kind)(value),) for value in values]
        for functor in ("year", "month", "day", "hour", "minute", "second"):
            agree(functor, [kind], NUMBER, rows)
        agree("to_date", [kind], DATE, rows)
        agree("to_timestamp", [kind], TIMESTAMP, rows)
        agree(
            "days_between",
            [kind, kind],
            NUMBER,
            [(one, other) for (one,), (other,) in zip(rows, rows[::-1], strict=True)],
        )
