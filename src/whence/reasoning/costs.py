"""What a query costs: the rows that its joins read and make, by what is known of the relations.

A scan costs the rows of its relation, a join what its sides cost and the rows it makes, and parts of a sum add up. With
indexes, a join reads only the rows that match, which are those it makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, prod
from typing import Protocol

from whence.lang.program import Const, Var
from whence.lang.types import Tuple
from whence.reasoning.forms import Sum
from whence.reasoning.queries import Conjunctive, Simple

_MOST_ORDERED = 8  # atoms of which every order is looked at
_LESS, _DIFFERENT = 1 / 3, 0.9  # how many rows pass a comparison of which nothing is known


class Cardinalities(Protocol):
    def rows(self, relation: str) -> float: ...

    def joined(self, part: Conjunctive, atoms: Iterable[int]) -> float:
        """How many rows the join of some atoms has, with the comparisons that it decides."""
        ...


@dataclass(frozen=True)
class Observed:
    """What was seen of a relation: its rows and, for each column, how many values it has and between which numbers."""

    rows: int
    distinct: tuple[int, ...]
    ranges: tuple[tuple[float, float] | None, ...]


def observe(rows: Iterable[Tuple], arity: int) -> Observed:
    listed = list(rows)
    columns = [{row[at] for row in listed} for at in range(arity)]
    ranges = [
        (float(min(each)), float(max(each))) if each and all(isinstance(value, int | float) for value in each) else None  # type: ignore[type-var,arg-type]
        for each in columns
    ]
    return Observed(len(listed), tuple(map(len, columns)), tuple(ranges))


@dataclass(frozen=True)
class Estimates:
    """Joins by what was observed of their relations: columns count as independent, values as evenly spread."""

    observed: Mapping[str, Observed]

    def rows(self, relation: str) -> float:
        return self.observed[relation].rows

    def joined(self, part: Conjunctive, atoms: Iterable[int]) -> float:
        chosen = [part.atoms[at] for at in atoms]
        rows = prod(self.rows(name) for name, _ in chosen)
        values: dict[Var, list[tuple[int, tuple[float, float] | None]]] = {}
        for name, args in chosen:
            seen = self.observed[name]
            for at, arg in enumerate(args):
                if isinstance(arg, Const):
                    rows /= max(seen.distinct[at], 1)
                else:
                    values.setdefault(arg, []).append((seen.distinct[at], seen.ranges[at]))
        for columns in values.values():
            for number, _ in sorted(columns, key=lambda each: each[0])[1:]:
                rows /= max(number, 1)
        ranges = {each: columns[0][1] for each, columns in values.items()}
        for op, left, right in part.comparisons:
            if all(isinstance(each, Const) or each in ranges for each in (left, right)):
                rows *= _passing(op, left, right, ranges)
        return rows


def _passing(op: str, left: Simple, right: Simple, ranges: Mapping[Var, tuple[float, float] | None]) -> float:
    """The share of rows that pass a comparison."""
    if op == "!=":
        return _DIFFERENT
    variable, bound = (left, right) if isinstance(right, Const) else (right, left)
    if not isinstance(variable, Var) or not isinstance(bound, Const):
        return _LESS
    within = ranges[variable]
    if within is None or not isinstance(bound.value, int | float):
        return _LESS
    low, high = within
    below = min(max((float(bound.value) - low + (op == "<=")) / (high - low + 1), 0.0), 1.0)
    return below if variable is left else 1 - below


def cost_of(part: Conjunctive, known: Cardinalities, *, indexed: bool = False) -> float:
    """What the cheapest order of the joins costs."""
    return _cheapest_order(part, known, indexed=indexed)[0]


def join_order(part: Conjunctive, known: Cardinalities) -> list[int]:
    """The atoms in the cheapest order, with indexes."""
    return _cheapest_order(part, known, indexed=True)[1]


def _cheapest_order(part: Conjunctive, known: Cardinalities, *, indexed: bool) -> tuple[float, list[int]]:
    size = len(part.atoms)
    if not size:
        return 1.0, []
    scans = [known.rows(name) for name, _ in part.atoms]
    if size > _MOST_ORDERED:
        return _greedy_order(part, known, scans, indexed=indexed)
    best: dict[frozenset[int], tuple[float, list[int]]] = {frozenset((at,)): (scans[at], [at]) for at in range(size)}
    for _ in range(size - 1):
        longer: dict[frozenset[int], tuple[float, list[int]]] = {}
        for done, (cost, order) in best.items():
            for at in range(size):
                if at in done:
                    continue
                both = done | {at}
                total = cost + (0 if indexed else scans[at]) + known.joined(part, sorted(both))
                if total < longer.get(both, (inf, []))[0]:
                    longer[both] = total, [*order, at]
        best = longer
    return best[frozenset(range(size))]


def _greedy_order(
    part: Conjunctive, known: Cardinalities, scans: list[float], *, indexed: bool
) -> tuple[float, list[int]]:
    first = min(range(len(scans)), key=scans.__getitem__)
    order, cost = [first], scans[first]
    while len(order) < len(scans):
        rows, following = min(
            (known.joined(part, sorted([*order, at])), at) for at in range(len(scans)) if at not in order
        )
        cost += rows + (0 if indexed else scans[following])
        order.append(following)
    return cost, order


def cost_of_sum(each: Sum, known: Cardinalities, *, indexed: bool = False) -> float:
    return sum(cost_of(part, known, indexed=indexed) for part in each)
