"""Values in and out: every kind, in every shape that a DataFrame may have."""

# ruff: noqa: DTZ001, DTZ901 - timestamps have no zone

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from tests.backends.spark.compare import assert_same

from whence import load
from whence.lang.types import Tuple, Variant
from whence.spark import SchemaError, evaluate

SHAPES = load(
    """.type Point = [x:number, u:unsigned]
    .type Line = [a:Point, b:Point]
    .type Shape = Circle { at:Point, r:float } | Named { name:symbol } | Nothing {}
    .type Chain = [head:number, tail:Chain]
    .decl given(n:number, u:unsigned, f:float, s:symbol, l:Line, h:Shape, xs:list<unsigned>, ps:list<Point>, c:Chain)
    .input given
    .decl out(n:number, u:unsigned, f:float, s:symbol, l:Line, h:Shape, xs:list<unsigned>, ps:list<Point>, c:Chain)
    .output out
    out(n, u, f, s, l, h, xs, ps, c) :- given(n, u, f, s, l, h, xs, ps, c).
    .decl parts(x:number, u:unsigned, h:Shape)
    .output parts
    parts(x, u, $Circle(p, 1.5)) :- given(_, _, _, _, [p, _], _, _, _, _), p = [x, u].
    parts(length(xs), u, $Nothing()) :- given(_, _, _, _, nil, _, xs, _, _), xs = [u | _].
    """
)
ROWS: list[Tuple] = [
    (-(2**63), 2**64 - 1, -math.inf, "", None, Variant("Nothing"), (), (), None),
    (2**63 - 1, 0, 0.1, "it's \\ 😀", ((1, 2**63), None), Variant("Circle", ((3, 4), 0.5)),
     (1, 2**64 - 1), ((5, 6), None), (1, (2, None))),
    (0, 7, 1e300, "x\ty", (None, (8, 9)), Variant("Named", ("a,b",)), (3,), (None,), (1, None)),
    (1, 8, 0.0, "nil", None, Variant("Circle", (None, 2.0)), (9, 10), (), (3, None)),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "in-task"])
def test_every_kind_survives(spark: SparkSession, mode: str) -> None:
    views = assert_same(spark, SHAPES, {"given": ROWS}, mode=mode)
    assert views["out"].columns == ["n", "u", "f", "s", "l", "h", "xs", "ps", "c"]


def test_shapes_are_what_the_page_says(spark: SparkSession) -> None:
    types = {each.name: each.dataType.simpleString() for each in evaluate(SHAPES, {}, spark=spark)["out"].schema}
    point = "struct<x:bigint,u:decimal(20,0)>"
    assert types == {
        "n": "bigint",
        "u": "decimal(20,0)",
        "f": "double",
        "s": "string",
        "l": f"struct<a:{point},b:{point}>",
        "h": f"struct<branch:string,Circle:struct<at:{point},r:double>,Named:struct<name:string>>",
        "xs": "array<decimal(20,0)>",
        "ps": f"array<{point}>",
        "c": "string",
    }


COPY = load(
    ".decl given(n:number, s:symbol, f:float) .input given\n.decl out(n:number, s:symbol, f:float) .output out\n"
    "out(n, s, f) :- given(n, s, f)."
)


def test_dates_and_times_become_numbers_or_texts(spark: SparkSession) -> None:
    day = "date'1970-01-11'"
    moment = "timestamp'2020-01-02 03:04:05.000006 UTC'"
    wall = "timestamp_ntz'1970-01-01 00:00:01.5'"
    given = [
        spark.sql(f"select {day} n, {day} s, 1Y f"),
        spark.sql(f"select {moment} n, {moment} s, 1.5BD f"),
        spark.sql(f"select {wall} n, {wall} s, float(0.5) f"),
        spark.sql("select 7Y n, cast('v' as varchar(3)) s, 3S f"),
    ]
    assert [tuple(evaluate(COPY, {"given": each})["out"].first()) for each in given] == [  # type: ignore[arg-type]
        (10, "1970-01-11", 1.0),
        (1577934245000006, "2020-01-02T03:04:05.000006Z", 1.5),
        (1500000, "1970-01-01T00:00:01.500000", 0.5),
        (7, "v", 3.0),
    ]


def test_columns_are_found_by_name_or_in_order(spark: SparkSession) -> None:
    by_name = spark.sql("select 2.5D F, 'x' s, 1L n")
    in_order = spark.sql("select 1L a, 'x' b, 2.5D c")
    for frame in (by_name, in_order):
        assert evaluate(COPY, {"given": frame})["out"].collect() == [Row(n=1, s="x", f=2.5)]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("select 'a' n, 'x' s, 1D f", "relation given, column n: found string, wanted bigint for number"),
        ("select 1L n, 2L s, 1D f", "relation given, column s: found bigint, wanted string for symbol"),
        ("select 1L n, 'x' s, 3L f", "relation given, column f: found bigint, wanted double for float"),
        ("select 1L n, 'x' s", "relation given has the columns n, s, f; the DataFrame has n, s, without f"),
        ("select 1L n, 'x' s, 1D g", "without f"),
    ],
)
def test_a_column_that_does_not_fit_is_named(spark: SparkSession, query: str, problem: str) -> None:
    with pytest.raises(SchemaError) as error:
        evaluate(COPY, {"given": spark.sql(query)})
    assert problem in str(error.value)


def test_a_relation_that_takes_no_dataframe_is_named(spark: SparkSession) -> None:
    frame = spark.sql("select 1L n, 'x' s, 1D f")
    with pytest.raises(SchemaError, match="there is no relation other; the inputs are given"):
        evaluate(COPY, {"other": frame})
    with pytest.raises(SchemaError, match="out is derived by rules"):
        evaluate(COPY, {"out": frame})


@pytest.mark.parametrize("mode", ["auto", "in-task"])
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("null n, 'x' s, 1D f", "relation given, column n: there is a null"),
        ("1L n, 'x' s, double('NaN') f", "relation given, column f: there is a NaN"),
    ],
)
def test_nulls_and_nan_are_refused(spark: SparkSession, row: str, problem: str, mode: str) -> None:
    frame = spark.sql(f"select {row}").selectExpr("bigint(n) n", "s", "f")
    with pytest.raises(PySparkException, match=problem):
        evaluate(COPY, {"given": frame}, mode=mode)["out"].collect()


def test_rows_with_nulls_are_dropped_on_request(spark: SparkSession) -> None:
    frame = spark.sql(
        "select * from values (1L, 'x', 1D), (null, 'y', 1D), (3L, null, 2D), (4L, 'z', 2D) as t(n, s, f)"
    )
    found = evaluate(COPY, {"given": frame}, nulls="drop")["out"].collect()
    assert sorted(found) == [(1, "x", 1.0), (4, "z", 2.0)]


def test_unsigned_numbers_are_checked(spark: SparkSession) -> None:
    program = load(".decl a(u:unsigned) .input a\n.decl b(u:unsigned) .output b\nb(u) :- a(u).")
    assert evaluate(program, {"a": spark.sql("select 5 u")})["b"].collect() == [(Decimal(5),)]
    with pytest.raises(PySparkException, match="outside the range of unsigned"):
        evaluate(program, {"a": spark.sql("select -5 u")})["b"].collect()


def test_a_session_with_another_time_zone_gives_the_same(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, dt.datetime(2020, 1, 2, tzinfo=dt.UTC), 1.0)], "n long, s timestamp, f double")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert evaluate(COPY, {"given": frame})["out"].collect()[0].s == "2020-01-02T00:00:00.000000Z"
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


SCALARS = load(
    """.decl given(b:bool, d:date, t:timestamp, m:decimal(18,4), n:number?, u:unsigned?, f:float?, s:symbol?, c:bool?, e:date?,
        w:timestamp?, k:decimal(5,2)?)
    .input given
    .decl out(b:bool, d:date, t:timestamp, m:decimal(18,4), n:number?, u:unsigned?, f:float?, s:symbol?, c:bool?, e:date?,
        w:timestamp?, k:decimal(5,2)?)
    out(b, d, t, m, n, u, f, s, c, e, w, k) :- given(b, d, t, m, n, u, f, s, c, e, w, k).
    same(m, n) :- given(_, _, _, m, n, u, _, _, _, _, _, _), given(_, _, _, _, n, v, _, _, _, _, _, _), u != v.
    none(d) :- given(_, d, _, _, nil, _, _, _, _, _, _, _), !given(false, d, _, _, _, _, _, _, _, _, _, _).
    computed(year(d), m + 1, m * k, coalesce(n, 0), lnot b, date_add(t, 1, "hour")) :-
        given(b, d, t, m, n, _, _, _, _, _, _, k).
    sums(b, x, y, z) :- given(b, _, _, _, _, _, _, _, _, _, _, _), x = sum m : { given(b, _, _, m, _, _, _, _, _, _, _, _) },
        y = min w : { given(b, _, _, _, _, _, _, _, _, _, w, _) }, z = sum k : { given(b, _, _, _, _, _, _, _, _, _, _, k) }.
    .output out, same, none, computed, sums
    """
)
MOST = Decimal("99999999999999.9999")
SCALAR_ROWS: list[Tuple] = [
    (True, dt.date.min, dt.datetime.min, MOST, 2**63 - 1, 2**64 - 1, -math.inf, "", True, dt.date.max, dt.datetime.max,
     Decimal("-999.99")),
    (False, dt.date.max, dt.datetime.max, -MOST, *([None] * 8)),
    (True, dt.date(1969, 12, 31), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), Decimal("0.0001"), -(2**63) + 1, 2**63 + 1, 0.0,
     "nil", False, dt.date(1970, 1, 1), dt.datetime(1970, 1, 1), Decimal(0)),
    (True, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29), MOST, None, 3, 0.5, "ä", *([None] * 3), Decimal("1.50")),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "in-task", "shuffled"])
def test_truth_values_dates_decimals_and_nil_survive(
    spark: SparkSession, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whence.backends.spark.evaluate.SMALL", -1)
    monkeypatch.setattr("whence.backends.spark.choose.SMALL", -1)
    views = assert_same(spark, SCALARS, {"given": SCALAR_ROWS}, mode=mode)
    kinds = ["boolean", "date", "timestamp_ntz", "decimal(18,4)", "bigint", "decimal(20,0)", "double", "string"]
    assert [each.dataType.simpleString() for each in views["out"].schema][:8] == kinds


@pytest.mark.parametrize(
    ("type_", "shape", "value", "problem"),
    [
        ("number?", "bigint", -(2**63), "out of range"),
        ("decimal(4,2)", "decimal(10,3)", Decimal("1.234"), "not a decimal"),
        ("decimal(4,2)", "bigint", 100, "not a decimal"),
        ("date", "date", None, "there is a null"),
    ],
)
def test_what_does_not_fit_is_refused(spark: SparkSession, type_: str, shape: str, value: object, problem: str) -> None:
    program = load(f".decl given(x:{type_})\n.input given\n.decl out(x:{type_})\nout(x) :- given(x).\n.output out")
    frame = spark.createDataFrame([(value,)], f"x {shape}")
    with pytest.raises(PySparkException, match=problem):
        evaluate(program, {"given": frame}, spark=spark)["out"].collect()
