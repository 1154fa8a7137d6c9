"""Mappings between schemas that others make superfluous.

A mapping fires on a frozen body of another one, and makes facts of its heads with values of its own for what it invents. If the
other's heads are found among these, it adds nothing that the first does not: whatever it would invent is there already, perhaps
under another name. All relations count as given, recursive or not, so what is found is so in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from whence.lang.program import Var
from whence.lang.types import Value
from whence.reasoning.answers import Mapped, mapped
from whence.reasoning.cases import Fact, Frozen, most_general
from whence.reasoning.criteria import CRITERIA, Criterion
from whence.reasoning.mappings import FREE, Binding, Bounds, Steps, TooHard, mappings
from whence.reasoning.queries import Conjunctive, Simple, constants_of

_Atoms = tuple[tuple[str, tuple[Simple, ...]], ...]


@dataclass(frozen=True)
class Dependency:
    """`body` shows the variables that the heads share with it; `exists` are those of the heads that it invents."""

    name: str
    body: Conjunctive
    heads: _Atoms
    exists: frozenset[Var]


@dataclass(frozen=True)
class SuperfluousMapping:
    name: str
    mappings: tuple[Mapped, ...]


def redundant_mappings(
    dependencies: Sequence[Dependency], semiring: str, judged: frozenset[str] = frozenset()
) -> list[SuperfluousMapping]:
    """Mappings that can be dropped, all of them together: what is later goes first.

    Whose derivations are `judged` by their names does not go, and does not stand in for others.
    """
    kept = {each.name: each for each in dependencies if each.name not in judged}
    found = []
    for each in reversed(dependencies):
        if each.name in judged or semiring not in CRITERIA:
            continue
        del kept[each.name]
        try:
            witnesses = _made_by(each, list(kept.values()), CRITERIA[semiring])
        except TooHard:
            witnesses = None
        if witnesses is None:
            kept[each.name] = each
        else:
            found.append(SuperfluousMapping(each.name, witnesses))
    return found[::-1]


def _made_by(each: Dependency, others: Sequence[Dependency], criterion: Criterion) -> tuple[Mapped, ...] | None:
    """What makes all heads of a mapping, those that share an invented value together; None if nothing does."""
    steps = Steps()
    parts = [one.body for one in (each, *others)]
    frozen = most_general(each.body, constants_of(parts))
    witnesses: list[Mapped] = []
    for heads in _together(each):
        wanted = Conjunctive(each.name, each.body.head, heads)
        there = next(_firings(wanted, frozen, others, _bounds(criterion, frozen), steps), None)
        if there is None:
            return None
        witnesses.append(mapped(there[0].name, frozen, there[1], only_case=True))
    return tuple(dict.fromkeys(witnesses))


def _bounds(criterion: Criterion, frozen: Frozen) -> Bounds:
    """What is enough for each criterion."""
    bag = frozen.bag
    match criterion:
        case Criterion.COVERING | Criterion.ONTO:
            return Bounds(at_least=bag)
        case Criterion.EXACT:
            return Bounds(at_least=bag, at_most=bag)
        case Criterion.NEVER_DEARER:
            return Bounds(at_most=bag)
    return FREE


def _firings(
    wanted: Conjunctive, frozen: Frozen, others: Sequence[Dependency], bounds: Bounds, steps: Steps
) -> Iterator[tuple[Dependency, Binding]]:
    compared = {
        (op, _value(left, frozen.values), _value(right, frozen.values)) for op, left, right in frozen.part.comparisons
    }
    for other in others:
        # Comparisons have to be asked for by both: invented values compare with nothing.
        plain = replace(other.body, head=(), comparisons=())
        for binding, _ in mappings(plain, frozen.bag, (), steps, bounds=bounds):
            if all(
                (op, _value(left, binding), _value(right, binding)) in compared
                for op, left, right in other.body.comparisons
            ):
                facts = [_fact(name, args, other, binding) for name, args in other.heads]
                if next(mappings(wanted, facts, frozen.head, steps), None) is not None:
                    yield other, binding


def _value(term: Simple, values: Mapping[Var, Value]) -> Value:
    return values[term] if isinstance(term, Var) else term.value


def _fact(name: str, args: tuple[Simple, ...], by: Dependency, binding: Binding) -> Fact:
    """What a firing makes. What it invents is told by its name and equal to nothing else."""
    values = (
        ("invented", arg.name) if isinstance(arg, Var) and arg in by.exists else _value(arg, binding) for arg in args
    )
    return name, tuple(values)


def _together(each: Dependency) -> list[_Atoms]:
    """The heads by the invented values that they share."""
    groups: list[tuple[_Atoms, set[Simple]]] = []
    for head in each.heads:
        together: _Atoms = (head,)
        invented: set[Simple] = set(head[1]) & each.exists
        apart = []
        for members, values in groups:
            if values & invented:
                together, invented = members + together, invented | values
            else:
                apart.append((members, values))
        groups = [*apart, (together, invented)]
    return [members for members, _ in groups]
