"""How a state can be kept in parts, as text: what it is split by, and what parts ship each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from whence.lang.program import Program
from whence.plan.deal import Dealing, divide, why_together
from whence.plan.partition import NotPartitionable, Partitioning


def describe_partitioning(program: Program, wanted: Iterable[str]) -> list[str]:
    """How the state can be kept in parts, or why it cannot."""
    wanted = frozenset(wanted)
    try:
        found = divide(program, wanted)
    except NotPartitionable as reason:
        return [f"state: in one piece, because {reason}"]
    lines = [f"state: in parts by {_columns(found)}"]
    if found.whole:
        lines.append(f"  every part holds all of {', '.join(found.whole)}")
    return [*lines, *_together(found, why_together(program, wanted))] if isinstance(found, Dealing) else lines


def _together(how: Dealing, reason: str) -> Iterator[str]:
    yield f"  parts ship each other what they need ({reason}):"
    inside = []
    for out, name in how.ships.items():
        relation = how.made.relations[name]
        if relation.location is None:
            target = "every part"
        else:
            target = f"the part of its {relation.fields[relation.location].name.partition('#')[0]}"
        rules = [rule.name for rule in how.made.rules if rule.head.relation == out]
        made_for = dict.fromkeys(how.placed.helpers.get(name, rule) for rule in rules)
        yield f"    {name} to {target}, for rule {', '.join(made_for)}"
        stratum = next(each for each in how.made.strata if out in each.relations)
        if name in stratum.relations:
            inside.append(tuple(each for each in stratum.relations if "!" not in each))
    recursions = [", ".join(names) for names in dict.fromkeys(inside)]
    before = sum(1 for stratum in how.made.strata if _waits(how, stratum.relations))
    told = f"{before + 1} rounds" if before else "a round"
    if recursions:
        told += f", and in the recursion of {' and in that of '.join(recursions)} until nothing more is shipped"
    yield f"  an epoch takes {told}"


def _waits(how: Dealing, relations: Iterable[str]) -> bool:
    """Whether something comes to the stratum from one below."""
    names = set(relations)
    return any(name in names and out not in names for out, name in how.ships.items())


def _columns(how: Partitioning) -> str:
    relations = how.program.relations
    return ", ".join(f"{name}.{relations[name].fields[column].name}" for name, column in how.columns.items())
