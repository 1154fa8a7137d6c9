"""Local (XY) stratification: negation inside recursion, ordered by a stage argument.

Each relation of a cycle is given one numeric column as its stage. For every rule and every body atom of the cycle, the
constraints of the rule must show that the head's stage is at least the atom's. Where they can be equal the relations are
ordered inside a stage, and nothing may depend on its own negation there. Evaluating stage by stage then gives the one
stable meaning of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import NamedTuple

from whence.lang.graph import components
from whence.lang.program import (
    Aggregation,
    Apply,
    Atom,
    Comparison,
    Const,
    Literal,
    Negation,
    Relation,
    Rule,
    Subsumption,
    Term,
    Var,
)
from whence.lang.types import NUMBER, UNSIGNED

MAX_CHOICES = 2000


@dataclass(frozen=True, slots=True)
class Stages:
    columns: Mapping[str, int]
    groups: tuple[tuple[str, ...], ...]


def find_stages(
    component: tuple[str, ...],
    rules: list[Rule | Subsumption],
    relations: Mapping[str, Relation],
    *,
    is_acyclic: bool = False,
) -> Stages | None:
    """A choice of stage columns under which the component is locally stratified, or None.

    If it is to be acyclic, no tuple may depend on itself at all, be it without any negation.
    """
    if any(isinstance(rule, Subsumption) for rule in rules):
        return None
    candidates = [
        [at for at, each in enumerate(relations[name].fields) if each.kind in (NUMBER, UNSIGNED)] for name in component
    ]
    reads = [(rule.head, list(_reads(rule.body, (), is_acyclic))) for rule in rules if isinstance(rule, Rule)]
    for choice in islice(product(*candidates), MAX_CHOICES):
        columns = dict(zip(component, choice, strict=True))
        groups = _order_inside_stage(columns, reads)
        if groups is not None:
            return Stages(columns, groups)
    return None


def _order_inside_stage(
    columns: Mapping[str, int], rules: list[tuple[Atom, list[_Read]]]
) -> tuple[tuple[str, ...], ...] | None:
    same: dict[str, list[str]] = {name: [] for name in columns}
    strict: set[tuple[str, str]] = set()
    for head, reads in rules:
        stage = head.args[columns[head.relation]]
        for atom, is_strict, differences in reads:
            if atom.relation not in columns:
                continue
            lead = differences.at_least(stage, atom.args[columns[atom.relation]])
            if lead is None or lead < 0:
                return None
            if lead == 0:
                same[head.relation].append(atom.relation)
                if is_strict:
                    strict.add((head.relation, atom.relation))
    groups = components(same)
    for group in groups:
        if any((head, body) in strict for head in group for body in group):
            return None
    return tuple(groups)


class _Read(NamedTuple):
    """An atom, whether it stands in a negation or an aggregate, and what holds where it is read."""

    atom: Atom
    strict: bool
    differences: _Differences


def _reads(body: tuple[Literal, ...], around: tuple[Comparison, ...], strict: bool) -> Iterator[_Read]:
    comparisons = (*around, *(literal for literal in body if isinstance(literal, Comparison)))
    differences = _Differences(comparisons)
    for literal in body:
        match literal:
            case Atom():
                yield _Read(literal, strict, differences)
            case Negation(atom=atom):
                yield _Read(atom, True, differences)
            case Aggregation(bodies=bodies):
                # What a comparison inside an aggregate says does not hold outside: the aggregate may be over nothing.
                for inner in bodies:
                    yield from _reads(inner, comparisons, True)


class _Differences:
    """What comparisons say about differences: `lower[x][y] = k` means x - y >= k."""

    def __init__(self, comparisons: Iterable[Comparison]) -> None:
        self.lower: dict[str, dict[str, int]] = {}
        for literal in comparisons:
            left, right = linear(literal.left), linear(literal.right)
            if left is None or right is None:
                continue
            (x, a), (y, b) = left, right  # x + a op y + b
            if literal.op in (">=", "="):
                self._add(x, y, b - a)
            if literal.op in ("<=", "="):
                self._add(y, x, a - b)
            if literal.op == ">":
                self._add(x, y, b - a + 1)
            if literal.op == "<":
                self._add(y, x, a - b + 1)
        names = list(self.lower)
        for middle in names:
            for start in names:
                if middle in self.lower[start]:
                    for end, more in list(self.lower[middle].items()):
                        self._add(start, end, self.lower[start][middle] + more)

    def _add(self, x: str, y: str, difference: int) -> None:
        self.lower.setdefault(y, {})
        known = self.lower.setdefault(x, {})
        known[y] = max(difference, known.get(y, difference))

    def at_least(self, head: Term, body: Term) -> int | None:
        left, right = linear(head), linear(body)
        if left is None or right is None:
            return None
        (x, a), (y, b) = left, right
        if x == y:
            return a - b
        known = self.lower.get(x, {}).get(y)
        return None if known is None else known + a - b


def linear(term: Term) -> tuple[str, int] | None:
    """A term as variable plus constant; the variable is "" for a constant."""
    match term:
        case Var(name=name):
            return name, 0
        case Const(value=int(value)):
            return "", value
        case (
            Apply(functor="+", args=(left, Const(value=int(value))))
            | Apply(functor="+", args=(Const(value=int(value)), left))
        ):
            inner = linear(left)
            return None if inner is None else (inner[0], inner[1] + value)
        case Apply(functor="-", args=(left, Const(value=int(value)))):
            inner = linear(left)
            return None if inner is None else (inner[0], inner[1] - value)
        case _:
            return None
