"""Systems of equations over a semiring, and their least solutions.

A node is the sum of its terms, each a coefficient times some nodes. Nodes that depend on each other are solved together, the
others one after the other. What happens on a cycle is decided by the semiring:

- lineage: what one node uses, all use;
- selective and absorptive: the best value is settled first, then what follows from it (Knuth's generalization of Dijkstra);
- stable: the equations are applied until nothing changes;
- counting: every way round the cycle is another derivation, so there are infinitely many;
- power series: each coefficient is a count, with equations of its own;
- all others: there is no finite value, and the cycle is named.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cmp_to_key, reduce
from itertools import count as numbers
from itertools import product as combinations
from typing import Any, TypeVar

from whence.lang.graph import components
from whence.semiring import Polynomial, Polynomials, PowerSeries, Product, Semiring
from whence.semiring.numbers import INFINITY, Boolean, Counting
from whence.semiring.polynomials import Monomial, multiply
from whence.semiring.tokens import show_token
from whence.semiring.witnesses import Lineage, Tokens

V = TypeVar("V")
Node = TypeVar("Node", bound=Hashable)
# A coefficient, and the nodes to be multiplied with it.
Term = tuple[V, tuple[Node, ...]]
Equations = Mapping[Node, Sequence[Term[V, Node]]]


def solve(
    equations: Equations[Node, V], semiring: Semiring[V], show: Callable[[Node], str] = show_token
) -> dict[Node, V]:
    """The least solution. Raises NotInThisSemiring, showing a node, where there is none or none that is finite.

    >>> from whence.semiring import Counting, Tropical
    >>> solve({"x": [(1, ()), (2, ("x", "y"))], "y": [(3, ())]}, Tropical())
    {'x': 1, 'y': 3}
    >>> solve({"x": [(1, ()), (2, ("x", "y"))], "y": [(3, ())]}, Counting())
    {'x': inf, 'y': 3}
    """
    if isinstance(semiring, Product):
        return _solve_parts(equations, semiring, show)  # type: ignore[return-value, arg-type]
    if isinstance(semiring, PowerSeries):
        return _solve_series(equations, semiring)  # type: ignore[return-value, arg-type]
    system = _productive(equations, semiring)
    values: dict[Node, V] = {}
    for component in components({node: _uses(terms) for node, terms in system.items()}):
        (first, *others) = component
        if not others and all(first not in body for _, body in system[first]):
            values[first] = _total(system[first], values, semiring)
        else:
            _solve_cycle(component, system, values, semiring, show)
    return {node: values.get(node, semiring.zero) for node in equations}


def _productive(equations: Equations[Node, V], semiring: Semiring[V]) -> dict[Node, list[Term[V, Node]]]:
    """Only nodes that have a derivation tree at all, and only terms made of such nodes."""
    waiting: dict[Node, list[tuple[Node, int]]] = {}
    missing: dict[tuple[Node, int], int] = {}
    ready: deque[Node] = deque()
    found: set[Node] = set()

    def find(node: Node) -> None:
        if node not in found:
            found.add(node)
            ready.append(node)

    for node, terms in equations.items():
        for at, (coefficient, body) in enumerate(terms):
            if coefficient == semiring.zero:
                continue
            distinct = set(body)
            missing[node, at] = len(distinct)
            for each in distinct:
                waiting.setdefault(each, []).append((node, at))
            if not distinct:
                find(node)
    while ready:
        for node, at in waiting.get(ready.popleft(), ()):
            missing[node, at] -= 1
            if missing[node, at] == 0:
                find(node)
    return {node: [term for at, term in enumerate(equations[node]) if missing.get((node, at)) == 0] for node in found}


def _uses(terms: Iterable[Term[V, Node]]) -> Iterator[Node]:
    return (each for _, body in terms for each in body)


def _total(terms: Iterable[Term[V, Node]], values: Mapping[Node, V], semiring: Semiring[V]) -> V:
    total = semiring.zero
    for coefficient, body in terms:
        total = semiring.plus(total, reduce(semiring.times, (values[each] for each in body), coefficient))
    return total


# -- cycles


def _solve_cycle(
    component: Sequence[Node],
    system: Mapping[Node, list[Term[V, Node]]],
    values: dict[Node, V],
    semiring: Semiring[V],
    show: Callable[[Node], str],
) -> None:
    """Adds the values of nodes that depend on each other, given those below them."""
    properties = semiring.properties
    if isinstance(semiring, Lineage):
        _share(component, system, values)  # type: ignore[arg-type]
    elif properties.selective and properties.absorptive:
        _settle_best_first(component, system, values, semiring)
    elif properties.stable:
        _iterate(component, system, values, semiring)
    elif isinstance(semiring, Counting):
        values.update(dict.fromkeys(component, INFINITY))  # type: ignore[arg-type]
    else:
        raise semiring.endless(min(map(show, component)))


def _share(
    component: Sequence[Node], system: Mapping[Node, list[Term[Tokens, Node]]], values: dict[Node, Tokens]
) -> None:
    """Each of the nodes is part of the others' lineage: all have the same."""
    terms = [term for node in component for term in system[node]]
    below = {each for _, body in terms for each in body}.difference(component)
    shared = frozenset().union(*(coefficient for coefficient, _ in terms), *(values[each] for each in below))
    values.update(dict.fromkeys(component, shared))


def _iterate(
    component: Sequence[Node],
    system: Mapping[Node, list[Term[V, Node]]],
    values: dict[Node, V],
    semiring: Semiring[V],
) -> None:
    values.update(dict.fromkeys(component, semiring.zero))
    users: dict[Node, set[Node]] = {node: set() for node in component}
    for node in component:
        for used in _uses(system[node]):
            if used in users:
                users[used].add(node)
    queue = deque(component)
    queued = set(component)
    while queue:
        node = queue.popleft()
        queued.remove(node)
        value = _total(system[node], values, semiring)
        if value != values[node]:
            values[node] = value
            fresh = users[node] - queued
            queued |= fresh
            queue.extend(fresh)


def _settle_best_first(
    component: Sequence[Node],
    system: Mapping[Node, list[Term[V, Node]]],
    values: dict[Node, V],
    semiring: Semiring[V],
) -> None:
    """A product is never better than its factors: the best value that is known can only be final."""
    members = set(component)

    def compare(one: V, other: V) -> int:
        return 0 if one == other else -1 if semiring.leq(other, one) else 1

    order = cmp_to_key(compare)
    heap: list[tuple[Any, int, Node]] = []
    number = numbers()  # so that ties are never broken by comparing nodes
    waiting: dict[Node, list[tuple[Node, int]]] = {node: [] for node in component}
    missing: dict[tuple[Node, int], int] = {}

    def offer(node: Node, term: Term[V, Node]) -> None:
        heapq.heappush(heap, (order(_total([term], values, semiring)), next(number), node))

    for node in component:
        for at, term in enumerate(system[node]):
            inside = members.intersection(term[1])
            missing[node, at] = len(inside)
            for each in inside:
                waiting[each].append((node, at))
            if not inside:
                offer(node, term)
    while heap:
        value, _, node = heapq.heappop(heap)
        if node in values:
            continue
        values[node] = value.obj
        for user, at in waiting[node]:
            missing[user, at] -= 1
            if missing[user, at] == 0 and user not in values:
                offer(user, system[user][at])


# -- made of parts


def _solve_parts(
    equations: Equations[Node, tuple[Any, ...]], semiring: Product, show: Callable[[Node], str]
) -> dict[Node, tuple[Any, ...]]:
    """Each part by itself: they need not be solved in the same way."""
    solved: list[dict[Node, Any]] = []
    for at, part in enumerate(semiring.parts):
        terms = {node: [(each[at], body) for each, body in of] for node, of in equations.items()}
        solved.append(solve(terms, part, show))
    return {node: tuple(values[node] for values in solved) for node in equations}


def _solve_series(
    equations: Equations[Node, Polynomial[int | float]], semiring: PowerSeries
) -> dict[Node, Polynomial[int | float]]:
    """One equation for each monomial of each node: its coefficient counts the ways to put it together."""
    occurring = Polynomials("monomials", Boolean(), keeps=semiring.keeps)
    which = solve(
        {
            node: [(occurring.of({bag: True for bag, _ in each.terms}), body) for each, body in terms]
            for node, terms in equations.items()
        },
        occurring,
    )
    monomials = {node: [bag for bag, _ in value.terms] for node, value in which.items()}
    counts: dict[tuple[Node, Monomial], list[Term[int | float, tuple[Node, Monomial]]]] = {
        (node, bag): [] for node, bags in monomials.items() for bag in bags
    }
    for node, terms in equations.items():
        for polynomial, body in terms:
            for own, count in polynomial.terms:
                for parts in combinations(*(monomials[each] for each in body)):
                    bag = reduce(multiply, parts, own)
                    if (node, bag) in counts:
                        counts[node, bag].append((count, tuple(zip(body, parts, strict=True))))
    found = solve(counts, Counting())
    return {node: semiring.of({bag: found[node, bag] for bag in bags}) for node, bags in monomials.items()}
