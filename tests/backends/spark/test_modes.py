"""The ways to run a recursion: same answers, and a reason for the one chosen."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.backends.spark.compare import assert_same, frames

from whence import load
from whence.backends.spark.shuffled import materialized
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import compile_evaluation, compile_plan
from whence.plan.describe import describe_plan
from whence.spark import Mode, ModeError, evaluate

CLOSURE = load(
    ".decl link(x:number, y:number) .input link\n.decl reach(x:number, y:number) .output reach\n"
    "reach(x, y) :- link(x, y).\nreach(x, z) :- reach(x, y), link(y, z)."
)
NONLINEAR = load(
    ".decl link(x:number, y:number) .input link\n.decl reach(x:number, y:number) .output reach\n"
    "reach(x, y) :- link(x, y).\nreach(x, z) :- reach(x, y), reach(y, z)."
)
SHORTEST = load(
    ".decl link(x:number, y:number) .input link\n.decl hops(x:number, n:number) .output hops\n"
    "hops(0, 0).\nhops(y, n) :- link(_, y), n = min m + 1 : { hops(x, m), link(x, y) }."
)
MUTUAL = load(
    """.decl link(x:symbol, y:symbol) .input link
    .decl even(x:symbol, y:symbol) .output even
    .decl odd(y:symbol, x:symbol) .output odd
    .decl blocked(x:symbol) .input blocked
    odd(y, x) :- link(x, y).
    even(x, z) :- odd(y, x), link(y, z), !blocked(z), !blocked(x).
    odd(z, x) :- even(x, y), link(y, z).
    .decl lonely(x:symbol, n:number) .output lonely
    lonely(x, n) :- link(x, _), n = count : { even(x, _) }, !odd(x, x).
    """
)
LINKS: list[Tuple] = [(at, (at * 7 + 3) % 23) for at in range(20)] + [(at, at + 1) for at in range(15)]


@pytest.mark.parametrize("mode", Mode)
def test_closure_is_the_same_in_every_mode(spark: SparkSession, mode: Mode) -> None:
    views = assert_same(spark, CLOSURE, {"link": LINKS}, mode=mode)
    assert mode in (Mode.AUTO, views.choices[-1].mode)


@pytest.mark.parametrize("mode", Mode)
def test_mutual_recursion_with_negation_and_readers_is_the_same_in_every_mode(spark: SparkSession, mode: Mode) -> None:
    letters = [(chr(97 + one), chr(97 + other)) for one, other in LINKS]  # type: ignore[operator]
    assert_same(spark, MUTUAL, {"link": letters, "blocked": [("c",), ("k",)]}, mode=mode)


@pytest.mark.parametrize("mode", [Mode.IN_TASK, Mode.SHUFFLED])
def test_nonlinear_closure(spark: SparkSession, mode: Mode) -> None:
    assert_same(spark, NONLINEAR, {"link": LINKS}, mode=mode)


def test_a_mode_that_is_not_possible_says_why(spark: SparkSession) -> None:
    with pytest.raises(ModeError, match="reach: rule reach#2 does not hand x from reach to its head"):
        evaluate(NONLINEAR, frames(spark, NONLINEAR, {"link": LINKS}), mode="decomposed")
    with pytest.raises(ModeError, match="hops: aggregates inside recursion"):
        evaluate(SHORTEST, frames(spark, SHORTEST, {"link": LINKS}), mode="shuffled")
    with pytest.raises(ModeError, match="there is no mode fast; there are auto, in-task, decomposed, shuffled"):
        evaluate(CLOSURE, {}, spark=spark, mode="fast")


def test_the_planner_goes_by_size_and_shape(spark: SparkSession) -> None:
    small = frames(spark, CLOSURE, {"link": LINKS})
    large = {"link": spark.range(5000).selectExpr("id as x", "id + 1 as y")}
    assert evaluate(CLOSURE, small).explain() == (
        "link, reach: in-task: the whole program, because its input is small enough for one task"
    )
    assert evaluate(CLOSURE, large).explain() == (
        "reach: decomposed: 2 parts by reach.x; every part gets all of link\n"
        "  rule reach#2 carries x from reach.x to reach.x"
    )
    assert evaluate(NONLINEAR, large).choices[-1].mode == Mode.IN_TASK
    chain = {"link": spark.range(10).selectExpr("id as x", "id + 1 as y", "repeat('x', 100000) as s").drop("s")}
    views = evaluate(NONLINEAR, chain, task_limit=100, mode="auto")
    assert views["reach"].count() == 55


def test_several_aggregates_of_all_rows_in_one_rule(spark: SparkSession) -> None:
    program = load(
        """.decl r(x:number, v:float, w:float?) .input r
        .decl q(mean:float, total:float, rows:number, known:float) .output q
        q(m, s, n, k) :- m = mean v : { r(_, v, _) }, s = sum v : { r(_, v, _) }, n = count : { r(_, _, _) },
                         k = sum w : { r(_, _, w) }."""
    )
    assert_same(spark, program, {"r": [(1, 0.1, None), (2, 0.2, 0.5), (3, 1e16, 0.25)]})
    assert_same(spark, program, {"r": []})


def test_too_large_for_a_task_is_shuffled(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whence.backends.spark.evaluate.SMALL", -1)
    monkeypatch.setattr("whence.backends.spark.choose.SMALL", -1)
    views = assert_same(spark, NONLINEAR, {"link": LINKS}, task_limit=10)
    assert views.choices[-1].mode == Mode.SHUFFLED
    assert "is too large for one task, and rule reach#2 does not hand x" in views.explain()


@pytest.mark.parametrize("mode", [Mode.IN_TASK, Mode.DECOMPOSED])
def test_what_only_the_recursion_itself_reads_again_is_not_kept(spark: SparkSession, mode: Mode) -> None:
    views = evaluate(CLOSURE, frames(spark, CLOSURE, {"link": LINKS}), mode=mode)
    assert views._kept == []
    assert views["reach"].count() > len(LINKS)


def test_rows_that_are_there_twice_count_once(spark: SparkSession) -> None:
    """Inputs, rules that keep the rows of one relation but not of another, and rules that keep no row."""
    program = load(
        """.decl line(order:number, item:number, amount:number) .input line
        .decl placed(order:number, customer:number) .input placed
        .decl customer(customer:number, region:number) .input customer
        .decl sold(region:number, order:number, item:number, amount:number) .output sold
        sold(r, o, i, a) :- line(o, i, a), placed(o, c), customer(c, r).
        .decl region(region:number) .output region
        region(r) :- customer(_, r).
        .decl copy(order:number, customer:number) .output copy
        copy(o, c) :- placed(o, c).
        .decl total(region:number, amount:number) .output total
        total(r, t) :- region(r), t = sum a : { sold(r, _, _, a) }.
        """
    )
    rows = {
        "line": [(order, item, 1) for order in range(4) for item in range(3)] * 2,
        "placed": [(order, customer) for order in range(4) for customer in (order, order + 1)] * 2,
        "customer": [(customer, customer // 10) for customer in range(12)] * 3,
    }
    views = assert_same(spark, program, rows)
    assert views["sold"].count() == 12
    assert sorted(tuple(row) for row in views["total"].collect()) == [(0, 12), (1, 0)]


def test_rows_are_looked_through_before_a_shuffle_only_where_many_may_be_equal(spark: SparkSession) -> None:
    program = load(
        ".decl link(x:number, y:number) .input link .decl hop(x:number, y:number, z:number) .output hop "
        "hop(x, y, z) :- link(x, y), link(y, z). .decl first(x:number) .output first first(x) :- link(x, _)."
    )
    views = evaluate(program, frames(spark, program, {"link": LINKS}))

    def aggregates(name: str) -> int:
        plan = views[name]._jdf.queryExecution().executedPlan()
        return str(plan.toString()).partition("Initial Plan")[0].count("HashAggregate")

    assert aggregates("hop") == 1
    assert aggregates("first") == 2


def test_guesses_of_sizes_do_not_grow_with_rounds(spark: SparkSession) -> None:
    """Spark would square them each time, and then multiply numbers of millions of digits."""
    frame, rows = spark.range(3).toDF("c0"), 3
    for _ in range(6):
        twice = frame.join(frame.toDF("key"), F.expr("c0 = key")).select("c0")
        frame, rows = materialized(twice, guess_size=False)
    guess = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    assert rows == 3
    assert guess < 1 << 64


def test_what_spark_keeps_of_a_round_does_not_grow_with_rounds(spark: SparkSession) -> None:
    """Plans of rows that are not there yet count as a part of those that read them: fibonacci filled the memory of Java."""
    frame = spark.range(3).toDF("c0")
    kept = []
    for _ in range(4):
        twice = frame.join(frame.toDF("key"), F.expr("c0 = key")).select("c0")
        frame, _ = materialized(twice, guess_size=False)
        plan = frame._jdf.queryExecution().executedPlan()
        kept.append(nodes(spark._jvm.org.apache.spark.sql.execution.SparkPlanInfo.fromSparkPlan(plan)))
    assert kept == [kept[0]] * 4


def nodes(plan: JavaObject) -> int:
    children = plan.children()
    return 1 + sum(nodes(children.apply(at)) for at in range(children.size()))


@pytest.mark.parametrize("mode", [Mode.IN_TASK, Mode.SHUFFLED])
def test_what_does_not_end_is_stopped(spark: SparkSession, mode: Mode) -> None:
    program = load(".decl n(x:number) .output n\nn(0). n(x + 1) :- n(x).")
    with pytest.raises(Exception, match="stopped after 3 rounds"):
        evaluate(program, {}, spark=spark, mode=mode, limits=Limits(max_rounds=3))["n"].collect()


def test_relations_without_columns_and_without_rows(spark: SparkSession) -> None:
    program = load(
        ".decl on() .input on\n.decl off() .output off\n.decl yes() .output yes\n.decl e(x:number) .input e\n"
        "off() :- !on().\nyes() :- on(), !e(_).\n"
    )
    views = evaluate(program, {"on": spark.range(3)})
    assert (views["off"].count(), views["yes"].count()) == (0, 1)
    assert evaluate(program, {}, spark=spark)["off"].columns == ["holds"]
    assert evaluate(program, {}, spark=spark)["off"].count() == 1


def test_shuffle_partitions_are_as_before(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    evaluate(CLOSURE, frames(spark, CLOSURE, {"link": LINKS[:4]}), mode="shuffled")
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_groups_asked_for_by_their_own_rows_are_grouped_directly(spark: SparkSession) -> None:
    program = load(
        """.decl sale(c:number, i:number, a:number) .input sale
        .decl total(c:number, n:number) .output total
        total(c, n) :- sale(c, _, _), n = sum a : { sale(c, i, a) }.
        .decl pairs(c:number, a:number, n:number) .output pairs
        pairs(c, a, n) :- sale(c, _, a), n = count : { sale(c, _, a) }, n > 1.
        .decl some(c:number, n:number) .output some
        some(c, n) :- sale(c, _, _), n = count : { sale(c, _, 5) }.
        .decl same(c:number, n:number) .output same
        same(c, n) :- sale(c, _, _), n = count : { sale(c, x, x) }.
        """
    )
    rows: list[Tuple] = [(1, 1, 5), (1, 2, 5), (2, 3, 3), (2, 4, 5), (3, 3, 3)]
    views = assert_same(spark, program, {"sale": rows})
    assert "Join" not in views["total"]._jdf.queryExecution().optimizedPlan().toString()


WEIGHTED = """.decl link(x:number, y:number, w:number) .input link
.decl given(x:number, y:number, d:number) .input given
.decl path(x:number, y:number, d:number) .output path
.decl sp(x:number, y:number, d:number) .output sp
path(x, y, w) :- link(x, y, w).
path(x, z, d + w) :- sp(x, y, d), link(y, z, w).
"""
ANCHORED = "sp(x, y, m) :- path(x, y, _), m = min d : { path(x, y, d) }.\n"
AGGREGATES = (
    ANCHORED,
    # Groups that are asked for from elsewhere.
    "sp(x, y, m) :- link(x, _, _), link(_, y, _), m = min d : { path(x, y, d) }.",
    # Rows besides the groups.
    f"{ANCHORED}sp(x, y, d) :- given(x, y, d).",
    # Conditions inside and outside of the braces.
    "sp(x, y, m) :- m = min d : { path(x, y, d), !given(y, x, _) }, path(x, y, _), m < 90.",
)
EDGES = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9)), max_size=14)


# The session of all tests is meant; an example takes some jobs.
@settings(
    max_examples=max(5, int(os.environ.get("WHENCE_EXAMPLES", "0")) // 100),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rules=st.sampled_from(AGGREGATES), links=EDGES, others=EDGES)
@example(AGGREGATES[2], {(0, 1, 4), (1, 2, 4), (3, 1, 1)}, {(0, 1, 2), (5, 3, 7), (5, 4, 1)})
def test_recursive_least_values_in_parts(
    spark: SparkSession, rules: str, links: set[Tuple], others: set[Tuple]
) -> None:
    program = load(WEIGHTED + rules)
    views = assert_same(spark, program, {"link": links, "given": others}, mode="decomposed")
    assert "rule sp#1 carries x from path.x to sp.x" in views.explain()


@pytest.mark.parametrize(
    "rule",
    [
        *AGGREGATES,
        # Rows of groups from elsewhere.
        "sp(x, y, m) :- link(x, _, _), link(_, y, _), m = min d : { given(x, y, d); path(x, y, d) }.",
        # A key without the column.
        "sp(x, y, m) :- path(x, y, _), m = min d : { path(_, y, d) }.",
    ],
)
def test_the_plan_as_text_tells_whether_aggregates_run_in_parts(spark: SparkSession, rule: str) -> None:
    program = load(WEIGHTED + rule)
    text = describe_plan(compile_plan(program), compile_evaluation(program))
    inputs: dict[str, list[Tuple]] = {"link": [(1, 2, 3)], "given": []}
    if "  in parts by path.x, sp.x" in text:
        assert_same(spark, program, inputs, mode="decomposed")
        return
    (reason,) = re.findall(r"not in parts: (.*)", text)
    with pytest.raises(ModeError, match=re.escape(reason)):
        evaluate(program, frames(spark, program, inputs), mode="decomposed")


def test_recursion_through_aggregates_is_taken_apart_where_that_pays(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whence.backends.spark.evaluate.SMALL", -1)
    monkeypatch.setattr("whence.backends.spark.choose.SMALL", -1)
    links = [(one, other, (one * 5 + other) % 7 + 1) for one, other in LINKS]  # type: ignore[operator]
    program = load(WEIGHTED + ANCHORED)
    views = assert_same(spark, program, {"link": links}, mode="auto")
    assert views.choices[-1].mode == Mode.DECOMPOSED
    hops = assert_same(spark, SHORTEST, {"link": LINKS}, mode="auto")
    assert hops.explain() == (
        "hops: in-task: in one task, because aggregates inside recursion, and rule hops#2 does not hand y from hops to its head "
        "at the same place"
    )
    with pytest.raises(ModeError, match="shuffled is not possible for path, sp: aggregates inside recursion"):
        evaluate(program, frames(spark, program, {"link": links}), mode="shuffled")
