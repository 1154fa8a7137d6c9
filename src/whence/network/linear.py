"""Programs that strategies with provenance run, compiled once for all nodes.

They are positive programs with linear recursion, and aggregates on top: every row is there because of base tuples, and a formula
over these says which. There are no levels: whatever arrives is joined with what came before. The row of an aggregate's group is
like a base tuple of the node that holds the group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from whence.lang.program import Aggregation, Atom, Negation, Program, Rule
from whence.lang.tree import walk
from whence.lang.types import Tuple
from whence.network.compiled import EVERYWHERE, LOCAL, Compiled, Grouping, Level
from whence.network.computed import Computed
from whence.network.triggers import Numbering, TooManyJoins, Writer
from whence.plan import UnsuitableStrategy, compile_plan
from whence.plan.localize import localize
from whence.plan.steps import Check, Join

# A row that a derivation uses beside the one that has come: its table, itself, and what is known of why it is there.
Used = tuple[int, Tuple, Any]
# From the tables, their indexes and a row that has come to heads, each with what else was used, which are added to the last.
Derive = Callable[[Any, Any, Tuple, None, list[tuple[Tuple, tuple[Used, ...]]]], None]


@dataclass
class LinearProgram(Compiled):
    """`follows` are by table the joins that a row sets off, and the tables of their heads; `always` need no row."""

    follows: list[list[tuple[Derive, int]]] = field(default_factory=list)
    always: list[tuple[Derive, int]] = field(default_factory=list)

    def above(self, table: int) -> frozenset[int]:
        """The tables whose annotations may speak of base tuples of a table."""
        if table not in self._above:
            reached = {table}
            pending = [table]
            while pending:
                heads = {self.aliases.get(head, head) for _, head in self.follows[pending.pop()]} - reached
                reached |= heads
                pending += heads
            self._above[table] = frozenset(reached)
        return self._above[table]

    @cached_property
    def _above(self) -> dict[int, frozenset[int]]:
        return {}


class _UsedRows(Writer):
    """Keeps the rows that a derivation uses."""

    used = ""

    def kept(self) -> str:
        return f"({self.used})"

    def use(self, step: Join | Check, table: int, row: str, number: int) -> None:  # noqa: ARG002
        self.used += f"({table}, {row}, p{table}[{row}]), "


def compile_linear(program: Program, *, strategy: str) -> LinearProgram:
    """The program for nodes. Raises `ProgramError` if it has no places, `UnsuitableStrategy` if it is not of this class."""
    _refuse_what_is_not_linear(program, strategy)
    placed = localize(program)
    plan = compile_plan(placed.program)
    compiled = LinearProgram(placed, plan, Numbering())
    for name in plan.program.relations:
        compiled.numbering.table(name)
        shown = placed.program.relations.get(name)
        if shown is None or (shown.location is None and not shown.everywhere):
            compiled.home.append(LOCAL)
        else:
            compiled.home.append(EVERYWHERE if shown.location is None else shown.location)
        compiled.names.append(name)
    tables = compiled.numbering.tables
    compiled.follows = [[] for _ in tables]
    try:
        computed = Computed(plan.program)
        for stratum in plan.strata:
            if not stratum.native:
                raise UnsuitableStrategy(f"{strategy} cannot maintain {stratum.relations[0]}: {stratum.why_not_native}")
            _add_joins(compiled, computed, (*stratum.statics, *stratum.deltas))
            for spec in stratum.aggregates:
                context = None if spec.context is None else compiled.numbering.table(spec.context)
                rows, output = compiled.numbering.table(spec.rows), compiled.numbering.table(spec.output)
                compiled.groupings.append(Grouping(spec, rows, context, output))
    except TooManyJoins as reason:
        raise UnsuitableStrategy(str(reason)) from None
    compiled.level_of = [0] * len(compiled.home)
    compiled.coming = compiled.waning = [[] for _ in compiled.home]
    compiled.mirrors = [[] for _ in compiled.home]
    compiled.levels = [Level(0, tuple(range(len(compiled.home))), (), converges=False)]
    return compiled


def _add_joins(compiled: LinearProgram, computed: Computed, plans: Any) -> None:
    numbering = compiled.numbering
    for each in plans:
        if each.rule.is_fact:
            continue
        head = each.rule.head.relation
        target = numbering.table(head)
        if compiled.home[target] == EVERYWHERE and compiled.placed.sites.get(each.rule.name, head) is None:
            target = _own_copy(compiled, head, target)
        made = _UsedRows(each, computed, numbering, numbering.table).compile()
        if each.scan is None:
            compiled.always.append((made, target))
        else:
            compiled.follows[numbering.table(each.scan.relation)].append((made, target))


def _own_copy(compiled: LinearProgram, name: str, shown: int) -> int:
    """The table of what every node derives for its own copy of a relation that is everywhere."""
    alias = compiled.numbering.table(f"{name}!own")
    if alias not in compiled.aliases:
        compiled.aliases[alias] = shown
        compiled.home.append(LOCAL)
        compiled.names.append(f"{name}!own")
        compiled.follows.append([])
    return alias


# -- the class of programs


def _refuse_what_is_not_linear(program: Program, strategy: str) -> None:
    for rule in program.rules:
        if any(isinstance(part, Negation) for part in walk(rule.body)):
            raise UnsuitableStrategy(f"{strategy} cannot run {_named(rule)}: it has a negation. {_OTHERS}")
    for stratum in program.strata:
        if not stratum.recursive:
            continue
        if len(stratum.relations) > 1:
            names = ", ".join(stratum.relations)
            raise UnsuitableStrategy(f"{strategy} cannot run the mutual recursion of {names}. {_OTHERS}")
        (name,) = stratum.relations
        for rule in program.rules:
            if rule.head.relation != name:
                continue
            if any(isinstance(part, Aggregation) and _count(part.bodies, name) for part in rule.body):
                raise UnsuitableStrategy(
                    f"{strategy} cannot run {_named(rule)}: it aggregates what it defines. {_OTHERS}"
                )
            if _count(rule.body, name) > 1:
                raise UnsuitableStrategy(
                    f"{strategy} cannot run {_named(rule)}: its recursion is not linear. {_OTHERS}"
                )


_OTHERS = "The strategies support and dred can"


def _named(rule: Rule) -> str:
    return f"the rule {rule.name} of {rule.head.relation}"


def _count(body: object, name: str) -> int:
    return sum(isinstance(part, Atom) and part.relation == name for part in walk(body))
