"""Values of every kind under updates: views are exact and changes add up, whatever the columns hold.

Random programs elsewhere have small numbers only. Here the rules are fixed and the columns are not: numbers at the edges of 64
bits, floats whose sums cancel or grow large, texts that are empty, not Latin or full of quotes, records, branches and lists.
Epochs delete what is not there, insert what is, and change their mind.
"""

# ruff: noqa: DTZ001, DTZ901 - timestamps have no zone

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.counting import count_sequence
from tests.properties.excuses import follow

from whence import Program, Session, Update, load
from whence.lang.types import Tuple, Value, Variant
from whence.reference import evaluate

EXAMPLES = max(15, int(os.environ.get("WHENCE_EXAMPLES", "0")) // 10)
SETTINGS = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
LEAST, MOST = -(2**63), 2**63 - 1
DAYS = 'date_trunc("month", date_add(x, 31))'


@dataclass(frozen=True)
class Column:
    """A type as it is declared, values of it, and what can be computed with these; `few` are met again and again."""

    name: str
    few: tuple[Value, ...]
    computed: str = "x"
    is_numeric: bool = False
    is_ordered: bool = False
    more: st.SearchStrategy[Value] | None = None


COLUMNS = {
    "number": Column(
        "number", (0, -1, 1, 7, -7, MOST, LEAST, MOST - 1, LEAST + 1, 2**31, -(2**31) - 1, 2**32), "x + 1", True
    ),
    "unsigned": Column("unsigned", (0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1, 2**32, 2**31), "x * 3u", True),
    "float": Column(
        "float",
        (0.0, 0.5, -0.5, 1.0, 0.1, 0.2, 0.3, 1e16, -1e16, 1e308, 5e-324, -1e-300, 3.0, float("inf")),
        "x / 2.0",
        True,
    ),
    "symbol": Column(
        "symbol",
        (
            "",
            " ",
            "a",
            "A",
            "ä",
            "a\u0308",
            "日本",
            "🙂",
            '"',
            "\\",
            "a\tb",
            "\n",
            "nil",
            "1",
            "-1",
            "a,b",
            "#",
            "\u2028",
        ),
        'cat(x, "!")',
        more=st.text(max_size=3),
    ),
    "number or nil": Column("number?", (None, 0, -1, 7, MOST, LEAST + 1), "x + 1", True),
    "unsigned or nil": Column("unsigned?", (None, 0, 1, 2**63 - 1, 2**63 + 1, 2**64 - 1), "x + 1u", True),
    "float or nil": Column("float?", (None, 0.0, -0.5, 1e308, float("inf")), "x / 2.0", True),
    "symbol or nil": Column("symbol?", (None, "", "nil", "a", "日本"), 'cat(x, "!")'),
    "bool": Column("bool", (False, True), "lnot x", is_ordered=True),
    "date": Column(
        "date", (date.min, date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date.max), DAYS, is_ordered=True
    ),
    "timestamp": Column(
        "timestamp",
        (datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 12), datetime.max),
        'date_add(x, 90, "minute")',
        is_ordered=True,
    ),
    "decimal": Column(
        "decimal(18,2)",
        tuple(map(Decimal, ("0", "0.01", "-0.01", "1.5", "9999999999999999.99", "-9999999999999999.99", "123.45"))),
        "x + 0.25",
        is_numeric=True,
    ),
    "decimal or nil": Column(
        "decimal(6,3)?", (None, Decimal(0), Decimal("999.999"), Decimal("-1.5")), "-x", is_numeric=True
    ),
    "bool or nil": Column("bool?", (None, False, True), "lnot x", is_ordered=True),
    "date or nil": Column("date?", (None, date.min, date(1970, 1, 1), date.max), DAYS, is_ordered=True),
    "timestamp or nil": Column("timestamp?", (None, datetime(1970, 1, 1), datetime.max), DAYS, is_ordered=True),
    "record": Column("Pair", (None, (0, ""), (0, "é"), (-1, ""), (MOST, "a"))),
    "branch": Column(
        "Shape",
        (
            Variant("Dot", ()),
            Variant("Disc", (0.5,)),
            Variant("Disc", (-0.5,)),
            Variant("Two", (Variant("Dot", ()), -1)),
        ),
    ),
    "list": Column("Names", ((), ("",), ("a",), ("a", "b"), ("b", "a"), ("é",) * 3)),
}
TYPES = (
    ".type Pair = [n:number, s:symbol]\n.type Shape = Dot {} | Disc { r:float } | Two { s:Shape, n:number }\n"
    ".type Names = list<symbol>\n"
)
RULES = """
both(x, y) :- a(x, v), a(y, v), !b(x).
onward(x, y) :- l(x, y).
onward(x, z) :- onward(x, y), l(y, z).
lone(x) :- b(x), !onward(x, _).
made(COMPUTED) :- b(x).
made(x) :- a(x, _), !made(x), b(x).
packed([x, v]) :- a(x, v).
loose(x) :- packed([x, _]), !b(x).
many(x, n) :- a(x, _), n = count : { a(x, _) }.
"""
NUMERIC = """
total(x, t) :- a(x, _), t = sum v : { a(x, v) }.
all(t) :- t = sum v : { a(_, v) }.
"""
ORDERED = """
least(x, t) :- a(x, _), t = min v : { a(x, v) }.
most(x, t) :- a(x, _), t = max v : { a(x, v) }.
less(x, y) :- a(x, v), a(y, w), v < w.
"""


def program_of(key: Column, value: Column) -> str:
    rules = RULES.replace("COMPUTED", key.computed).replace("made(x) :- a(x, _), !made(x), b(x).\n", "")
    declared = (
        f".decl a(x:{key.name}, v:{value.name})\n.decl b(x:{key.name})\n.decl l(x:{key.name}, y:{key.name})\n"
        f".decl made(x:{key.name})\n.type Packed = [x:{key.name}, v:{value.name}]\n.decl packed(p:Packed)\n"
    )
    rules += NUMERIC * value.is_numeric + ORDERED * (value.is_numeric or value.is_ordered)
    return TYPES + declared + ".input a\n.input b\n.input l\n" + rules


def values(column: Column) -> st.SearchStrategy[Value]:
    few = st.sampled_from(column.few)
    return few if column.more is None else st.one_of(few, few, column.more)


@st.composite
def epochs_of(draw: st.DrawFn, key: Column, value: Column) -> list[list[Update]]:
    """Of few rows, so that groups empty and fill again. A row may come and go in one epoch, or come twice."""
    rows: list[tuple[str, Tuple]] = []
    for _ in range(draw(st.integers(1, 6))):
        rows.append(("a", (draw(values(key)), draw(values(value)))))
        rows.append(draw(st.sampled_from((("b", (draw(values(key)),)), ("l", (draw(values(key)), draw(values(key))))))))
    update = st.tuples(st.sampled_from("++-"), st.sampled_from(rows)).map(lambda each: Update(each[0], *each[1]))
    return draw(st.lists(st.lists(update, max_size=6), min_size=1, max_size=6))


PAIRS = [*((key, "number") for key in COLUMNS), *(("symbol", value) for value in COLUMNS if value != "number")]


@pytest.mark.parametrize(("key", "value"), PAIRS)
def test_views_are_exact_whatever_columns_hold(key: str, value: str) -> None:
    program = load(program_of(COLUMNS[key], COLUMNS[value]))

    @SETTINGS
    @given(epochs_of(COLUMNS[key], COLUMNS[value]))
    def follows(epochs: list[list[Update]]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(program, epochs, ("support", "dred"))

    follows()


def check(program: Program, epochs: list[list[Update]], strategies: tuple[str, ...]) -> None:
    sessions = [Session(program, strategy=name) for name in strategies]
    totals = [{name: set(rows) for name, rows in each.initial.inserted.items()} for each in sessions]
    base: dict[str, set[Tuple]] = {}
    for epoch in epochs:
        follow(base, epoch)
        expected = evaluate(program, base)
        for session, total in zip(sessions, totals, strict=True):
            for op, name, row, _ in session.apply(epoch):
                there = total.setdefault(name, set())
                assert (row in there) == (op == "-"), "a change that changes nothing"
                (there.remove if op == "-" else there.add)(row)
            assert session.views() == expected
            assert {name: total.get(name, set()) for name in expected} == expected
    count_sequence()


WORDS = {
    "a": "count", "b": "min", "l": "range", "both": "max", "onward": "sum", "lone": "list", "made": "number", "packed": "symbol",
    "loose": "cat", "many": "mean", "total": "window", "least": "decl", "most": "autoinc", "all": "select", "less": "limitsize",
}  # fmt: skip


@SETTINGS
@given(epochs_of(COLUMNS["symbol"], COLUMNS["number"]))
def test_relations_may_be_called_like_what_the_language_has(epochs: list[list[Update]]) -> None:
    text = program_of(COLUMNS["symbol"], COLUMNS["number"])
    plain = Session(load(text))
    odd = Session(load(re.sub(r"\b(\w+)\(", lambda found: f"{WORDS.get(found[1], found[1])}(", inputs_renamed(text))))
    for epoch in epochs:
        plain.apply(epoch)
        odd.apply([Update(op, WORDS[name], row) for op, name, row, _ in epoch])
        assert odd.views() == {WORDS[name]: rows for name, rows in plain.views().items()}


def inputs_renamed(text: str) -> str:
    return re.sub(r"\.input (\w+)", lambda found: f".input {WORDS[found[1]]}", text)
