"""A placed program as nodes run it, compiled once for all of them.

Relations have *levels*. A rule sees relations of its own level as they change, and those of lower levels as they were when its
level began: a level is complete, everywhere, before what negates or aggregates it is looked at. Levels come in three parts. The
first ones need nothing from other nodes, so a node completes them alone; the last ones give nothing to other nodes, so a node
completes them alone too, at the end. Only those between are stepped through together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from whence.lang.aggregates import combine
from whence.lang.program import Program, Rule
from whence.lang.types import Tuple, Value
from whence.lang.undefined import Undefined
from whence.network.computed import Computed
from whence.network.triggers import Numbering, TooManyJoins, Trigger, make_trigger
from whence.plan import Plan, UnsuitableStrategy, compile_plan
from whence.plan.extract_aggregates import AggregateSpec
from whence.plan.localize import HERE, Placed, localize
from whence.plan.steps import DeltaPlan

LOCAL = -1  # in place of the column that names a tuple's home: it stays where it was derived
EVERYWHERE = -2


@dataclass(frozen=True)
class Mirror:
    """What a level sees of a relation of a lower level: the table that follows, of which one, and whether that may take away."""

    table: int
    source: int
    level: int
    may_take: bool


@dataclass(frozen=True)
class Level:
    """`relations` are the tables that change in it. `converges`: values that got better leave behind what needs a second look."""

    number: int
    relations: tuple[int, ...]
    mirrors: tuple[Mirror, ...]
    converges: bool


@dataclass(frozen=True)
class Grouping:
    """An aggregate: groups of the rows of one table become rows of another, for each key of a context if there is one."""

    spec: AggregateSpec
    rows: int
    context: int | None
    output: int

    def key(self, row: Tuple) -> Tuple:
        return tuple(row[column] for column in self.spec.key_columns)

    def value(self, rows: Iterable[Tuple]) -> Value:
        """The value of a group; None if it has none."""
        column = self.spec.value_column
        values = [None if column is None else row[column] for row in rows]
        try:
            return combine(self.spec.op, values, self.spec.kind)
        except Undefined:
            return None

    def result(self, key: Tuple, value: Value) -> Tuple:
        made: list[Value] = [None] * (len(key) + 1)
        for column, part in zip(self.spec.output_keys, key, strict=True):
            made[column] = part
        made[self.spec.output_value] = value
        return tuple(made)


@dataclass
class Compiled:
    """`home` is by table the column that names a tuple's node, or `LOCAL` or `EVERYWHERE`. Tables without rules are base tables.

    `coming` and `waning` are by table what follows from a row: as a positive literal, and as a negated one.
    """

    placed: Placed
    plan: Plan
    numbering: Numbering
    home: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    level_of: list[int] = field(default_factory=list)
    coming: list[list[tuple[Trigger, int]]] = field(default_factory=list)
    waning: list[list[tuple[Trigger, int]]] = field(default_factory=list)
    statics: list[tuple[Trigger, int]] = field(default_factory=list)
    groupings: list[Grouping] = field(default_factory=list)
    mirrors: list[list[int]] = field(default_factory=list)
    # What every node derives for its own copy of a relation that is everywhere has a table of its own.
    aliases: dict[int, int] = field(default_factory=dict)
    levels: list[Level] = field(default_factory=list)
    alone_before: int = 0  # how many levels nodes complete alone, at the beginning and at the end
    alone_after: int = 0

    @property
    def program(self) -> Program:
        return self.placed.program

    @property
    def together(self) -> range:
        """The levels that nodes step through together."""
        return range(self.alone_before, len(self.levels) - self.alone_after)

    @cached_property
    def tables(self) -> Mapping[str, int]:
        return {name: number for (name, level), number in self.numbering.tables.items() if level is None}

    @cached_property
    def facts(self) -> list[tuple[int, Tuple]]:
        """The facts that the program states, by table."""
        found = []
        for rule in self.plan.program.rules:
            if rule.is_fact:
                found.append((self.tables[rule.head.relation], tuple(arg.value for arg in rule.head.args)))  # type: ignore[union-attr]
        return found

    @cached_property
    def here(self) -> int | None:
        return self.tables.get(HERE)


def compile_for_nodes(program: Program, *, strategy: str) -> Compiled:
    """The program for nodes. Raises `ProgramError` if it has no places, `UnsuitableStrategy` if it cannot be maintained."""
    placed = localize(program)
    plan = compile_plan(placed.program)
    for stratum in plan.strata:
        if not stratum.native:
            names = ", ".join(name for name in stratum.relations if "!" not in name)
            raise UnsuitableStrategy(f"{strategy} cannot maintain {names} on nodes: {stratum.why_not_native}")
    levels, parts = _levels(placed, plan)
    compiled = Compiled(placed, plan, Numbering())
    _number(compiled, levels)
    try:
        _make_triggers(compiled, levels)
    except TooManyJoins as reason:
        raise UnsuitableStrategy(str(reason)) from None
    _arrange(compiled, levels)
    compiled.alone_before, compiled.alone_after = parts
    return compiled


def _number(compiled: Compiled, levels: Mapping[str, int]) -> None:
    shown = compiled.placed.program.relations
    for name in compiled.plan.program.relations:
        compiled.numbering.table(name)
        relation = shown.get(name)
        if relation is None or (relation.location is None and not relation.everywhere):
            compiled.home.append(LOCAL)
        else:
            compiled.home.append(EVERYWHERE if relation.location is None else relation.location)
        compiled.names.append(name)
        compiled.level_of.append(levels[name])
    for rule in compiled.plan.program.rules:
        head = shown.get(rule.head.relation)
        if head is not None and head.everywhere and not rule.is_fact and _is_of_replicas(rule, compiled):
            alias = compiled.numbering.table(f"{head.name}!own")
            if alias not in compiled.aliases:
                compiled.aliases[alias] = compiled.numbering.table(head.name)
                compiled.home.append(LOCAL)
                compiled.names.append(f"{head.name}!own")
                compiled.level_of.append(levels[head.name])


def _is_of_replicas(rule: Rule, compiled: Compiled) -> bool:
    return rule.name in compiled.placed.sites and compiled.placed.sites[rule.name] is None


def _make_triggers(compiled: Compiled, levels: Mapping[str, int]) -> None:
    numbering = compiled.numbering
    computed = Computed(compiled.plan.program)
    made: list[tuple[DeltaPlan, Trigger, int, int]] = []
    for stratum in compiled.plan.strata:
        for plan in (*stratum.statics, *stratum.deltas):
            head = plan.rule.head.relation
            if plan.rule.is_fact:
                continue
            level = levels[head]

            def reads(relation: str, level: int = level) -> int:
                return numbering.table(relation, None if levels[relation] == level else level)

            trigger = make_trigger(plan, computed, numbering, reads)
            target = numbering.table(head)
            if target in compiled.aliases.values() and _is_of_replicas(plan.rule, compiled):
                target = numbering.table(f"{head}!own")
            made.append((plan, trigger, -1 if plan.scan is None else reads(plan.scan.relation), target))
        for spec in stratum.aggregates:
            level = levels[spec.output]
            sources = [
                None if name is None else numbering.table(name, None if levels[name] == level else level)
                for name in (spec.rows, spec.context)
            ]
            assert sources[0] is not None
            compiled.groupings.append(Grouping(spec, sources[0], sources[1], numbering.table(spec.output)))
    compiled.coming = [[] for _ in numbering.tables]
    compiled.waning = [[] for _ in numbering.tables]
    for plan, trigger, source, head_table in made:
        if source < 0:
            compiled.statics.append((trigger, head_table))
        else:
            (compiled.waning if plan.negated else compiled.coming)[source].append((trigger, head_table))


def _arrange(compiled: Compiled, levels: Mapping[str, int]) -> None:
    numbering = compiled.numbering
    compiled.mirrors = [[] for _ in numbering.tables]
    grouped = {table for each in compiled.groupings for table in (each.rows, each.context)}
    mirrors: dict[int, list[Mirror]] = {}
    for (name, level), table in numbering.tables.items():
        if level is not None:
            source = numbering.table(name)
            compiled.mirrors[source].append(table)
            may_take = bool(compiled.waning[table]) or table in grouped
            mirrors.setdefault(level, []).append(Mirror(table, source, level, may_take))
    recursive = {levels[each.output] for each in (grouping.spec for grouping in compiled.groupings) if each.recursive}
    for number in range(max(levels.values(), default=0) + 1):
        tables = tuple(numbering.table(name) for name, level in levels.items() if level == number)
        compiled.levels.append(Level(number, tables, tuple(mirrors.get(number, ())), number in recursive))


# -- levels -----------------------------------------------------------------------------------------------------------


def _levels(placed: Placed, plan: Plan) -> tuple[dict[str, int], tuple[int, int]]:
    """The level of each relation, and how many levels nodes complete alone, before and after those they complete together."""
    edges = list(_edges(plan))
    shipped = {rule.head.relation for rule in placed.program.rules if placed.is_shipped(rule)}
    shipped |= {name for name, relation in placed.program.relations.items() if relation.everywhere}
    reads: dict[str, set[str]] = {name: set() for name in plan.program.relations}
    for head, body, _ in edges:
        reads[head].add(body)
    read_by: dict[str, set[str]] = {name: set() for name in reads}
    for head, bodies in reads.items():
        for body in bodies:
            read_by[body].add(head)
    needs_others = _reached(shipped, read_by)
    gives_to_others = _reached(shipped, reads)
    before = [name for name in reads if name not in needs_others]
    after = [name for name in reads if name in needs_others and name not in gives_to_others]
    between = [name for name in reads if name in needs_others and name in gives_to_others]
    levels: dict[str, int] = {}
    counts: list[int] = []
    for part in (before, between, after):
        own = _levels_among(part, edges, sum(counts))
        levels |= own
        counts.append(max(own.values(), default=sum(counts) - 1) + 1 - sum(counts))
    return levels, (counts[0], counts[2])


def _reached(starts: Iterable[str], edges: Mapping[str, set[str]]) -> set[str]:
    reached = set(starts)
    pending = list(reached)
    while pending:
        new = edges[pending.pop()] - reached
        reached |= new
        pending += new
    return reached


def _levels_among(names: list[str], edges: list[tuple[str, str, bool]], lowest: int) -> dict[str, int]:
    """The lowest levels at which whatever a relation reads through a step that is not monotone is below it."""
    levels = dict.fromkeys(names, lowest)
    inside = [(head, body, strict) for head, body, strict in edges if head in levels and body in levels]
    changed = True
    while changed:
        changed = False
        for head, body, strict in inside:
            if levels[head] < levels[body] + strict:
                levels[head] = levels[body] + strict
                changed = True
    return levels


def _edges(plan: Plan) -> Iterator[tuple[str, str, bool]]:
    """Which relation reads which, and whether the other has to be complete before."""
    for stratum in plan.strata:
        converging = {spec.output for spec in stratum.aggregates if spec.recursive}
        own = frozenset(stratum.relations)
        for each in (*stratum.statics, *stratum.deltas):
            if each.scan is not None:
                yield each.rule.head.relation, each.scan.relation, each.negated
        for spec in stratum.aggregates:
            for source in spec.sources:
                yield spec.output, source, not (spec.recursive and source in own)
        # Outside of the recursion, values are looked at when they are final.
        if converging:
            for other in plan.strata:
                if other is not stratum:
                    for each in other.deltas:
                        if each.scan is not None and each.scan.relation in own:
                            yield each.rule.head.relation, each.scan.relation, True
