"""A program evaluated in a semiring on Spark, where ⊕ is an aggregate of Spark's and ⊗ an expression: no Python in between.

A relation is its columns and one more for the annotation. What a rule derives is the product of its atoms' annotations, and
rows that are derived several times are added up by grouping. Recursion goes in rounds of joins over the rows whose annotation
improved, so it needs a semiring in which a derivation met twice adds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegralType

from whence.backends.spark.boundary import SchemaError, bring_in, columns, inner_rows, take_out
from whence.backends.spark.rules import RuleCompiler, full_plan, why_not_sql
from whence.backends.spark.session import spark_session, use_this_python
from whence.backends.spark.shapes import UNIT, Shapes, string
from whence.backends.spark.shuffled import materialized, partitions
from whence.lang.program import Atom, Literal, Program, Relation, Rule, Var
from whence.lang.tables import as_relations
from whence.lang.types import FLOAT, NUMBER, SYMBOL, Field, Kind
from whence.limits import Limits, RunawayError
from whence.plan import compile_plan
from whence.plan.delta_plans import delta_plans
from whence.plan.steps import DeltaPlan, StratumPlan
from whence.reference.annotated import base_facts, check_annotatable
from whence.semiring import (
    Access,
    Boolean,
    Counting,
    Fuzzy,
    Integer,
    Natural,
    NotInThisSemiring,
    Semiring,
    Tropical,
    Viterbi,
)

ANNOTATION = "annotation"
_SUFFIX = "!annotated"


@dataclass(frozen=True)
class Native:
    """A semiring in SQL: how a group and two values are added up, how two are multiplied, what is valid.

    `kind` is that of an input column; `inside` and `outside` convert to and from the values that are computed with.
    """

    total: str
    plus: str
    times: str
    zero: str
    one: str
    kind: Kind
    valid: str
    inside: str = "{}"
    outside: str = "{}"


def native(semiring: Semiring[Any]) -> Native:
    """Raises NotInThisSemiring for those that Spark has no operations for."""
    match semiring:
        case Boolean():
            either = "case {0} when 0 then false when 1 then true end"
            return Native(
                "bool_or({})", "({} or {})", "({} and {})", "false", "true", NUMBER, "({}) is not null", either
            )
        case Natural() | Counting() | Integer():
            total, product = _no_overflow("sum({})"), _no_overflow("{} * {}")
            exact = "cast({} as decimal(38, 0))"
            valid = "true" if isinstance(semiring, Integer) else "{} >= 0"
            return Native(total, "{} + {}", product, "0", exact.format(1), NUMBER, valid, exact)
        case Fuzzy():
            return Native("max({})", "greatest({}, {})", "least({}, {})", "0d", "1d", FLOAT, "{} between 0 and 1")
        case Viterbi():
            return Native("max({})", "greatest({}, {})", "({} * {})", "0d", "1d", FLOAT, "{} between 0 and 1")
        case Tropical():
            return Native("min({})", "least({}, {})", "({} + {})", "double('inf')", "0d", FLOAT, "{} >= 0")
        case Access(levels=levels):
            names = f"array({', '.join(string(each) for each in levels)})"
            rank, back = f"nullif(int(array_position({names}, {{}})), 0)", f"element_at({names}, {{}})"
            last = str(len(levels))
            return Native(
                "min({})", "least({}, {})", "greatest({}, {})", last, "1", SYMBOL, "{} is not null", rank, back
            )
        case _:
            raise semiring.refusal(
                "has no operations on Spark; boolean, natural, counting, integer, tropical, viterbi, fuzzy and access have"
            )


def _no_overflow(count: str) -> str:
    return f"coalesce({count}, raise_error('a count has more than 38 digits'))"


def evaluate_annotated(
    program: Program,
    inputs: Mapping[str, DataFrame],
    semiring: Semiring[Any],
    annotate: Mapping[str, str] | None = None,
    *,
    ones: Collection[str] = (),
    spark: SparkSession | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> dict[str, DataFrame]:
    """Every relation as a DataFrame whose last column, `annotation`, is that of its rows.

    `annotate` names the columns of inputs that hold annotations; other inputs count as one. The rows of the relations in `ones`
    count as one too, however they are derived.
    Raises NotInThisSemiring for what has no value, SchemaError for a DataFrame that does not fit.
    """
    check_annotatable(program, semiring)
    session = spark or next((frame.sparkSession for frame in inputs.values()), None) or spark_session()
    use_this_python(session)
    for name in inputs:
        if name not in program.base_relations:
            raise SchemaError(f"{name} is not an input; the inputs are {', '.join(program.base_relations)}")
    for name, relation in program.relations.items():
        if any(each.name.lower() == ANNOTATION for each in relation.fields):
            raise SchemaError(f"{name} has a column {ANNOTATION} of its own: call it something else")
    return _Run(session, as_relations(program), semiring, ones, limits).evaluate(inputs, annotate or {})


class _Run:
    def __init__(
        self, spark: SparkSession, program: Program, semiring: Semiring[Any], ones: Collection[str], limits: Limits
    ) -> None:
        self.spark = spark
        self.source = program
        self.semiring = semiring
        self.native = native(semiring)
        self.ones = ones
        self.limits = limits
        derived = replace(program, rules=tuple(rule for rule in program.rules if not rule.is_fact))
        self.plan = compile_plan(derived)
        self.shapes = Shapes(program.types)
        self.found: dict[str, DataFrame] = {}
        relations = dict(self.plan.program.relations)
        for name, relation in self.plan.program.relations.items():
            relations[name + _SUFFIX] = self._extended(relation)
        self.rules = [self._annotated(rule, relations) for rule in self.plan.program.rules]
        atoms = (each for rule in derived.rules for each in rule.body if isinstance(each, Atom))
        self.readers = Counter(atom.relation for atom in atoms)
        self.program = replace(self.plan.program, relations=relations, rules=tuple(self.rules))
        self.compiler = RuleCompiler(spark, self.program, self.shapes, self._frame)

    def _extended(self, relation: Relation) -> Relation:
        return replace(relation, fields=(*relation.fields, Field(ANNOTATION, str(self.native.kind), self.native.kind)))

    def _annotated(self, rule: Rule, relations: dict[str, Relation]) -> Rule:
        """The rule over annotated relations, whose head also has the annotations of its atoms."""
        body: list[Literal] = []
        factors: list[Var] = []
        for at, literal in enumerate(rule.body):
            if isinstance(literal, Atom):
                factors.append(Var(f"annotation {at}", self.native.kind))
                body.append(Atom(literal.relation + _SUFFIX, (*literal.args, factors[-1]), literal.span))
            else:
                body.append(literal)
        head = Atom(f"{rule.name}!head", (*rule.head.args, *factors), rule.head.span)
        fields = relations[rule.head.relation].fields
        extra = tuple(Field(each.name, str(each.kind), each.kind) for each in factors)
        relations[head.relation] = Relation(head.relation, (*fields, *extra), rule.span)
        return replace(rule, head=head, body=tuple(body))

    def _frame(self, name: str) -> DataFrame:
        if name.endswith(_SUFFIX):
            return self.found[name.removesuffix(_SUFFIX)]
        return self.found[name].select(*columns(self.program.relations[name]))

    # -- strata

    def evaluate(self, inputs: Mapping[str, DataFrame], annotate: Mapping[str, str]) -> dict[str, DataFrame]:
        given = {name: self._bring_in(name, frame, annotate.get(name)) for name, frame in inputs.items()}
        facts: dict[str, list[Any]] = {}
        for name, row in base_facts(self.source, {}):
            facts.setdefault(name, []).append(row)
        for stratum in self.plan.strata:
            seeds = {}
            for name in stratum.relations:
                relation = self.plan.program.relations[name]
                stated = inner_rows(self.spark, facts.get(name, []), relation, self.shapes)
                seeds[name] = [stated.withColumn(self._column(name), F.expr(self.native.one))]
                seeds[name] += [given[name]] if name in given else []
            self._stratum(stratum, seeds)
        return {name: self._take_out(name) for name in self.source.relations}

    def _stratum(self, stratum: StratumPlan, seeds: dict[str, list[DataFrame]]) -> None:
        members = frozenset(name + _SUFFIX for name in stratum.relations)
        recursive: list[tuple[str, DeltaPlan]] = []
        for original, rule in zip(self.plan.program.rules, self.rules, strict=True):
            target = original.head.relation
            if target not in stratum.relations:
                continue
            own = [plan for plan in delta_plans(rule, members) if plan.scan is not None and plan.scan.recursive]
            reason = why_not_sql(full_plan(rule), self.program, self.shapes)
            if reason:
                raise NotInThisSemiring(f"{reason}, which Spark does not evaluate with annotations")
            if own:
                recursive += [(target, plan) for plan in own]
            else:
                seeds[target].append(self._product(target, self.compiler.derive(full_plan(rule)), _atoms(rule)))
        for name, frames in seeds.items():
            self.found[name] = self._sum(name, frames)
            # A relation's plan is a part of the plans of all that read it: along a chain of rules it would double each time.
            if self.readers[name] > 1 and not recursive:
                self.found[name], _ = materialized(self.found[name], guess_size=False)
        if recursive:
            self._rounds(stratum, recursive)

    def _rounds(self, stratum: StratumPlan, plans: list[tuple[str, DeltaPlan]]) -> None:
        if not self.semiring.properties.idempotent:
            names = ", ".join(stratum.relations)
            raise self.semiring.refusal(
                f"is not idempotent, and on Spark a recursion ({names}) meets derivations twice; the local engine meets each once"
            )
        with partitions(self.spark) as set_partitions:
            changed: dict[str, DataFrame] = {}
            rows = 0
            for name in stratum.relations:
                changed[name], count = materialized(self.found[name], guess_size=False)
                self.found[name] = changed[name]
                rows += count
            rounds = 0
            while rows:
                rounds += 1
                if self.limits.max_rounds is not None and rounds > self.limits.max_rounds:
                    raise RunawayError(
                        f"stopped after {self.limits.max_rounds} rounds: {', '.join(changed)} keeps changing"
                    )
                set_partitions(rows)
                changed, rows = self._round(plans, changed)

    def _round(
        self, plans: list[tuple[str, DeltaPlan]], changed: Mapping[str, DataFrame]
    ) -> tuple[dict[str, DataFrame], int]:
        """What follows from changed rows; those whose annotation this improves, and how many."""
        derived: dict[str, list[DataFrame]] = {}
        for target, plan in plans:
            assert plan.scan is not None
            driver = plan.scan.relation.removesuffix(_SUFFIX)
            if driver in changed:
                heads = self.compiler.derive(plan, changed[driver])
                derived.setdefault(target, []).append(self._product(target, heads, _atoms(plan.rule)))
        better, rows = {}, 0
        for name, frames in derived.items():
            frame, count = materialized(self._better(name, self._sum(name, frames)), guess_size=False)
            if count:
                better[name] = frame
                rows += count
        for name, frame in better.items():
            self.found[name], _ = materialized(self._sum(name, [self.found[name], frame]), guess_size=False)
        return better, rows

    def _better(self, name: str, derived: DataFrame) -> DataFrame:
        """The derived rows that are new, or whose annotation what is known does not already include."""
        keys, annotation = columns(self.plan.program.relations[name]), self._column(name)
        known = self.found[name].select(*(F.col(key).alias(f"known_{key}") for key in (*keys, annotation)))
        same = reduce(Column.__and__, (F.col(key).eqNullSafe(F.col(f"known_{key}")) for key in keys), F.lit(True))
        joined = derived.join(known, same, "left")
        total = self.native.plus.format(annotation, f"known_{annotation}")
        is_better = F.expr(f"known_{annotation} is null or {total} != known_{annotation}")
        return joined.filter(is_better).select(*keys, annotation)

    # -- columns

    def _column(self, name: str) -> str:
        """Where the annotation of a relation is."""
        return f"c{self.plan.program.relations[name].arity}"

    def _product(self, target: str, heads: DataFrame, factors: int) -> DataFrame:
        arity = self.plan.program.relations[target].arity
        keys = [f"c{at}" for at in range(arity)] or [f"true as {UNIT}"]
        own = [f"c{at}" for at in range(arity, arity + factors)]
        product = reduce(self.native.times.format, own) if own else self.native.one
        return heads.selectExpr(*keys, f"{product} as {self._column(target)}")

    def _sum(self, name: str, frames: list[DataFrame]) -> DataFrame:
        keys, annotation = columns(self.plan.program.relations[name]), self._column(name)
        whole = reduce(DataFrame.union, [frame.select(*keys, annotation) for frame in frames])
        if name in self.ones:
            return whole.select(*keys).distinct().withColumn(annotation, F.expr(self.native.one))
        totals = whole.groupBy(*keys).agg(F.expr(f"{self.native.total.format(annotation)} as {annotation}"))
        return totals.filter(f"{annotation} != {self.native.zero}")

    def _bring_in(self, name: str, frame: DataFrame, column: str | None) -> DataFrame:
        relation, annotation = self.source.relations[name], self._column(name)
        if column is None:
            return bring_in(frame, relation, self.shapes, "refuse").withColumn(annotation, F.expr(self.native.one))
        if column not in frame.columns:
            raise SchemaError(
                f"{name} has no column {column} to take annotations from; it has {', '.join(frame.columns)}"
            )
        kept = [each.name for each in relation.fields if each.name in frame.columns]
        given = F.col(column)
        if self.native.kind == FLOAT and isinstance(frame.schema[column].dataType, IntegralType):
            given = given.cast("double")
        rows = bring_in(frame.select(*kept, given.alias(ANNOTATION)), self._extended(relation), self.shapes, "refuse")
        value = self.native.inside.format(annotation)
        wrong = f"raise_error(concat('{name}: ', {annotation}, ' is not a value of {self.semiring.name}'))"
        checked = rows.withColumn(annotation, F.expr(f"if({self.native.valid.format(value)}, {value}, {wrong})"))
        return checked.filter(f"{annotation} != {self.native.zero}")

    def _take_out(self, name: str) -> DataFrame:
        annotation = self._column(name)
        shown = self.found[name].withColumn(annotation, F.expr(self.native.outside.format(annotation)))
        return take_out(shown, self._extended(self.source.relations[name]), self.shapes)


def _atoms(rule: Rule) -> int:
    return sum(isinstance(literal, Atom) for literal in rule.body)
