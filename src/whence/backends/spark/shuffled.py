"""Recursion in rounds of DataFrame joins, for what neither fits a task nor decomposes.

Each round joins the last round's new rows with the rest, keeps what is new, and cuts the lineage there, so that plans do not
grow. It is one job for each relation of the stratum: the count that tells whether to go on also fills the checkpoint. The number
of partitions follows the size of the last round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from whence.backends.spark.boundary import columns
from whence.backends.spark.functors import equality
from whence.lang.program import Program, Relation
from whence.limits import Limits, RunawayError
from whence.plan.steps import DeltaPlan, Join

# New rows of a round for which one more partition is worth its cost.
ROWS_PER_PARTITION = 250_000
# Rounds after which the rows found so far are brought together.
COMPACT = 16
_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass
class _Found:
    """The rows of a relation: those of earlier rounds in pieces, and those of the last."""

    relation: Relation
    new: DataFrame
    rows: int
    pieces: list[DataFrame] = field(default_factory=list)
    total: int = 0

    def everything(self) -> DataFrame:
        return reduce(DataFrame.union, [*self.pieces, self.new] if self.rows else self.pieces or [self.new])


def run_in_rounds(
    spark: SparkSession,
    program: Program,
    *,
    plans: Sequence[DeltaPlan],
    seeds: Mapping[str, DataFrame],
    derive: Callable[[DeltaPlan, DataFrame], DataFrame],
    found: dict[str, DataFrame],
    limits: Limits,
) -> None:
    """Fills `found`, in which `derive` looks the relations of the stratum up, with their rows.

    `plans` start from a recursive atom each, `seeds` are what the other rules and the outside give.
    """
    state: dict[str, _Found] = {}
    cut = partial(materialized, guess_size=not _joins_itself(plans, seeds))
    with partitions(spark) as set_partitions:
        for name, frame in seeds.items():
            new, rows = cut(frame.distinct())
            state[name] = _Found(program.relations[name], new, rows, total=rows)
            found[name] = new
        rounds, started = 0, time.monotonic()
        while any(each.rows for each in state.values()):
            rounds += 1
            _check(limits, rounds, time.monotonic() - started, state)
            set_partitions(sum(each.rows for each in state.values()))
            _round(state, plans, derive, found, cut)


def _round(
    state: dict[str, _Found],
    plans: Sequence[DeltaPlan],
    derive: Callable[[DeltaPlan, DataFrame], DataFrame],
    found: dict[str, DataFrame],
    cut: Callable[[DataFrame], tuple[DataFrame, int]],
) -> None:
    derived: dict[str, list[DataFrame]] = {}
    for plan in plans:
        assert plan.scan is not None
        driver = state[plan.scan.relation]
        if driver.rows:
            derived.setdefault(plan.rule.head.relation, []).append(derive(plan, driver.new))
    fresh = {
        name: cut(_without(reduce(DataFrame.union, frames).distinct(), found[name], state[name].relation))
        for name, frames in derived.items()
    }
    for name, each in state.items():
        if each.rows:
            each.pieces.append(each.new)
        each.new, each.rows = fresh.get(name, (each.new, 0))
        each.total += each.rows
        if len(each.pieces) >= COMPACT:
            each.pieces = [cut(reduce(DataFrame.union, each.pieces).coalesce(_partition_count(each.total)))[0]]
        found[name] = each.everything()


def _without(frame: DataFrame, known: DataFrame, relation: Relation) -> DataFrame:
    own = columns(relation)
    kinds = [each.kind for each in relation.fields]
    renamed = known.selectExpr(*(f"{each} as known_{each}" for each in own))
    conditions = [equality(each, f"known_{each}", kind) for each, kind in zip(own, kinds, strict=False)]
    return frame.join(renamed, F.expr(" and ".join(conditions or ["true"])), "left_anti")


def materialized(frame: DataFrame, *, guess_size: bool) -> tuple[DataFrame, int]:
    """The rows without the plan that made them, and their number: one job.

    A checkpoint keeps Spark's guess of the size of what it cuts, and the guess for a join is a product. Where a round joins what
    the rounds before found with itself, it is squared each time, and soon has millions of digits: then there must be none.
    """
    cut = frame.localCheckpoint(eager=False)
    rows = cut.count()
    if guess_size:
        return cut, rows
    # Only now that the rows are there: until then Spark takes the plans that make them for a part of every plan that reads
    # them, with the plans that those read in turn, and what its web page keeps of a round doubles with each.
    checkpoint, spark = cut._jdf, cut.sparkSession  # noqa: SLF001 - Spark offers no other way
    made = spark._jsparkSession.internalCreateDataFrame(  # noqa: SLF001
        checkpoint.queryExecution().toRdd(), checkpoint.schema(), False
    )
    return DataFrame(made, spark), rows


def _joins_itself(plans: Sequence[DeltaPlan], members: Collection[str]) -> bool:
    return any(isinstance(step, Join) and step.relation in members for plan in plans for step in plan.steps)


def _check(limits: Limits, rounds: int, seconds: float, state: Mapping[str, _Found]) -> None:
    tuples = sum(each.total for each in state.values())
    if limits.max_rounds is not None and rounds > limits.max_rounds:
        when = f"after {limits.max_rounds} rounds"
    elif limits.max_tuples is not None and tuples > limits.max_tuples:
        when = f"at {tuples} tuples (limit {limits.max_tuples})"
    elif limits.timeout is not None and seconds > limits.timeout:
        when = f"after {limits.timeout:g} s"
    else:
        return
    raise RunawayError(f"stopped {when}: {', '.join(state)} keeps growing")


def _partition_count(rows: int) -> int:
    return max(1, -(-rows // ROWS_PER_PARTITION))


@contextmanager
def partitions(spark: SparkSession) -> Iterator[Callable[[int], None]]:
    """Sets how many partitions a shuffle makes, by the number of rows; as it was afterwards."""
    before = spark.conf.get(_PARTITIONS)
    spark.conf.set(_PARTITIONS, str(spark.sparkContext.defaultParallelism))

    def set_for(rows: int) -> None:
        spark.conf.set(_PARTITIONS, str(_partition_count(rows)))

    try:
        yield set_for
    finally:
        spark.conf.set(_PARTITIONS, str(before))
