"""What a program says in pragmas to the field that it runs on.

    .pragma "sketch" "alarms"                          the counts and sums in the rules of alarms are estimated
    .pragma "sketch" "alarms:256"                      with so many registers
    .pragma "within" "close(x, y, _, u, v, _) 2.5"     where @close(…) is not 0, (x, y) and (u, v) are at most so far apart

Elsewhere they mean nothing: the views are then exact, and every pair is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from whence.lang.program import Program
from whence.lang.tree import FunctorDecl, Pragma
from whence.plan.extract_aggregates import AggregateSpec
from whence.runtime.sketches import REGISTERS
from whence.sensors.rules import NotForSensors

SKETCHED = ("count", "sum", "min", "max")
_FEWEST = 3  # the error of fewer has no bound
_SKETCH = re.compile(r"\s*([\w.?]+)\s*(?::\s*(\d+)\s*)?")
_WITHIN = re.compile(r"\s*@?(\w+)\s*\(([^()]*)\)\s*(?:<=)?\s*(\d+(?:\.\d*)?|\.\d+)\s*")
_SPOTS = 4


@dataclass(frozen=True, slots=True)
class Within:
    """Of a function: which arguments are x and y of one thing and of another, and how far apart these are at most."""

    arguments: tuple[int, int, int, int]
    metres: float


def find_sketches(program: Program, aggregates: Mapping[str, AggregateSpec]) -> dict[str, int]:
    """By relation of groups, with how many registers it is estimated."""
    asked: dict[str, int] = {}
    for pragma in _pragmas(program, "sketch"):
        for each in (pragma.value or "").split(","):
            match = _SKETCH.fullmatch(each)
            if match is None:
                raise _wrong(program, pragma, '"total" or "total:256", a relation and how many registers')
            if match[1] not in program.relations:
                raise NotForSensors(f"{_where(program, pragma)}: there is no relation {match[1]} to sketch")
            asked[match[1]] = REGISTERS if match[2] is None else int(match[2])
            if asked[match[1]] < _FEWEST:
                raise NotForSensors(f"{_where(program, pragma)}: a sketch has {_FEWEST} registers at least")
    heads = {rule.name: rule.head.relation for rule in program.rules}
    found = {
        name: asked[head]
        for name, spec in aggregates.items()
        if (head := heads.get(spec.rule, spec.rule.rpartition("#")[0])) in asked
    }
    for name in found:
        spec = aggregates[name]
        if spec.op not in SKETCHED:
            raise NotForSensors(
                f"rule {spec.rule}: there is no sketch of {spec.op}", f"there are those of {', '.join(SKETCHED)}"
            )
    without = asked.keys() - {heads.get(spec.rule, spec.rule.rpartition("#")[0]) for spec in aggregates.values()}
    if without:
        raise NotForSensors(f"the rules of {min(without)} aggregate nothing that could be sketched")
    return found


def find_bounds(program: Program) -> dict[str, Within]:
    """By function, how far apart two things are of which it says yes."""
    found: dict[str, Within] = {}
    declared = {each.name: len(each.params) for each in program.module.statements if isinstance(each, FunctorDecl)}
    for pragma in _pragmas(program, "within"):
        match = _WITHIN.fullmatch(pragma.value or "")
        names = [] if match is None else [each.strip() for each in match[2].split(",")]
        spots = [at for at, name in enumerate(names) if name != "_"]
        if match is None or len(spots) != _SPOTS:
            raise _wrong(program, pragma, '"close(x, y, _, u, v, _) 2.5": two places among the arguments, and metres')
        if match[1] not in declared:
            raise NotForSensors(
                f"{_where(program, pragma)}: there is no function {match[1]}", "declare it with .functor"
            )
        if declared[match[1]] != len(names):
            raise NotForSensors(
                f"{_where(program, pragma)}: {match[1]} has {declared[match[1]]} arguments, not {len(names)}",
                "write _ for those that say nothing of a place",
            )
        found[match[1]] = Within((spots[0], spots[1], spots[2], spots[3]), float(match[3]))
    return found


def _pragmas(program: Program, key: str) -> Iterator[Pragma]:
    return (each for each in program.module.statements if isinstance(each, Pragma) and each.key == key)


def _wrong(program: Program, pragma: Pragma, expected: str) -> NotForSensors:
    return NotForSensors(
        f'{_where(program, pragma)}: .pragma "{pragma.key}" says nothing', f"it is followed by {expected}"
    )


def _where(program: Program, pragma: Pragma) -> str:
    place = program.source.place(pragma.span)
    return f"{place.file.name}:{place.line}:{place.column}"
