"""Queries in terms of views, with differences: a view may be used although it holds more than is wanted, and the rest taken away.

A view stands for a sum of conjunctive queries (`forms`). Wherever one of them is found inside a part of the query, the view
can stand in its place, if what else it brings is taken away: adding `C V - C V₁ - C V₂ …`, which is nothing, for some context C.
Every reformulation is reached by such steps. They are searched best first, and whatever was cheapest when time is up is taken.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from whence.lang.program import Const, Var
from whence.reasoning.costs import Cardinalities, cost_of
from whence.reasoning.forms import Sum, added, form_of, merged, negated, sum_of
from whence.reasoning.queries import Compared, Conjunctive, Simple, holds, written_out

MOST_STEPS = 1_000
_Terms = dict[Var, Simple]


@dataclass(frozen=True)
class View:
    """A relation that is there, and what it holds as a sum of conjunctive queries over base relations."""

    name: str
    parts: tuple[Conjunctive, ...]

    @property
    def sum(self) -> dict[Conjunctive, int]:
        return sum_of(self.parts)


@dataclass(frozen=True)
class Reformulation:
    """The cheapest sum that was found, and what was given. `is_complete` says that there was nothing left to try."""

    sum: Sum
    cost: float
    original: Sum
    original_cost: float
    tried: int
    is_complete: bool

    @property
    def uses_views(self) -> bool:
        return self.sum != self.original


def normal_form(parts: Sequence[Conjunctive]) -> dict[Conjunctive, int]:
    """What the parts add up to: those that meet their opposites are gone."""
    return merged(sum_of(parts))


def unfolded(each: Sum, views: Mapping[str, View]) -> dict[Conjunctive, int]:
    """The sum with every view written out."""
    fresh = count(1)
    total: dict[Conjunctive, int] = {}
    pending = [(part, number) for part, number in each.items()]
    while pending:
        part, number = pending.pop()
        at = next((at for at, (name, _) in enumerate(part.atoms) if name in views), None)
        if at is None:
            total = added(total, {form_of(part): number * part.sign})
            continue
        for one in views[part.atoms[at][0]].parts:
            whole = written_out(part, at, one, next(fresh))
            pending += [] if whole is None else [(whole, number)]
    return total


def folds(part: Conjunctive, view: View) -> Iterator[Conjunctive]:
    """The part with the view in place of some of its atoms, wherever a part of the view is found in it."""
    met = set()
    for one in view.parts:
        for terms, used in _embeddings(one, part):
            head = tuple(terms[each] if isinstance(each, Var) else each for each in one.head)
            atoms = tuple(each for at, each in enumerate(part.atoms) if at not in used)
            implied = {_put(each, terms) for each in one.comparisons}
            compared = tuple(each for each in part.comparisons if each not in implied)
            folded = replace(part, atoms=(*atoms, (view.name, head)), comparisons=compared)
            inside = {terms[each] for each in one.variables if each not in one.head}
            if _are_apart(one, terms) and inside.isdisjoint(folded.terms()):
                form = form_of(folded)
                if form not in met:
                    met.add(form)
                    yield form


def _embeddings(one: Conjunctive, part: Conjunctive) -> Iterator[tuple[_Terms, frozenset[int]]]:
    """The ways to find all atoms of `one` among those of the part, each a different one, and its comparisons."""

    def search(at: int, terms: _Terms, used: frozenset[int]) -> Iterator[tuple[_Terms, frozenset[int]]]:
        if at == len(one.atoms):
            compared = (_put(each, terms) for each in one.comparisons)
            if all(each in part.comparisons or _holds(each) for each in compared):
                yield terms, used
            return
        name, args = one.atoms[at]
        for number, (other, values) in enumerate(part.atoms):
            if other != name or number in used:
                continue
            extended = _extended(terms, args, values)
            if extended is not None:
                yield from search(at + 1, extended, used | {number})

    if one.atoms:
        yield from search(0, {}, frozenset())


def _extended(terms: _Terms, args: tuple[Simple, ...], values: tuple[Simple, ...]) -> _Terms | None:
    extended = dict(terms)
    for arg, value in zip(args, values, strict=True):
        if (extended.setdefault(arg, value) if isinstance(arg, Var) else arg) != value:
            return None
    return extended


def _put(compared: Compared, terms: _Terms) -> Compared:
    op, left, right = compared
    one, other = (terms.get(each, each) if isinstance(each, Var) else each for each in (left, right))
    return op, one, other


def _holds(compared: Compared) -> bool:
    op, left, right = compared
    if isinstance(left, Const) and isinstance(right, Const):
        return holds(op, left.value, right.value)
    return op == "<=" and left == right


def _are_apart(one: Conjunctive, terms: _Terms) -> bool:
    """Whether what the view does not show stays what it is: variables, different from all others."""
    hidden = [terms[each] for each in one.variables if each not in one.head]
    shown = {terms[each] for each in one.variables if each in one.head}
    return (
        len(set(hidden)) == len(hidden) and shown.isdisjoint(hidden) and all(isinstance(each, Var) for each in hidden)
    )


def steps(each: Sum, views: Sequence[View]) -> Iterator[dict[Conjunctive, int]]:
    """The sums that one use of a view leads to: it is added where a part of it is found, and its parts are taken away."""
    fresh = count(1)
    for part, number in each.items():
        for view in views:
            for folded in folds(part, view):
                at = next(at for at, (name, _) in enumerate(folded.atoms) if name == view.name)
                expanded = sum_of(
                    whole for one in view.parts if (whole := written_out(folded, at, one, next(fresh))) is not None
                )
                found = expanded.get(part, 0)
                # As often as makes the part disappear, if that is a whole number.
                times = number // found if found and not number % found else 1 if number * found >= 0 else -1
                change = added({folded: 1}, negated(expanded))
                yield merged(added(each, {one: times * by for one, by in change.items()}))


@dataclass(order=True)
class _Waiting:
    cost: float
    number: int
    sum: Sum = field(compare=False)


def reformulate(
    query: Sum,
    views: Sequence[View],
    known: Cardinalities,
    *,
    indexed: bool = False,
    seconds: float = 1.0,
    most_steps: int = MOST_STEPS,
    accepts: Callable[[Sum], bool] = lambda _: True,
) -> Reformulation:
    """The cheapest way found to say the query, with views or without them, among those accepted.

    The query is in normal form and over base relations; so are the views.
    """
    costs: dict[Conjunctive, float] = {}

    def cost(each: Sum) -> float:
        for part in each:
            if part not in costs:
                costs[part] = cost_of(part, known, indexed=indexed)
        return sum(costs[part] for part in each)

    started = time.monotonic()
    number = count()
    first = _Waiting(cost(query), next(number), query)
    best, waiting, seen, tried = first, [first], {frozenset(query.items())}, 0
    while waiting and tried < most_steps and time.monotonic() - started < seconds:
        current = heapq.heappop(waiting)
        tried += 1
        if current.cost < best.cost and accepts(current.sum):
            best = current
        for following in steps(current.sum, views):
            key = frozenset(following.items())
            if key not in seen:
                seen.add(key)
                heapq.heappush(waiting, _Waiting(cost(following), next(number), following))
    for each in sorted(waiting):  # what was found but not looked into counts, too
        if each.cost < best.cost and accepts(each.sum):
            best = each
            break
    return Reformulation(best.sum, best.cost, query, first.cost, tried, not waiting)
