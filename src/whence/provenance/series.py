"""Derivations beyond number: which facts have polynomials, which have infinite series, and single coefficients of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from whence.lang.graph import components
from whence.semiring import NATURAL_POLYNOMIALS, Polynomial, PowerSeries
from whence.semiring.equations import Equations, Node, Term, solve
from whence.semiring.numbers import INFINITY, Tropical
from whence.semiring.polynomials import Monomial, degree


class Shape(StrEnum):
    """What the sum over all derivations of a fact looks like."""

    POLYNOMIAL = "a polynomial"
    INFINITE_COEFFICIENTS = "finitely many monomials, some with coefficient ∞"
    INFINITE_MONOMIALS = "infinitely many monomials, each with a finite coefficient"
    BOTH = "infinitely many monomials, some with coefficient ∞"


def coefficient(equations: Equations[Node, Polynomial[int]], node: Node, monomial: Monomial) -> int | float:
    """In how many ways the node follows from exactly these base facts, used exactly so often; ∞ if there is no end to them.

    >>> from whence.semiring.polynomials import monomial
    >>> x, e = NATURAL_POLYNOMIALS.variable("e"), NATURAL_POLYNOMIALS.one
    >>> coefficient({"closure": [(x, ()), (e, ("closure", "closure"))]}, "closure", monomial("e", "e", "e", "e"))
    5
    """
    semiring = PowerSeries.within(monomial)
    return solve(_counted(equations, semiring), semiring)[node].coefficient(monomial, 0)


def series(equations: Equations[Node, Polynomial[int]], max_degree: int) -> dict[Node, Polynomial[int | float]]:
    """The series of every node, exact up to a degree."""
    semiring = PowerSeries.up_to(max_degree)
    return solve(_counted(equations, semiring), semiring)


def polynomials(equations: Equations[Node, Polynomial[int]]) -> dict[Node, Polynomial[int] | None]:
    """The polynomial of every node that has one; None for those that have an infinite series."""
    finite = {node for node, shape in shapes(equations).items() if shape is Shape.POLYNOMIAL}
    # What a node without an end is part of has none either, so the finite nodes are closed under use.
    system = {node: [term for term in equations[node] if finite.issuperset(term[1])] for node in finite}
    solved = solve(system, NATURAL_POLYNOMIALS)
    return {node: solved.get(node) for node in equations}


def shapes(equations: Equations[Node, Polynomial[int]]) -> dict[Node, Shape]:
    """What the series of each node looks like.

    Going round a cycle multiplies by what is used beside it. If that can be 1, the same monomial comes back for ever and its
    coefficient is ∞; if it can be more, there is no end of monomials. A node inherits this from all it depends on.
    """
    least = solve(
        {node: [(_least(each), body) for each, body in terms] for node, terms in equations.items()}, Tropical()
    )
    # Terms of nodes that have no derivation at all derive nothing.
    system = {
        node: [term for term in terms if term[0].terms and all(least[each] < INFINITY for each in term[1])]
        for node, terms in equations.items()
    }
    growing = _growing(system)
    result: dict[Node, Shape] = {}
    infinite: set[Node] = set()
    endless: set[Node] = set()
    for component in components({node: _uses(terms) for node, terms in system.items()}):
        members = set(component)
        inside = [term for node in component for term in system[node] if members.intersection(term[1])]
        below = {each for node in component for each in _uses(system[node])}
        if below & infinite or _has_free_cycle(members, system, least):
            infinite |= members
        if below & endless or any(_grows(term, members, growing) for term in inside):
            endless |= members
        shape = _SHAPES[not members.isdisjoint(infinite), not members.isdisjoint(endless)]
        result.update(dict.fromkeys(component, shape))
    return result


_SHAPES = {
    (False, False): Shape.POLYNOMIAL,
    (True, False): Shape.INFINITE_COEFFICIENTS,
    (False, True): Shape.INFINITE_MONOMIALS,
    (True, True): Shape.BOTH,
}
System = dict[Node, list[Term[Polynomial[int], Node]]]


def _uses(terms: Iterable[Term[Polynomial[int], Node]]) -> Iterator[Node]:
    return (each for _, body in terms for each in body)


def _least(polynomial: Polynomial[int]) -> float:
    """The lowest degree of its monomials."""
    return min((degree(bag) for bag, _ in polynomial.terms), default=INFINITY)


def _growing(system: System[Node]) -> set[Node]:
    """The nodes that have a monomial other than 1."""
    found: set[Node] = set()
    changed = True
    while changed:
        before = len(found)
        for node, terms in system.items():
            if any(_has_variable(each) or found.intersection(body) for each, body in terms):
                found.add(node)
        changed = len(found) > before
    return found


def _has_variable(polynomial: Polynomial[int]) -> bool:
    return any(bag for bag, _ in polynomial.terms)


def _grows(term: Term[Polynomial[int], Node], members: set[Node], growing: set[Node]) -> bool:
    """Whether going round the cycle through this term can add to the degree."""
    own, body = term
    inside = [each for each in body if each in members]
    beside = [each for each in body if each not in members] + inside[1:]
    return _has_variable(own) or not growing.isdisjoint(beside)


def _has_free_cycle(members: set[Node], system: System[Node], least: dict[Node, float]) -> bool:
    """Whether some cycle can be gone round without using anything."""
    free: dict[Node, list[Node]] = {node: [] for node in members}
    for node in members:
        for own, body in system[node]:
            cost = _least(own) + sum(least[each] for each in body)
            free[node] += [each for each in body if each in members and cost == least[each]]
    return any(len(each) > 1 or each[0] in free[each[0]] for each in components(free))


def _counted(
    equations: Equations[Node, Polynomial[int]], semiring: PowerSeries
) -> dict[Node, list[Term[Polynomial[int | float], Node]]]:
    return {node: [(semiring.of(dict(each.terms)), body) for each, body in terms] for node, terms in equations.items()}
