"""What every node of a field runs, as text, with how long it takes and how much room it needs."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from whence.lang.program import Apply, Atom, Cons, Const, Make, Program, Var
from whence.lang.tree import walk
from whence.lang.types import FLOAT, NUMBER, UNSIGNED
from whence.plan.extract_aggregates import AggregateSpec
from whence.runtime.sketches import standard_error
from whence.sensors.messages import STAMP_BYTES, value_bytes
from whence.sensors.rules import Body
from whence.sensors.summaries import ESTIMATED
from whence.sensors.timing import Timing
from whence.sensors.translate import Home, RulePlan, SensorProgram, Site, delivery_of

MOTE_RAM, MOTE_FLASH = 4096, 131072  # the least that a mote has
_SYMBOL_BYTES = 8  # of a text, about


def describe_sensors(program: SensorProgram, timing: Timing) -> list[str]:
    field = program.field
    shape = "" if field.shape is None else f" in {field.shape[0]} rows of {field.shape[1]}"
    lines = [
        f"sensors: every one of {len(field.places)} nodes{shape} runs this; no two are more than {field.longest} hops apart"
    ]
    for name in program.program.relations:
        lines.append(f"  {name} lives at {_home(program.program, name, program.homes[name])}")
    locations = {name: relation.location for name, relation in program.program.relations.items()}
    for plan in program.plans:
        lines += _rule(program, plan, locations)
    for spec in program.aggregates.values():
        lines.append(f"  {spec.output}: {spec.op} of {spec.rows}, {_added_up(program, spec)} to {program.server}")
    for name, (column, _, _) in program.stages.items():
        field_name = program.program.relations[name].fields[column].name
        lines.append(f"  {name} waits for its turn: stage {field_name} is decided when all lower ones are")
    for name in dict.fromkeys(program.growing.values()):
        lines.append(f"  {name} can only grow: updates that take something from it are refused")
    return [*lines, *_times(program, timing), *_room(program)]


def _added_up(program: SensorProgram, spec: AggregateSpec) -> str:
    registers = program.sketches.get(spec.output)
    if registers is None:
        return "added up along a tree"
    if spec.op not in ESTIMATED:
        return "over all ways"
    return (
        f"estimated by {registers} registers, with a standard error of {standard_error(registers):.1%}, over all ways"
    )


def _home(program: Program, name: str, home: Home) -> str:
    columns = ", ".join(program.relations[name].fields[at].name for at in home.columns)
    match home.how:
        case "named":
            return f"the node {columns}"
        case "nearest":
            return f"the node nearest to ({columns})"
        case "hashed":
            return f"a node by hash of {columns or 'nothing'}"
        case _:
            return "the server"


def _rule(program: SensorProgram, plan: RulePlan, locations: dict[str, int | None]) -> Iterator[str]:
    yield f"  rule {plan.rule.name}: {_where(program, plan)}"
    for at, atom in enumerate(plan.body.reads):
        name = atom.relation if at < len(plan.body.atoms) else f"!{atom.relation}"
        if plan.site is not None:
            delivery = delivery_of(atom, plan.site, locations)
            if delivery is None:
                yield f"    {name}, which is there"
            elif delivery.how == "neighbours":
                yield f"    {name}, told to all neighbours"
            else:
                yield f"    {name}, told to that node"
        else:
            storage, join = plan.regions[at]
            reach = plan.reaches[at]
            near = "" if reach == inf else f", {reach:g} m far"
            yield f"    {name}, stored in {storage}, looks for partners in {join}{near}"
    if plan.site is None:
        walks = plan.walks - bool(plan.body.negated)
        check = ", then once more past what is negated" if plan.body.negated else ""
        yield f"    {'one walk' if walks == 1 else f'up to {walks} walks, one atom on each'}{check}"
    yield f"    -> {plan.rule.head.relation}, told to its home"


def _where(program: SensorProgram, plan: RulePlan) -> str:
    match plan.site:
        case None:
            return str(plan.scheme)
        case Site(how="self"):
            return "where its tuple is"
        case Site(how="named", names=(name, *_)):
            return f"{plan.scheme}, at the node {_shown(name)}"
        case Site(how="named", node=node):
            return f"{plan.scheme}, at the node {node}"
        case Site(how="nearest", names=names):
            return f"{plan.scheme}, at the node nearest to ({', '.join(map(_shown, names))})"
        case Site(how="hashed", names=names):
            return f"{plan.scheme}, at a node by hash of {', '.join(map(_shown, names))}"
        case _:
            return f"{plan.scheme}, at the server {program.server}"


def _shown(name: str) -> str:
    return name.partition("#")[0]


def _times(program: SensorProgram, timing: Timing) -> Iterator[str]:
    hops = {
        name: round(seconds / timing.hop)
        for name, seconds in (("storing", timing.storing), ("joining", timing.joining))
    }
    yield f"  times in hops: storing {hops['storing']}, joining {hops['joining']}, telling a home {program.field.longest}"
    base = set(program.program.base_relations)
    for name in program.program.relations:
        if name in timing.staged:
            begins, layer = timing.staged[name]
            turns = program.stages[name][2] * layer
            yield f"    {name}: stage k is final {begins:.3f} s + {turns:.3f} s * (k + 1) after an update"
        elif name not in base:
            after = timing.latencies.get(name, inf)
            yield f"    {name}: {'final once the field is at rest' if after == inf else f'final {after:.3f} s after an update'}"


def _room(program: SensorProgram) -> Iterator[str]:
    conditions = sum(condition_bytes(plan.body) for plan in program.plans)
    largest = max((replica_bytes(program.program, name) for name in program.program.relations), default=0)
    yield (
        f"  room: {conditions} bytes of conditions ({conditions / MOTE_FLASH:.1%} of {MOTE_FLASH // 1024} KB of flash); "
        f"a stored tuple takes up to {largest} bytes, so that {MOTE_RAM // 1024} KB hold {MOTE_RAM // max(largest, 1)}"
    )


def condition_bytes(body: Body) -> int:
    """The bytes of a rule in flash: one for each relation, functor, comparison and variable, and what constants take."""
    total = 4
    for part in walk((body.rule.head, body.atoms, body.negated, body.tests)):
        match part:
            case Const(value=value):
                total += 1 + value_bytes(value)
            case Atom() | Var() | Apply() | Make() | Cons():
                total += 1
    return total + 2 * len(body.tests)


def replica_bytes(program: Program, name: str) -> int:
    """The bytes of a stored tuple: its columns, texts taken to be short, and two stamps."""
    columns = 0
    for each in program.relations[name].fields:
        columns += 8 if each.kind == FLOAT else 4 if each.kind in (NUMBER, UNSIGNED) else _SYMBOL_BYTES
    return columns + 2 * STAMP_BYTES
