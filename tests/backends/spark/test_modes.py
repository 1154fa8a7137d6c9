"""The ways to run a recursion: same answers, and a reason for the one chosen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.backends.spark.compare import assert_same, broadcasting, frames, rows_of

from whence import load
from whence.backends.spark.shuffled import materialized
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import compile_evaluation, compile_plan
from whence.plan.describe import describe_plan
from whence.reference import evaluate as evaluate_by_reference
from whence.spark import Mode, ModeError, evaluate

CLOSURE = load(
    ".decl link(x:number, y:number) .input link\n.decl reach(x:number, y:number) .output reach\n"
    "reach(x, y) :- link(x, y).\nreach(x, z) :- reach(x, y), link(y, z)."
)
NONLINEAR = load(
    ".decl link(x:number, y:number) .input link\n.decl reach(x:number, y:number) .output reach\n"
    "reach(x, y) :- link(x, y).\nreach(x, z) :- reach(x, y), reach(y, z)."
)
FROM_STARTS = load(
    ".decl start(x:number, y:number) .input start .decl link(x:number, y:number) .input link "
    ".decl reach(x:number, y:number) .output reach reach(x, y) :- start(x, y). reach(x, z) :- reach(x, y), link(y, z)."
)
SHORTEST = load(
    ".decl link(x:number, y:number) .input link\n.decl hops(x:number, n:number) .output hops\n"
    "hops(0, 0).\nhops(y, n) :- link(_, y), n = min m + 1 : { hops(x, m), link(x, y) }."
)
ALL_PAIRS = load(
    ".decl link(x:number, y:number) .input link .decl cost(x:number, y:number, n:number) .output cost "
    ".decl path(x:number, y:number, n:number) path(x, y, 1) :- link(x, y). path(x, z, n + 1) :- cost(x, y, n), link(y, z). "
    "cost(x, y, m) :- path(x, y, _), m = min n : { path(x, y, n) }."
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
IF_ON = load(
    """.decl link(x:number, y:number) .input link .decl on() .input on .decl reach(x:number, y:number) .output reach
    reach(x, y) :- link(x, y).
    reach(x, z) :- reach(x, y), link(y, z), on().
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


@pytest.mark.parametrize(("threshold", "is_shuffled"), [("-1", True), ("200", True), ("10mb", False)])
def test_parts_get_small_relations_by_broadcast_and_large_ones_by_a_shuffle(
    spark: SparkSession, threshold: str, is_shuffled: bool
) -> None:
    letters = [(chr(97 + one), chr(97 + other)) for one, other in LINKS]  # type: ignore[operator]
    with broadcasting(spark, threshold):
        views = assert_same(spark, MUTUAL, {"link": letters, "blocked": [("c",), ("k",)]}, mode=Mode.DECOMPOSED)
        plan = views["even"]._jdf.queryExecution().toString()  # type: ignore[operator]
        for on in ([], [()]):  # a relation without columns
            views = assert_same(spark, IF_ON, {"link": LINKS, "on": on}, mode=Mode.DECOMPOSED)
            assert "every part gets all of link, on" in views.explain()
    assert ("REPARTITION_BY_NUM" in plan) == is_shuffled
    # What other partitions a task is put together with does not tell it its part.
    views = evaluate(CLOSURE, frames(spark, CLOSURE, {"link": LINKS}), mode=Mode.DECOMPOSED)
    expected = evaluate_by_reference(CLOSURE, {"link": LINKS})["reach"]
    assert views["reach"].union(views["reach"]).coalesce(1).count() == 2 * len(expected)


@pytest.mark.parametrize(
    ("threshold", "beginning", "jobs"),
    [("-1", "link(y, x)", 0), ("10mb", "link(y, x)", 1), ("10mb", "link(x, y)", 2)],
)
def test_what_recursion_begins_with_is_sent_once_if_it_is_sent_anyway(
    spark: SparkSession, threshold: str, beginning: str, jobs: int
) -> None:
    program = load(
        f""".decl link(x:number, y:number) .input link
        .decl there(x:number, y:number) .output there
        .decl back(x:number, y:number) .output back
        .decl whole(x:number, y:number)
        whole(x, y) :- link(x, y).
        there(x, y) :- whole(x, y).
        back(y, x) :- {beginning}.
        there(x, z) :- back(y, x), link(y, z).
        back(z, x) :- there(x, y), link(y, z).
        """
    )
    with broadcasting(spark, threshold):
        views = assert_same(spark, program, {"link": LINKS}, mode=Mode.DECOMPOSED)
        assert "2 parts by back.y, there.x; every part gets all of link" in views.explain()
        with jobs_of(spark) as started:
            evaluate(program, {"link": spark.range(50).selectExpr("id as x", "id + 1 as y")}, mode=Mode.DECOMPOSED)
        assert len(started()) == jobs


@contextmanager
def jobs_of(spark: SparkSession) -> Iterator[Callable[[], list[int]]]:
    """The jobs that this thread begins."""
    context = spark.sparkContext
    name = f"jobs {uuid4()}"
    context.setJobGroup(name, name)
    try:
        yield lambda: list(context.statusTracker().getJobIdsForGroup(name))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


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
    large = {"link": spark.range(6000).selectExpr("id as x", "id + 1 as y")}
    assert evaluate(CLOSURE, small).explain() == (
        "link, reach: in-task: the whole program, because its input is small enough for one task"
    )
    assert evaluate(CLOSURE, large).choices[-1].mode == Mode.DECOMPOSED
    assert evaluate(ALL_PAIRS, large).choices[-1].mode == Mode.DECOMPOSED
    begun = large | {"start": spark.range(15_000).selectExpr("id as x", "id as y")}
    assert evaluate(FROM_STARTS, begun, task_limit=100_000).explain() == (
        "reach: decomposed: 3 parts by reach.x; every part gets all of link\n"
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


LETTERS = [("abcdefghijklmnopqrstuvwxyz"[one], "abcdefghijklmnopqrstuvwxyz"[other]) for one, other in LINKS]  # type: ignore[index]
IN_PARTS = {
    "closure": (CLOSURE, {"link": LINKS}),
    "nothing to begin with": (CLOSURE, {"link": []}),
    "texts, several relations, negation": (MUTUAL, {"link": LETTERS, "blocked": [("c",), ("k",)]}),
    "facts, several rules and rows from outside": (
        load(
            ".decl link(x:number, y:number) .input link .decl reach(x:number, y:number) .input reach .output reach "
            "reach(7, 1). reach(x, x + 1) :- link(x, y), y > 3. reach(x, y) :- link(x, y). "
            "reach(x, z) :- reach(x, y), link(y, z)."
        ),
        {"link": LINKS, "reach": [(1, 1), (40, 2)]},
    ),
    "rules without a beginning": (
        load(
            ".decl link(x:number, y:number) .input link .decl reach(x:number, y:number) .input reach .output reach "
            "reach(x, z) :- reach(x, y), link(y, z)."
        ),
        {"link": LINKS, "reach": [(1, 1), (40, 2)]},
    ),
    "what begins is a join": (
        load(
            ".decl link(x:number, y:number) .input link .decl far(x:number, y:number) .output far "
            "far(x, z) :- link(x, y), link(y, z). far(x, z) :- far(x, y), link(y, z)."
        ),
        {"link": LINKS},
    ),
    "what is read is derived": (
        load(
            ".decl link(x:number, y:number) .input link .decl way(x:number, y:number) .decl reach(x:number, y:number) "
            ".output reach way(x, y) :- link(x, y). way(x, y) :- link(y, x), x < 9. reach(x, y) :- way(x, y). "
            "reach(x, z) :- reach(x, y), way(y, z)."
        ),
        {"link": LINKS},
    ),
}


@pytest.mark.parametrize("case", IN_PARTS)
def test_parts_have_the_rows_of_the_whole(spark: SparkSession, case: str) -> None:
    program, facts = IN_PARTS[case]
    views = assert_same(spark, program, facts, mode=Mode.DECOMPOSED)
    assert sum(choice.mode == Mode.DECOMPOSED and choice.parts == 2 for choice in views.choices) == 1
    frame = next(iter(views.values()))
    # Whoever asks may have one task do what two would have done.
    assert sorted(frame.coalesce(1).collect()) == sorted(frame.collect())


@pytest.mark.parametrize("mode", [Mode.IN_TASK, Mode.DECOMPOSED])
def test_what_only_the_recursion_itself_reads_again_is_not_kept(spark: SparkSession, mode: Mode) -> None:
    views = evaluate(CLOSURE, frames(spark, CLOSURE, {"link": LINKS}), mode=mode)
    assert views._kept == []
    assert views["reach"].count() > len(LINKS)


SALES = load(
    """.decl line(order:number, item:number, amount:number) .input line .output line
    .decl placed(order:number, customer:symbol) .input placed
    .decl customer(customer:symbol, region:number) .input customer
    .decl sold(region:number, order:number, item:number, amount:number) .output sold
    sold(r, o, i, a) :- line(o, i, a), placed(o, c), customer(c, r).
    .decl region(region:number) .output region
    region(r) :- customer(_, r).
    .decl copy(order:number, customer:symbol) .output copy
    copy(o, c) :- placed(o, c).
    .decl total(region:number, amount:number) .output total
    total(r, t) :- region(r), t = sum a : { sold(r, _, _, a) }.
    """
)
DIGITS = st.integers(0, 3)
NAMES = st.sampled_from(["a", "b", ""])


@pytest.mark.parametrize("piece", [1 << 23, 64, 1])
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    lines=[(order, item, 1) for order in range(4) for item in range(3)] * 2,
    placed=[(order, "abcde"[at]) for order in range(4) for at in (order, order + 1)] * 2,
    customers=[(customer, number // 10) for number, customer in enumerate("abcdefghijkl")] * 3,
)
@given(
    lines=st.lists(st.tuples(DIGITS, DIGITS, st.integers(-(1 << 63), (1 << 63) - 1)), max_size=30),
    placed=st.lists(st.tuples(DIGITS, NAMES), max_size=20),
    customers=st.lists(st.tuples(NAMES, DIGITS), max_size=20),
)
def test_rows_that_are_there_twice_count_once(
    spark: SparkSession, piece: int, lines: list[Tuple], placed: list[Tuple], customers: list[Tuple]
) -> None:
    """Inputs, rules that keep the rows of one relation but not of another, and rules that keep no row, in few pieces or many."""
    facts = {"line": lines * 2, "placed": placed * 2, "customer": customers * 2}
    columns = {
        "line": "order long, item long, amount long",
        "placed": "order long, customer string",
        "customer": "customer string, region long",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whence.backends.spark.rules._PIECE", piece)
        patch.setattr("whence.backends.spark.rules._MOST_PIECES", 7)
        inputs = {name: spark.createDataFrame(rows, columns[name]) for name, rows in facts.items()}
        views = evaluate(SALES, inputs, spark=spark)
    expected = evaluate_by_reference(SALES, facts)
    for name, rows in rows_of(views, SALES).items():
        assert sorted(rows) == sorted(expected[name]), name


def test_equal_rows_of_large_inputs_are_looked_for_in_many_pieces(spark: SparkSession) -> None:
    few = {
        "placed": spark.range(1).selectExpr("id as order", "'a' as customer"),
        "customer": spark.range(1).selectExpr("'a' as customer", "id as region"),
    }
    many = spark.range(1 << 21).selectExpr("id as order", "id as item", "id as amount")
    sizes = {}
    for name, line in {"few": many.limit(10), "many": many}.items():
        views = evaluate(SALES, few | {"line": line}, spark=spark)
        sizes[name] = views["line"].rdd.getNumPartitions()
    assert sizes == {"few": 2, "many": 4}


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
@given(rules=st.sampled_from(AGGREGATES), links=EDGES, others=EDGES, threshold=st.sampled_from(["-1", "100", "10mb"]))
@example(AGGREGATES[2], {(0, 1, 4), (1, 2, 4), (3, 1, 1)}, {(0, 1, 2), (5, 3, 7), (5, 4, 1)}, "-1")
def test_recursive_least_values_in_parts(
    spark: SparkSession, rules: str, links: set[Tuple], others: set[Tuple], threshold: str
) -> None:
    program = load(WEIGHTED + rules)
    with broadcasting(spark, threshold):
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
