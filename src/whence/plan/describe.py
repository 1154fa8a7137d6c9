"""Plans as text."""

from __future__ import annotations

from collections.abc import Iterator

from whence.lang.bags import copies_of
from whence.lang.program import Atom, Negation, Program
from whence.lang.tree import walk
from whence.lang.types import Variant
from whence.plan.compile import AGGREGATES_INSIDE, Plan
from whence.plan.decompose import describe_decomposition
from whence.plan.extract_aggregates import AggregateSpec
from whence.plan.steps import (
    Build,
    Check,
    Compare,
    Compute,
    Constant,
    DeltaPlan,
    Generate,
    Join,
    Operand,
    Scan,
    Slot,
    Step,
    StratumPlan,
    TakeApart,
)


def describe_plan(plan: Plan, evaluation: Plan) -> str:
    """Strata in order; for each rule, what is done when one of its literals changes.

    `evaluation` is the program's plan for evaluating once: it tells what of a recursion can be evaluated in parts.
    """
    lines = [*_bags(plan.program)]
    for number, stratum in enumerate(plan.strata, 1):
        lines += [*_stratum(number, stratum, plan.program, list(_in_parts(stratum, evaluation))), ""]
    return "\n".join(lines)


def _bags(program: Program) -> Iterator[str]:
    """Which tables and views are bags; nothing, if all are sets and no table has a key."""
    tables = {name: each.table for name, each in program.relations.items() if each.table is not None}
    counted = {part.relation for rule in program.rules for part in walk(rule.body) if isinstance(part, Atom)}
    for name, table in tables.items():
        if table.copies is not None:
            used = "counted by the views" if table.copies in counted else "which no view counts"
            yield f"table {name}: a bag, with the second and later copies of a row in {table.copies}, {used}"
        else:
            yield f"table {name}: a set, by {', '.join(key.text for key in table.keys)}"
    bags = [name for name in program.outputs if copies_of(program, name) is not None]
    if bags:
        sets = [name for name in program.outputs if name not in bags]
        yield f"bags: {', '.join(bags)}" + (f"; sets: {', '.join(sets)}" if sets else "")
        yield "  of a bag v, v.rows holds what tells equal rows apart, v each row once, v.copies how often where more than once"
    if bags or tables:
        yield ""


def _in_parts(stratum: StratumPlan, evaluation: Plan) -> Iterator[str]:
    for each, planned in zip(evaluation.program.strata, evaluation.strata, strict=True):
        is_same = each.recursive and not set(each.relations).isdisjoint(stratum.relations)
        if is_same and (planned.native or planned.why_not_native == AGGREGATES_INSIDE):
            yield from (f"  {line}" for line in describe_decomposition(evaluation.program, each))


def _stratum(number: int, stratum: StratumPlan, program: Program, in_parts: list[str]) -> Iterator[str]:
    names = ", ".join(stratum.relations)
    if not stratum.native:
        yield f"stratum {number}: {names}, evaluated anew when {' or '.join(stratum.inputs) or 'nothing'} changes"
        yield f"  because: {stratum.why_not_native}"
        yield from in_parts
        return
    rules = {plan.rule.name: plan.rule for plan in (*stratum.statics, *stratum.deltas)}
    if not rules and len(stratum.aggregates) == 1:
        yield f"stratum {number}: {_aggregate(stratum.aggregates[0])}"
        return
    if not rules:
        yield f"stratum {number}: {names}, from outside"
        return
    how = "recursive, by support counting with ranks" if stratum.recursive else "by counting derivations"
    yield f"stratum {number}: {names}, {how}"
    for spec in stratum.aggregates:
        yield f"  {_aggregate(spec)}"
    yield from in_parts
    for rule in rules.values():
        place = program.source.place(rule.span)
        yield f"  rule {rule.name} ({place.file.name}:{place.line})"
        for plan in (*stratum.statics, *stratum.deltas):
            if plan.rule is rule:
                yield from _delta(plan)


def _aggregate(spec: AggregateSpec) -> str:
    if spec.context is not None:
        asked = f"a group for each row of {spec.context}"
    elif spec.key_columns:
        asked = f"a group for each value of {_list_columns(spec.key_columns)}"
    else:
        asked = "one group"
    of = "" if spec.value_column is None else f"column {spec.value_column} of "
    return f"{spec.output}, the {spec.op} of {of}{spec.rows}: {asked}, aggregated again when its rows change"


def _list_columns(columns: tuple[int, ...]) -> str:
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(str(column) for column in columns)}"


def _delta(plan: DeltaPlan) -> Iterator[str]:
    if plan.scan is None:
        yield "    from the start"
    else:
        literal = plan.rule.body[plan.position]
        atom = literal.atom if isinstance(literal, Negation) else literal
        assert isinstance(atom, Atom)
        yield f"    when {'!' if plan.negated else ''}{plan.scan.relation} changes: {_scan(plan.scan)}"
    for step in plan.steps:
        yield f"      {describe_step(step)}"
    yield f"      -> {plan.rule.head.relation}({', '.join(_operand(operand) for operand in plan.head)})"


def _scan(scan: Scan) -> str:
    tests = [f"column {column} = {_operand(constant)}" for column, constant in scan.equals]
    tests += [f"column {one} = column {other}" for one, other in scan.same]
    return f"{_columns(scan.binds)}{' where ' + ' and '.join(tests) if tests else ''}"


def _columns(binds: tuple[tuple[int, int], ...]) -> str:
    return "(" + ", ".join(f"${slot} = column {column}" for column, slot in binds) + ")"


def describe_step(step: Step) -> str:
    """What a step does; $0, $1, … are the values of variables."""
    """What a step does, its variables by number."""
    match step:
        case Join(relation=relation, key=key, binds=binds):
            by = ", ".join(f"column {column} = {_operand(operand)}" for column, operand in key)
            return f"join {relation} {'by index on ' + by if by else 'with every row'} {_columns(binds)}"
        case Check(relation=relation, args=args, present=present):
            return f"{'if' if present else 'unless'} {relation}({', '.join(_operand(arg) for arg in args)})"
        case Compare(op=op, left=left, right=right):
            return f"if {_operand(left)} {op} {_operand(right)}"
        case Compute(target=target, functor=functor, args=args):
            return f"${target} = {functor}({', '.join(_operand(arg) for arg in args)})"
        case Build(target=target, parts=parts, branch=branch):
            name = "" if branch is None else f"${branch}"
            return f"${target} = {name}[{', '.join(_operand(part) for part in parts)}]"
        case Generate(target=target, args=args):
            return f"${target} = each of range({', '.join(_operand(arg) for arg in args)})"
        case TakeApart(source=source, parts=parts):
            return f"[{', '.join(f'${part}' for part in parts)}] = {_operand(source)}"


def _operand(operand: Operand) -> str:
    match operand:
        case Slot(number=number):
            return f"${number}"
        case Constant(value=str(text)):
            return f'"{text}"'
        case Constant(value=None):
            return "nil"
        case Constant(value=Variant(branch=branch)):
            return f"${branch}(…)"
        case Constant(value=value):
            return str(value)
