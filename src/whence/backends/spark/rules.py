"""Rules as DataFrames: a delta plan's steps become filters, joins and columns, and Catalyst does the rest.

A slot of the plan is the column s0, s1, …; a row is one assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from whence.backends.spark.functors import (
    Registered,
    comparison_sql,
    equality,
    function_udf,
    functor_sql,
    functor_udf,
    match_udf,
)
from whence.backends.spark.shapes import BRANCH, UNIT, Shapes, name, string
from whence.lang.program import Program, Rule
from whence.lang.types import AdtKind, DecimalKind, Kind, ListKind, Nullable, RecordKind
from whence.plan.delta_plans import delta_plans
from whence.plan.steps import (
    Build,
    Check,
    Compare,
    Compute,
    DeltaPlan,
    Generate,
    Join,
    Operand,
    Scan,
    Slot,
    Step,
    TakeApart,
)

_START = "start"
# Bytes of input whose rows one task compares. Spark keeps them in some ten times the memory, and sorts them on disk where a task
# has no more of it, which takes several times as long.
_PIECE = 1 << 23
_MOST_PIECES = 1000  # each task before the shuffle writes something for each of them


@dataclass(frozen=True)
class Held:
    """The rows of a relation, derived from input of a `size` in bytes.

    `is_set` if none is there twice, `rarely_twice` if few are likely to be.
    """

    frame: DataFrame
    is_set: bool
    rarely_twice: bool = False
    size: int = 0

    def distinct(self) -> Held:
        if self.is_set:
            return self
        # Spark looks for equal rows before it shuffles them, too, unless they are shuffled already: that pays only where it
        # finds many.
        return Held((self._shuffled() if self.rarely_twice else self.frame).distinct(), True)

    def _shuffled(self) -> DataFrame:
        """Equal rows in one partition, of which there are as many as Spark makes by itself, or more."""
        usual = int(str(self.frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
        pieces = min(-(-self.size // _PIECE), _MOST_PIECES)
        columns = self.frame.columns
        return self.frame.repartition(pieces, *columns) if pieces > usual else self.frame.repartition(*columns)


def full_plan(rule: Rule) -> DeltaPlan:
    """The plan that finds all a rule derives: from its first atom, or from nothing if it has none."""
    return next(plan for plan in delta_plans(rule, frozenset()) if not plan.negated)


def relations_read(plan: DeltaPlan) -> set[str]:
    """The relations whose rows a plan puts together."""
    joined = {step.relation for step in plan.steps if isinstance(step, Join)}
    return joined if plan.scan is None else joined | {plan.scan.relation}


def why_not_sql(plan: DeltaPlan, program: Program, shapes: Shapes) -> str:
    """Why a rule cannot be a DataFrame; empty if it can."""
    for step in plan.steps:
        match step:
            case Generate():
                return f"rule {plan.rule.name} has a range"
            case Build(kind=kind) | TakeApart(kind=kind) if shapes.is_text(kind):
                return f"rule {plan.rule.name} looks into values of {kind}, for which Spark has no type"
            case Compute(functor=functor, arg_kinds=arg_kinds, kind=(RecordKind() | Nullable()) as kind):
                is_registered = functor in program.functions
                if is_registered or functor_sql(functor, [""] * len(arg_kinds), arg_kinds, kind) is None:
                    return f"rule {plan.rule.name} computes a {kind} with {functor}, which may be nil"
    return ""


def copied(plan: DeltaPlan, program: Program) -> str | None:
    """The relation whose rows a rule derives as they are, if it does only that."""
    scan = plan.scan
    if scan is None or plan.steps or scan.equals or scan.same:
        return None
    own, of = (program.relations[each].fields for each in (plan.rule.head.relation, scan.relation))
    if [each.kind for each in own] != [each.kind for each in of]:
        return None
    columns: dict[Operand, int] = {Slot(slot): column for column, slot in scan.binds}
    return scan.relation if [columns.get(each) for each in plan.head] == list(range(len(of))) else None


def injective(plan: DeltaPlan, arities: Callable[[str], int]) -> bool:
    """Whether distinct rows of what the rule reads derive distinct heads, so that nothing is derived twice."""
    return all(_kept(plan, arities))


def keeps_rows(plan: DeltaPlan, arities: Callable[[str], int]) -> bool:
    """Whether a head tells which row of some relation it comes from, so that few heads are derived many times."""
    return any(_kept(plan, arities))


def _kept(plan: DeltaPlan, arities: Callable[[str], int]) -> Iterator[bool]:
    """For each relation whose rows a plan puts together, whether the head has all of them."""
    head = {operand.number for operand in plan.head if isinstance(operand, Slot)}
    if plan.scan is None:
        return
    scan = plan.scan
    looked_at = len(scan.binds) + len(scan.equals) + len(scan.same)
    yield looked_at == arities(scan.relation) and head.issuperset(slot for _, slot in scan.binds)
    for step in plan.steps:
        if isinstance(step, Join) and step.binds:
            looked_at = len(step.key) + len(step.binds) + len(step.same)
            yield looked_at == arities(step.relation) and head.issuperset(slot for _, slot in step.binds)


class RuleCompiler:
    """Makes DataFrames of plans. `relation` gives the rows of what they read."""

    def __init__(
        self, spark: SparkSession, program: Program, shapes: Shapes, relation: Callable[[str], DataFrame]
    ) -> None:
        self.spark = spark
        self.program = program
        self.shapes = shapes
        self.relation = relation

    def derive(self, plan: DeltaPlan, changed: DataFrame | None = None) -> DataFrame:
        """The heads that a plan finds, possibly several times: from changed rows, or from all."""
        if plan.scan is None:
            frame = self.spark.range(1).selectExpr(f"true as {_START}")
        else:
            frame = self._scan(plan.scan, self.relation(plan.scan.relation) if changed is None else changed)
        for at, step in enumerate(plan.steps):
            frame = self._step(step, frame, at, plan.rule)
        kinds = [each.kind for each in self.program.relations[plan.rule.head.relation].fields]
        head = [f"{self._sql(operand)} as c{at}" for at, (operand, _) in enumerate(zip(plan.head, kinds, strict=True))]
        return frame.selectExpr(*(head or [f"true as {UNIT}"]))

    # -- steps

    def _scan(self, scan: Scan, rows: DataFrame) -> DataFrame:
        kinds = self._kinds(scan.relation)
        for column, constant in scan.equals:
            rows = rows.filter(equality(f"c{column}", self._sql(constant), kinds[column]))
        rows = self._same(rows, scan.same, kinds)
        binds = [f"c{column} as s{slot}" for column, slot in scan.binds]
        return rows.selectExpr(*(binds or [f"true as {_START}"]))

    def _step(self, step: Step, frame: DataFrame, at: int, rule: Rule) -> DataFrame:
        match step:
            case Join():
                return self._join(step, frame, at)
            case Check():
                return self._check(step, frame, at)
            case Compare(op=op, left=left, right=right, kind=kind):
                condition = comparison_sql(op, self._sql(left), self._sql(right), kind)
                if condition is not None:
                    return frame.filter(condition)
                return frame.filter(match_udf(op, self._column(left), self._column(right), self.shapes))
            case Compute():
                return self._compute(step, frame, rule)
            case Build(target=target):
                return frame.withColumn(f"s{target}", F.expr(self._built(step)))
            case TakeApart():
                return self._take_apart(step, frame)
            case Generate():
                raise AssertionError(step)

    def _join(self, step: Join, frame: DataFrame, at: int) -> DataFrame:
        kinds = self._kinds(step.relation)
        rows = self._same(self.relation(step.relation), step.same, kinds)
        rows, condition, keys = self._keyed(rows, step.key, kinds, at)
        binds = [f"c{column} as s{slot}" for column, slot in step.binds]
        if not binds:
            return (
                self._existing(frame, rows.selectExpr(*keys), condition, "left_semi")
                if keys
                else frame.join(rows.limit(1).selectExpr(f"true as k{at}"), how="cross").drop(f"k{at}")
            )
        rows = rows.selectExpr(*keys, *binds)
        if not keys:
            return frame.crossJoin(rows)
        return frame.join(rows, F.expr(condition), "inner").drop(*(key.split(" as ")[1] for key in keys))

    def _check(self, step: Check, frame: DataFrame, at: int) -> DataFrame:
        kinds = self._kinds(step.relation)
        rows, condition, keys = self._keyed(self.relation(step.relation), list(enumerate(step.args)), kinds, at)
        how = "left_semi" if step.present else "left_anti"
        return self._existing(frame, rows.selectExpr(*(keys or [f"true as k{at}"])), condition, how)

    def _existing(self, frame: DataFrame, rows: DataFrame, condition: str, how: str) -> DataFrame:
        return frame.join(rows, F.expr(condition or "true"), how)

    def _keyed(
        self, rows: DataFrame, key: Sequence[tuple[int, Operand]], kinds: Sequence[Kind], at: int
    ) -> tuple[DataFrame, str, list[str]]:
        """The rows that have a key's constants, the condition on its slots, and the columns that it compares."""
        conditions, columns = [], []
        for number, (column, operand) in enumerate(key):
            if isinstance(operand, Slot):
                columns.append(f"c{column} as k{at}_{number}")
                conditions.append(equality(self._sql(operand), f"k{at}_{number}", kinds[column]))
            else:
                rows = rows.filter(equality(f"c{column}", self._sql(operand), kinds[column]))
        return rows, " and ".join(conditions), columns

    def _same(self, rows: DataFrame, same: Sequence[tuple[int, int]], kinds: Sequence[Kind]) -> DataFrame:
        for one, other in same:
            rows = rows.filter(equality(f"c{one}", f"c{other}", kinds[one]))
        return rows

    def _compute(self, step: Compute, frame: DataFrame, rule: Rule) -> DataFrame:
        target = f"s{step.target}"
        function = self.program.functions.get(step.functor)
        sql = None
        if function is None:
            sql = functor_sql(step.functor, [self._sql(arg) for arg in step.args], step.arg_kinds, step.kind)
        if sql is not None:
            computed = frame.withColumn(target, F.expr(sql))
            may_lack = "nullif" in sql or isinstance(step.kind, DecimalKind)
            return computed.filter(f"{target} is not null") if may_lack else computed
        columns = [self._column(arg) for arg in step.args]
        if function is None:
            value = functor_udf(step.functor, columns, step.arg_kinds, step.kind, self.shapes)
        else:
            place = self.program.source.place(rule.span)
            where = f"{place.file.name}:{place.line}: rule {rule.name}"
            registered = Registered(step.functor, function, step.kind, self.program.types, where)
            value = function_udf(registered, columns, step.arg_kinds, self.shapes)
        return frame.withColumn(target, value).filter(f"{target} is not null")

    def _built(self, step: Build) -> str:
        parts = [self._sql(part) for part in step.parts]
        match step.kind:
            case AdtKind():
                assert step.branch is not None
                return self.shapes.branch(step.kind, step.branch, parts)
            case RecordKind():
                return self.shapes.record(step.kind, parts)
            case _:
                items = f"cast(array({', '.join(parts)}) as {self.shapes.sql_type(step.kind)})"
                return items if step.rest is None else f"concat({items}, {self._sql(step.rest)})"

    def _take_apart(self, step: TakeApart, frame: DataFrame) -> DataFrame:
        source, width = self._sql(step.source), len(step.parts)
        match step.kind:
            case AdtKind(of):
                assert step.branch is not None
                fits = f"{source}.{BRANCH} = {string(step.branch)}"
                fields = self.shapes.types.adts[of][step.branch]
                parts = [f"{source}.{name(step.branch)}.{name(each.name)}" for each in fields]
            case RecordKind():
                fits = f"{source} is not null"
                parts = [f"{source}.{name(each.name)}" for each in self.shapes.fields_of(step.kind)]
            case ListKind():
                fits = f"size({source}) {'>=' if step.open_ended else '='} {width}"
                parts = [f"get({source}, {at})" for at in range(width)]
            case _:
                raise AssertionError(step.kind)
        frame = frame.filter(fits)
        taken = {f"s{slot}": F.expr(part) for slot, part in zip(step.parts, parts, strict=True)}
        if step.rest is not None:
            taken[f"s{step.rest}"] = F.expr(f"slice({source}, {width + 1}, greatest(size({source}) - {width}, 0))")
        return frame.withColumns(taken) if taken else frame

    # -- operands

    def _kinds(self, relation: str) -> list[Kind]:
        return [each.kind for each in self.program.relations[relation].fields]

    def _sql(self, operand: Operand) -> str:
        if isinstance(operand, Slot):
            return f"s{operand.number}"
        return self.shapes.literal(operand.value, operand.kind)

    def _column(self, operand: Operand) -> Column:
        column: Column = F.expr(self._sql(operand))
        return column
