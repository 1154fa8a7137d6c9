"""Functors as Spark computes them: on the values where machines differ, the reference's answers."""

from __future__ import annotations

import math
from decimal import Decimal

from pyspark.sql import SparkSession
from tests.backends.spark.compare import assert_same

from whence import load
from whence.lang.types import Tuple

LOWEST, HIGHEST = -(2**63), 2**63 - 1
NUMBERS = [LOWEST, LOWEST + 1, -7, -1, 0, 1, 2, 3, 64, 2**32 + 5, HIGHEST - 1, HIGHEST]
UNSIGNED = [0, 1, 7, 63, 2**63 - 1, 2**63, 2**64 - 1]
FLOATS = [0.0, 1.0, -1.5, 0.1, 2.5, 1e300, -1e300, 1e-300, math.inf, -math.inf]
TEXTS = ["", "a", "ab", "Äpfel", "it's", "back\\slash", "😀x", "12", "-0x1f", "a.*b", "("]
INFIX = "+ - * / % ^ band bor bxor bshl bshr bshru land lor lxor".split()
INTEGER_OPS = [*(f"x {op} y" for op in INFIX), "min(x, y)", "max(x, y)", "bnot x", "lnot x"]
FLOAT_OPS = ["x + y", "x - y", "x * y", "x / y", "x ^ y", "min(x, y)", "max(x, y)", "-x"]
COMPARISONS = ["<", "<=", ">", ">=", "=", "!="]


def check(spark: SparkSession, kind: str, rules: list[tuple[str, str]], values: list[object]) -> None:
    """`rules` are terms over x and y with their kinds; one relation for each kind of result."""
    text = f".decl v(x:{kind}) .input v\n"
    for result in dict.fromkeys(of for _, of in rules):
        text += f".decl r_{result}(op:symbol, x:{kind}, y:{kind}, z:{result}) .output r_{result}\n"
    text += "\n".join(f'r_{of}("{term}", x, y, {term}) :- v(x), v(y).' for term, of in rules)
    text += f"\n.decl c(op:symbol, x:{kind}, y:{kind}) .output c\n"
    text += "\n".join(f'c("{op}", x, y) :- v(x), v(y), x {op} y.' for op in COMPARISONS)
    program = load(text)
    facts: dict[str, list[Tuple]] = {"v": [(value,) for value in values]}  # type: ignore[dict-item]
    views = assert_same(spark, program, facts)
    assert {choice.mode for choice in views.choices} == {None}


def test_numbers_wrap_around(compiled: SparkSession) -> None:
    others = [("-x", "number"), ("itof(x)", "float"), ("to_string(x)", "symbol"), ("itou(x)", "unsigned")]
    check(compiled, "number", [(op, "number") for op in INTEGER_OPS] + others, list(NUMBERS))


def test_unsigned_numbers(spark: SparkSession) -> None:
    others = [("utof(x)", "float"), ("to_string(x)", "symbol"), ("utoi(x)", "number")]
    check(spark, "unsigned", [(op, "unsigned") for op in INTEGER_OPS] + others, list(UNSIGNED))


def test_floats_have_no_nan(compiled: SparkSession) -> None:
    others = [("to_string(x)", "symbol"), ("ftoi(x)", "number"), ("ftou(x)", "unsigned")]
    check(compiled, "float", [(op, "float") for op in FLOAT_OPS] + others, list(FLOATS))


def test_symbols(spark: SparkSession) -> None:
    rules = [("cat(x, y)", "symbol"), ("strlen(x)", "number"), ("to_number(x)", "number"), ("ord(x)", "number")]
    rules += [
        (f"substr(x, {start}, {length})", "symbol") for start in (-1, 0, 1, 9) for length in (-1, 0, 1, 5000000000)
    ]
    check(spark, "symbol", [*rules, ("min(x, y)", "symbol"), ("max(x, y)", "symbol")], list(TEXTS))


def test_match_and_contains(spark: SparkSession) -> None:
    program = load(
        ".decl v(x:symbol) .input v\n.decl m(op:symbol, x:symbol, y:symbol) .output m\n"
        + "\n".join(
            f'm("{op}", x, y) :- v(x), v(y), {op}(x, y).' for op in ("match", "contains", "!match", "!contains")
        )
    )
    assert_same(spark, program, {"v": [(text,) for text in TEXTS]})


def test_aggregates_wrap_around_and_do_not_depend_on_order(compiled: SparkSession) -> None:
    program = load(
        """.decl g(k:number) .input g
        .decl v(k:number, i:number, n:number, u:unsigned, f:float, s:symbol) .input v
        .decl n(k:number, op:symbol, r:number) .output n
        n(k, "count", r) :- g(k), r = count : { v(k, _, _, _, _, _) }.
        n(k, "sum", r) :- g(k), r = sum n : { v(k, _, n, _, _, _) }.
        n(k, "min", r) :- g(k), r = min n : { v(k, _, n, _, _, _) }.
        n(0, "all", r) :- r = sum n : { v(_, _, n, _, _, _) }.
        n(1, "none", r) :- r = count : { v(99, _, _, _, _, _) }.
        .decl u(k:number, op:symbol, r:unsigned) .output u
        u(k, "sum", r) :- g(k), r = sum u : { v(k, _, _, u, _, _) }.
        u(k, "max", r) :- g(k), r = max u : { v(k, _, _, u, _, _) }.
        .decl f(k:number, op:symbol, r:float) .output f
        f(k, "sum", r) :- g(k), r = sum f : { v(k, _, _, _, f, _) }.
        f(k, "mean", r) :- g(k), r = mean f : { v(k, _, _, _, f, _) }.
        f(k, "mean of numbers", r) :- g(k), r = mean n : { v(k, _, n, _, _, _) }.
        f(0, "none", r) :- r = sum f : { v(99, _, _, _, f, _) }.
        .decl s(k:number, r:symbol) .output s
        s(k, r) :- g(k), r = max s : { v(k, _, _, _, _, s) }.
        """
    )
    rows: list[Tuple] = [
        (
            at % 3,
            at,
            NUMBERS[at % len(NUMBERS)],
            UNSIGNED[at % len(UNSIGNED)],
            (0.1, 1e16, -1e16, 3.3)[at % 4],
            TEXTS[at % 8],
        )
        for at in range(60)
    ]
    assert_same(compiled, program, {"g": [(0,), (1,), (2,), (3,)], "v": rows})


def test_decimals_are_made_compared_and_cut(compiled: SparkSession) -> None:
    edges = ["-9999999999999999.99", "-2.51", "-2.50", "-0.01", "0", "0.01", "2.5", "7", "9999999999999999.99"]
    fine = ["-9999999999.99999999", "-2.5", "0", "0.005", "2.50000001", "9999999999.99999999"]
    program = load(
        """.decl v(x:decimal(18,2)) .input v
        .decl w(y:decimal(18,8)) .input w
        .decl n(i:number) .input n
        .decl whole(x:decimal(18,2), low:decimal(18,0), high:decimal(18,0)) .output whole
        whole(x, floor(x), ceil(x)) :- v(x).
        .decl order(x:decimal(18,2), y:decimal(18,8), c:number) .output order
        order(x, y, compare(x, y)) :- v(x), w(y).
        .decl beside(x:decimal(18,2), i:number, c:number) .output beside
        beside(x, i, compare(x, i)) :- v(x), n(i).
        .decl rest(x:decimal(18,2), y:decimal(18,2), r:decimal(18,2)) .output rest
        rest(x, y, x % y) :- v(x), v(y).
        .decl rounded(x:decimal(18,8), r:decimal(12,2)) .output rounded
        rounded(y, as(y, decimal(12,2))) :- w(y).
        .decl finer(x:decimal(18,2), r:decimal(18,4)) .output finer
        finer(x, as(x, decimal(18,4))) :- v(x).
        .decl of_number(i:number, r:decimal(10,3)) .output of_number
        of_number(i, as(i, decimal(10,3))) :- n(i)."""
    )
    facts: dict[str, list[Tuple]] = {
        "v": [(Decimal(text),) for text in edges],
        "w": [(Decimal(text),) for text in fine],
        "n": [(number,) for number in NUMBERS],
    }
    views = assert_same(compiled, program, facts)
    assert {choice.mode for choice in views.choices} == {None}
