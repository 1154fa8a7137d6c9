"""A program evaluated on Spark: strata in order, each the way that suits it, as one lazy DataFrame after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from whence.backends.spark.aggregates import aggregate
from whence.backends.spark.boundary import NULLS, SchemaError, bring_in, copies, inner_rows, take_out
from whence.backends.spark.choose import SMALL, TASK_LIMIT, Choice, ModeError, Sizes, choose
from whence.backends.spark.options import Mode
from whence.backends.spark.packing import Packing
from whence.backends.spark.rules import (
    Held,
    RuleCompiler,
    copied,
    full_plan,
    injective,
    keeps_rows,
    relations_read,
    why_not_sql,
)
from whence.backends.spark.session import spark_session, use_this_python
from whence.backends.spark.shapes import Shapes
from whence.backends.spark.ship import ship_by_value
from whence.backends.spark.shuffled import run_in_rounds
from whence.backends.spark.sizes import size_in_bytes
from whence.backends.spark.tasks import Fragment, run_in_parts, run_in_task
from whence.lang.program import Aggregation, Atom, Program, Rule, Stratum, Transfer, counter_in, lasting
from whence.lang.tables import as_relations, bag_tables
from whence.lang.tree import walk
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import compile_evaluation, compile_plan
from whence.plan.compile import AGGREGATES_INSIDE
from whence.plan.decompose import recursive_rules, seed_rules
from whence.plan.delta_plans import delta_plans
from whence.plan.extract_aggregates import AggregateSpec
from whence.plan.needed import needed_for
from whence.plan.record import Recording, record_derivations, refuse_unrecordable
from whence.plan.steps import StratumPlan
from whence.reference.solve import Solver


class Views(dict[str, DataFrame]):
    """The relations asked for, how each stratum runs, and by rule where its derivations are, if they are recorded."""

    def __init__(self, frames: Mapping[str, DataFrame], choices: tuple[Choice, ...], kept: list[DataFrame]) -> None:
        super().__init__(frames)
        self.choices = choices
        self.recordings: Mapping[str, Recording] = {}
        self._kept = kept

    def explain(self) -> str:
        return "\n".join(line for choice in self.choices for line in choice.lines())

    def unpersist(self) -> None:
        """Lets go of what is kept because several relations come from it."""
        for frame in self._kept:
            frame.unpersist()


def evaluate(
    program: Program,
    inputs: Mapping[str, DataFrame],
    *,
    spark: SparkSession | None = None,
    mode: str = Mode.AUTO,
    wanted: Iterable[str] | None = None,
    nulls: str = "refuse",
    task_limit: int = TASK_LIMIT,
    record: Iterable[str] = (),
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_plan: Callable[[Choice], None] | None = None,
) -> Views:
    """The program's outputs, or the relations `wanted`, as DataFrames.

    An input that is not given is empty. `mode` is how recursion runs; left to itself, each stratum gets the way that its
    rules allow and its size asks for. `nulls` are refused when they are read, or the rows that hold them dropped.
    The derivations of the relations in `record` are DataFrames too, one for each rule; `recordings` says which.
    Raises `SchemaError` for a DataFrame that does not fit its relation, `ModeError` for a mode that a stratum does not allow.
    """
    if nulls not in NULLS:
        raise ValueError(f"nulls={nulls!r} is not one of {', '.join(NULLS)}")
    for name in inputs:
        if name not in program.relations:
            raise SchemaError(f"there is no relation {name}; the inputs are {', '.join(program.base_relations)}")
        if name not in program.base_relations:
            raise SchemaError(f"{name} is derived by rules and has no .input: it takes no DataFrame")
    session = spark or next((frame.sparkSession for frame in inputs.values()), None) or spark_session()
    use_this_python(session)
    ship_by_value(program.functions.values())
    program = lasting(program)
    if wanted is None:
        asked = dict.fromkeys(each.relation for each in program.transfers if each.kind != "input")
    else:
        asked = dict.fromkeys(wanted)
    for name in asked:
        if name not in program.relations:
            raise ValueError(f"there is no relation {name} to be wanted")
    record = tuple(record)
    refuse_unrecordable(program, compile_plan(program), record)
    program, recordings = record_derivations(program, record)
    asked |= dict.fromkeys(each.relation for each in recordings.values())
    run = _Run(
        session,
        program,
        inputs,
        mode=_mode(mode),
        wanted=list(asked),
        nulls=nulls,
        task_limit=task_limit,
        limits=limits,
    )
    views = run.evaluate()
    views.recordings = recordings
    for choice in views.choices if on_plan is not None else ():
        assert on_plan is not None
        on_plan(choice)
    return views


def _mode(text: str) -> Mode:
    if text not in list(Mode):
        raise ModeError(f"there is no mode {text}; there are {', '.join(Mode)}")
    return Mode(text)


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        inputs: Mapping[str, DataFrame],
        *,
        mode: Mode,
        wanted: list[str],
        nulls: str,
        task_limit: int,
        limits: Limits,
    ) -> None:
        self.spark = spark
        self.source = as_relations(program)
        self.plan = compile_evaluation(self.source)
        self.program = self.plan.program
        self.shapes = Shapes(program.types)
        self.mode = mode
        self.wanted = wanted
        self.limits = limits
        self.inputs = {
            name: bring_in(frame, program.relations[name], self.shapes, nulls) for name, frame in inputs.items()
        }
        self.rules: dict[str, list[Rule]] = {name: [] for name in self.program.relations}
        for rule in self.program.rules:
            self.rules[rule.head.relation].append(rule)
        self.reads = self._reads()
        self.needed = needed_for(self.wanted, self.reads)
        self.readers = self._readers()
        for name, companion in bag_tables(program).items():
            if name in self.inputs and companion in self.needed:
                self.inputs[companion] = copies(self.inputs[name])
        self.sizes = Sizes(self._sizes(inputs), self.spark.sparkContext.defaultParallelism, task_limit)
        self.held: dict[str, Held] = {}
        self.choices: list[Choice] = []
        self.kept: list[DataFrame] = []
        self.compiler = RuleCompiler(spark, self.program, self.shapes, lambda name: self.held[name].frame)

    def evaluate(self) -> Views:
        reason = self._why_all_in_task()
        if reason:
            frames = self._all_in_task(reason)
        else:
            for stratum, plan in zip(self.program.strata, self.plan.strata, strict=True):
                if self.needed.intersection(stratum.relations):
                    self._stratum(stratum, plan)
            frames = {name: self.held[name].distinct().frame for name in self.wanted}
        shown = {name: take_out(frame, self.source.relations[name], self.shapes) for name, frame in frames.items()}
        return Views(shown, tuple(self.choices), self.kept)

    # -- what depends on what

    def _reads(self) -> dict[str, set[str]]:
        """For each relation, what its rules read; an aggregate's groups read their rows and context."""
        reads: dict[str, set[str]] = {name: set() for name in self.program.relations}
        bodies: list[tuple[str, object]] = [(rule.head.relation, rule.body) for rule in self.program.rules]
        bodies += [(each.dominated.relation, each.body) for each in self.program.subsumptions]
        for head, body in bodies:
            reads[head] |= {part.relation for part in walk(body) if isinstance(part, Atom)}
        for plan in self.plan.strata:
            for spec in plan.aggregates:
                reads[spec.output] |= set(spec.sources)
        return reads

    def _readers(self) -> dict[str, int]:
        """How many times a relation's rows are asked for by others; what a recursion reads of itself it has at hand."""
        readers = dict.fromkeys(self.program.relations, 0)
        for name in self.wanted:
            readers[name] += 1
        for stratum in self.program.strata:
            for name in self.needed.intersection(stratum.relations):
                for part in (part for rule in self.rules[name] for part in walk(rule.body)):
                    if isinstance(part, Atom) and part.relation not in stratum.relations:
                        readers[part.relation] += 1
        for spec in (spec for plan in self.plan.strata for spec in plan.aggregates if spec.output in self.needed):
            for name in spec.sources:
                readers[name] += 1
        return readers

    def _sizes(self, inputs: Mapping[str, DataFrame]) -> dict[str, int]:
        """The bytes of base data below each relation."""
        base = {name: size_in_bytes(frame) for name, frame in inputs.items() if name in self.needed}
        below: dict[str, set[str]] = {}
        for stratum in self.program.strata:
            found = set(stratum.relations)
            for name in stratum.relations:
                for read in self.reads[name]:
                    found |= below.get(read, set())
            for name in stratum.relations:
                below[name] = found
        return {name: sum(base.get(each, 0) for each in found) for name, found in below.items()}

    # -- everything in one task

    def _why_all_in_task(self) -> str:
        """Why the whole program runs in one task; empty if it does not."""
        if self.mode == Mode.IN_TASK:
            return "asked for"
        if self.mode != Mode.AUTO:
            return ""
        rules = [rule for name in self.needed for rule in self.rules[name]]
        counter = next((counter for rule in rules if (counter := counter_in(rule))), None)
        if counter is not None:
            return f"{counter}() gives out one number after the other"
        has_task = any(
            stratum.recursive or not plan.native
            for stratum, plan in zip(self.program.strata, self.plan.strata, strict=True)
            if self.needed.intersection(stratum.relations)
        )
        size = self.sizes.of(*self.wanted) if self.wanted else 0
        return "its input is small enough for one task" if has_task and size <= SMALL else ""

    def _all_in_task(self, reason: str) -> dict[str, DataFrame]:
        names = tuple(each for stratum in self.source.strata for each in stratum.relations)
        self.choices.append(
            Choice(names, Mode.IN_TASK, f"the whole program, because {reason}" if reason != "asked for" else reason)
        )
        return self._in_task(self.source, self.inputs, self.wanted)

    # -- strata

    def _stratum(self, stratum: Stratum, plan: StratumPlan) -> None:
        if plan.aggregates:
            self._aggregate(plan.aggregates[0])
        elif plan.native and not any(self.rules[name] for name in stratum.relations):
            for name in stratum.relations:
                self.held[name] = Held(self._given(name), False, rarely_twice=True, size=self.sizes.of(name))
        elif stratum.recursive:
            self._recursive(stratum, plan)
        else:
            self._plain(stratum, self._obstacle(stratum, plan))

    def _obstacle(self, stratum: Stratum, plan: StratumPlan) -> str:
        """Why a stratum's rules cannot be DataFrames; empty if they can."""
        if not plan.native:
            return plan.why_not_native
        for name in stratum.relations:
            for rule in self.rules[name]:
                for each in delta_plans(rule, frozenset(stratum.relations)):
                    if reason := why_not_sql(each, self.program, self.shapes):
                        return reason
        return ""

    def _plain(self, stratum: Stratum, obstacle: str) -> None:
        (name,) = stratum.relations
        if obstacle:
            self.choices.append(Choice(stratum.relations, Mode.IN_TASK, f"in one task, because {obstacle}"))
            self._hold_task(stratum, self._part(stratum, self.rules[name]))
            return
        if "!" not in name:
            self.choices.append(Choice(stratum.relations, None, ""))
        self.held[name] = self._derived(name, self.rules[name])

    def _derived(self, name: str, rules: list[Rule]) -> Held:
        """What rules that do not read the relation derive, with its facts and what was put in from outside."""
        facts = [rule for rule in rules if rule.is_fact]
        plans = [full_plan(rule) for rule in rules if not rule.is_fact]
        if len(plans) == 1 and not facts and name not in self.inputs:
            original = copied(plans[0], self.program)
            if original is not None:
                return self.held[original]
        frames = [self.compiler.derive(plan) for plan in plans]
        if facts:
            frames.append(self._facts(name, facts))
        if name in self.inputs or not frames:
            frames.append(self._given(name))
        if len(frames) > 1 or not plans:
            return Held(reduce(DataFrame.union, frames), False).distinct()
        (plan,) = plans
        arities = {each: self.program.relations[each].arity for each in relations_read(plan)}
        if not injective(plan, arities.__getitem__):
            rarely_twice = keeps_rows(plan, arities.__getitem__)
            return Held(frames[0], False, rarely_twice, self.sizes.of(name)).distinct()
        read = [self.held[each] for each in arities]
        return Held(
            frames[0],
            all(each.is_set for each in read),
            all(each.is_set or each.rarely_twice for each in read),
            self.sizes.of(name),
        )

    def _given(self, name: str) -> DataFrame:
        """What was put in from outside."""
        return self.inputs[name] if name in self.inputs else self._rows(name, [])

    def _facts(self, name: str, facts: list[Rule]) -> DataFrame:
        solver = Solver(self.program, {})
        return self._rows(name, [row for rule in facts for row in solver.heads(rule)])

    def _rows(self, name: str, rows: list[Tuple]) -> DataFrame:
        return inner_rows(self.spark, rows, self.program.relations[name], self.shapes)

    def _aggregate(self, spec: AggregateSpec) -> None:
        rows = self.held[spec.rows].distinct().frame
        context = None if spec.context is None else self.held[spec.context].distinct().frame
        self.held[spec.output] = Held(aggregate(spec, rows, context, self.shapes), True)
        if "!" not in spec.output:
            self.choices.append(Choice((spec.output,), None, ""))

    # -- recursion

    def _recursive(self, stratum: Stratum, plan: StratumPlan) -> None:
        obstacle = self._obstacle(stratum, plan)
        in_parts = not obstacle or (plan.why_not_native == AGGREGATES_INSIDE and self._has_frames_to_begin(stratum))
        choice = choose(self.program, stratum, obstacle, self.mode, self.sizes, in_parts=in_parts)
        self.choices.append(choice)
        every = [rule for name in stratum.relations for rule in self.rules[name]]
        if choice.mode == Mode.IN_TASK:
            self._hold_task(stratum, self._part(stratum, every))
        elif choice.decomposition is not None:
            found = choice.decomposition
            part = self._part(stratum, recursive_rules(self.program, stratum))
            if stratum.monotone:
                # With rows from outside, a relation is more than the groups of its aggregate.
                fed = (Transfer("input", name, {}, part.relations[name].span) for name in stratum.relations)
                part = replace(part, transfers=tuple(fed))
            inputs = {name: self.held[name].frame for name in (*found.split, *found.whole)} | self._seeds(stratum)
            fragment = self._fragment(part, list(inputs), list(stratum.relations))
            packed = run_in_parts(self.spark, fragment, inputs, {**found.split, **found.columns}, choice.parts)
            self._hold_packed(fragment, packed)
        else:
            self._shuffled(stratum)

    def _has_frames_to_begin(self, stratum: Stratum) -> bool:
        """Whether the rules that recursion begins with can be DataFrames."""
        rules = [rule for rule in seed_rules(self.program, stratum) if not rule.is_fact]
        return not any(
            any(isinstance(part, Aggregation) for part in walk(rule.body))
            or why_not_sql(full_plan(rule), self.program, self.shapes)
            for rule in rules
        )

    def _seeds(self, stratum: Stratum) -> dict[str, DataFrame]:
        """What the recursion begins with."""
        seeds = seed_rules(self.program, stratum)
        return {
            name: self._derived(name, [rule for rule in seeds if rule.head.relation == name]).frame
            for name in stratum.relations
        }

    def _shuffled(self, stratum: Stratum) -> None:
        members = frozenset(stratum.relations)
        plans = [
            plan
            for rule in recursive_rules(self.program, stratum)
            for plan in delta_plans(rule, members)
            if plan.scan is not None and plan.scan.relation in members
        ]
        found: dict[str, DataFrame] = {}
        compiler = RuleCompiler(
            self.spark, self.program, self.shapes, lambda name: found[name] if name in found else self.held[name].frame
        )
        run_in_rounds(
            self.spark,
            self.program,
            plans=plans,
            seeds=self._seeds(stratum),
            derive=compiler.derive,
            found=found,
            limits=self.limits,
        )
        self.held |= {name: Held(frame, True) for name, frame in found.items()}

    # -- tasks

    def _part(self, stratum: Stratum, rules: list[Rule]) -> Program:
        """The stratum as a program of its own, with some rules, over what they read."""
        members = set(stratum.relations)
        subsumptions = tuple(each for each in self.program.subsumptions if each.dominated.relation in members)
        bodies = [rule.body for rule in rules] + [each.body for each in subsumptions]
        read = {part.relation for body in bodies for part in walk(body) if isinstance(part, Atom)} - members
        return replace(
            self.program,
            relations={name: each for name, each in self.program.relations.items() if name in read | members},
            rules=tuple(rules),
            subsumptions=subsumptions,
            strata=(*(Stratum((name,)) for name in sorted(read)), stratum),
            transfers=(),
            warnings=(),
        )

    def _hold_task(self, stratum: Stratum, part: Program) -> None:
        inputs = {name: self.held[name].frame for name in part.relations if name not in stratum.relations}
        inputs |= {name: self.inputs[name] for name in stratum.relations if name in self.inputs}
        fragment = self._fragment(part, list(inputs), list(stratum.relations))
        self._hold_packed(fragment, run_in_task(self.spark, fragment, inputs))

    def _hold_packed(self, fragment: Fragment, packed: DataFrame) -> None:
        names = fragment.outgoing.relations
        if sum(self.readers[name] for name in names) > 1:
            packed = self._keep(packed)
        self.held |= {name: Held(frame, True) for name, frame in fragment.outgoing.unpack(packed).items()}

    def _in_task(self, part: Program, inputs: Mapping[str, DataFrame], wanted: list[str]) -> dict[str, DataFrame]:
        if not wanted:
            return {}
        fragment = replace(self._fragment(part, list(inputs), wanted), is_whole=True)
        packed = run_in_task(self.spark, fragment, inputs)
        return dict(fragment.outgoing.unpack(self._keep(packed) if len(wanted) > 1 else packed))

    def _fragment(self, part: Program, inputs: list[str], wanted: list[str]) -> Fragment:
        relations = part.relations
        incoming = Packing([relations[name] for name in inputs], self.shapes)
        return Fragment(part, incoming, Packing([relations[name] for name in wanted], self.shapes), self.limits)

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Computed once, though it is read several times."""
        self.kept.append(frame.persist())
        return self.kept[-1]
