"""Queries that are run again and again on Spark SQL: what a run has seen decides in which order the next one joins.

The first run is Spark's, as the query is written. Afterwards the plan that ran is read: how many rows each table, filter and join
gave. The optimizer takes that in, and the next run is the same query with its joins nested in the order that is cheapest by then;
small relations are marked to be broadcast. Results are those of the query as it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from whence.optimizer.best_first import Optimizer
from whence.optimizer.cost import to_log
from whence.optimizer.plans import Plan
from whence.optimizer.query import Query, bits_of, places_of
from whence.optimizer.query_space import QuerySpace
from whence.optimizer.sql import QueryError, parse_query
from whence.optimizer.statistics import Column, Statistics, Table

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

BROADCAST = 10_000_000  # bytes: as many as Spark sends to everyone by its own choice
_JOINED = "whence_joined"  # stands for the joins until they are written out


@dataclass(frozen=True)
class Seen:
    """How many rows a run read of tables and made of parts of the query, which are given as bits."""

    read: dict[int, int] = field(default_factory=dict)
    made: dict[int, int] = field(default_factory=dict)

    @property
    def joined(self) -> int:
        """The rows that joins have made."""
        return sum(rows for bits, rows in self.made.items() if bits & (bits - 1))


class RepeatedQuery:
    """A single block of SQL over tables or views of a Spark session. `text` is what the next run will ask."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        self.spark = spark
        self.written = text
        tables = {each.name.lower() for each in sqlglot.parse_one(text, dialect="spark").find_all(exp.Table)}
        columns = {name: [each.lower() for each in spark.table(name).columns] for name in tables}
        known = Statistics({name: Table(columns={each: Column() for each in columns[name]}) for name in tables})
        self.query = parse_query(text, known)
        if len({each.table for each in self.query.relations}) < len(self.query.relations):
            raise QueryError("a table occurs twice: what is seen of its columns could be of either")
        named = [(column, at) for at, each in enumerate(self.query.relations) for column in columns[each.table]]
        often = Counter(column for column, _ in named)
        self._owner = {column: at for column, at in named if often[column] == 1}
        self.space = QuerySpace(self.query, known)
        self.optimizer = Optimizer(self.space)
        self.text = text
        self.seen = Seen()

    def run(self) -> list[Row]:
        """Runs the query, takes in what was seen, and chooses the order of the next run."""
        answer = self.spark.sql(self.text)
        rows = answer.collect()
        self.seen = seen_of(answer._jdf.queryExecution().executedPlan(), self._owner)  # noqa: SLF001 - there is no other way to it
        self.optimizer.update(list(self._take_in()))
        self.text = rewritten(self.written, self.query, self.optimizer.plan(), self._small())
        return rows

    def _take_in(self) -> Iterator[Any]:
        space = self.space
        for bits, rows in self.seen.read.items():
            log = to_log(max(1, rows)) - space.table_logs[places_of(bits)[0]]
            if log:
                yield space.change_rows(bits, log, table=True)
        for bits, rows in sorted(self.seen.made.items(), key=lambda each: each[0].bit_count()):
            log = to_log(max(1, rows)) - space.log(bits)
            if log:
                yield space.change_rows(bits, log)

    def _small(self) -> list[str]:
        space = self.space
        bits = [1 << at for at in range(len(self.query.relations))]
        return [
            self.query.relations[at].name
            for at, each in enumerate(bits)
            if each in self.seen.made and space.rows(each) * space.width(each) < BROADCAST
        ]


def rewritten(text: str, query: Query, plan: Plan, small: list[str]) -> str:
    """The query with its joins nested as the plan has them.

    >>> from whence.optimizer import Optimizer, QuerySpace, Statistics
    >>> text = "SELECT a.x FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND c.z > 3"
    >>> query = parse_query(text, Statistics())
    >>> space = QuerySpace(query, Statistics())
    >>> _ = space.change_rows(0b110, to_log(1 / 1000))
    >>> print(rewritten(text, query, Optimizer(space).plan(), ["c"]).replace(" WHERE", "\\nWHERE"))
    SELECT /*+ BROADCAST(c) */ a.x FROM (a AS a JOIN (b AS b JOIN c AS c ON b.y = c.y) ON a.x = b.x)
    WHERE a.x = b.x AND b.y = c.y AND c.z > 3
    """
    select = sqlglot.parse_one(text, dialect="spark")
    select.set("joins", None)
    select.set("from_", exp.From(this=exp.to_table(_JOINED)))
    written = select.sql(dialect="spark")
    if small:
        written = written.replace("SELECT ", f"SELECT /*+ BROADCAST({', '.join(small)}) */ ", 1)
    return written.replace(_JOINED, _nested(query, plan), 1)


def _nested(query: Query, plan: Plan) -> str:
    if not plan.inputs:
        relation = query.relations[places_of(plan.node[0])[0]]
        return f"{relation.table} AS {relation.name}"
    if len(plan.inputs) == 1:
        return _nested(query, plan.inputs[0])
    left, right = sorted(plan.inputs, key=lambda each: each.node[0])
    on = " AND ".join(_equalities(query, left.node[0], right.node[0])) or "TRUE"
    return f"({_nested(query, left)} JOIN {_nested(query, right)} ON {on})"


def _equalities(query: Query, left: int, right: int) -> Iterator[str]:
    """One for each class of equal columns that has members on both sides: below they are equal to the others already."""
    for members in query.classes:
        sides = [min((each for each in members if side >> each.at & 1), default=None) for side in (left, right)]
        if None not in sides:
            yield " = ".join(f"{query.relations[each.at].name}.{each.name}" for each in sides if each is not None)


def seen_of(plan: Any, owner: dict[str, int]) -> Seen:
    """What the operators of a plan that has run have counted: for each set of relations, the topmost that says so.

    `owner` has the columns that only one relation has: by them a scan is known.
    """
    seen = Seen()
    _walk(plan, owner, seen)
    return seen


def _walk(plan: Any, owner: dict[str, int], seen: Seen) -> int | None:
    """The relations below an operator, or None if one of them is not known."""
    name = plan.nodeName()
    if name == "AdaptiveSparkPlan":
        return _walk(plan.executedPlan(), owner, seen)
    if name.endswith("QueryStage"):
        return _walk(plan.plan(), owner, seen)
    children = plan.children()
    below = [_walk(children.apply(at), owner, seen) for at in range(children.size())]
    if not below:
        output = plan.output()
        columns = [output.apply(at).name().lower() for at in range(output.size())]
        below = [bits_of({owner[each]}) if each in owner else 0 for each in columns]
    if None in below or not any(below):
        return None
    bits = reduce(or_, (each for each in below if each is not None))
    metric = plan.metrics().get("numOutputRows")
    is_scan = not children.size()
    if metric.isDefined() and (is_scan or "Join" in name or name in ("Filter", "CartesianProduct")):
        rows = metric.get().value()
        seen.made[bits] = rows
        if is_scan:
            seen.read[bits] = rows
    return bits
