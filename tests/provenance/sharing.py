"""What the worked examples of "Collaborative Data Sharing with Mappings and Provenance" have in common."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from tests.provenance.graphs import graph_of

from whence.lang.types import Tuple
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.solve import solve_graph
from whence.semiring import BOOLEAN_POLYNOMIALS, NATURAL_POLYNOMIALS, Semiring
from whence.semiring.polynomials import Polynomial, Polynomials

Rows = Mapping[Tuple, str]


def poly(text: str, semiring: Polynomials[Any] = NATURAL_POLYNOMIALS) -> Polynomial[Any]:
    """A polynomial as it is printed: `2 p p + r s`."""
    terms = []
    for part in text.split(" + "):
        words = part.split()
        number = int(words.pop(0)) if words[0].lstrip("-").isdecimal() else 1
        coefficient_ = semiring.constant(number if semiring is not BOOLEAN_POLYNOMIALS else bool(number))
        terms.append(semiring.product([coefficient_, *map(semiring.variable, words)]))
    return semiring.sum(terms)


def sets(text: str) -> frozenset[frozenset[str]]:
    """`pq r` for {{p, q}, {r}}."""
    return frozenset(frozenset(word) for word in text.split())


def annotated(
    graph: DerivationGraph, semiring: Semiring[Any], relation: str, tokens: Mapping[Fact, Any], **rules: Any
) -> dict[Tuple, Any]:
    values = solve_graph(graph, semiring, tokens.get, rules=rules)
    return {row: value for (name, row), value in values.items() if name == relation and value != semiring.zero}


def tagged(relation: str, rows: Rows) -> dict[Fact, str]:
    return {Fact(relation, row): tag for row, tag in rows.items()}


def variables(semiring: Semiring[Any], tags: Mapping[Fact, str]) -> dict[Fact, Any]:
    return {fact: semiring.variable(tag) for fact, tag in tags.items()}


def short(values: Mapping[Tuple, Any]) -> dict[str, Any]:
    return {"".join(row): value for row, value in values.items()}  # type: ignore[arg-type]


def paths(edges: Mapping[str, Any], semiring: Semiring[Any], length: int) -> dict[str, Any]:
    """Paths of a length through annotated edges named by their two ends."""
    return chains(semiring, *[edges] * length)


def chains(semiring: Semiring[Any], *steps: Mapping[str, Any]) -> dict[str, Any]:
    """Paths whose first edge is of the first relation, the second of the second, and so on."""
    names = [f"x{at}" for at in range(len(steps) + 1)]
    body = ", ".join(f"r{at}({a}, {b})" for at, (a, b) in enumerate(pairwise(names)))
    declared = "".join(f".decl r{at}(a: symbol, b: symbol) .input r{at} " for at in range(len(steps)))
    facts = {f"r{at}": [tuple(edge) for edge in edges] for at, edges in enumerate(steps)}
    graph = graph_of(f"{declared} v(x0, {names[-1]}) :- {body}.", facts)
    tokens = {Fact(f"r{at}", tuple(edge)): value for at, edges in enumerate(steps) for edge, value in edges.items()}
    return short(annotated(graph, semiring, "v", tokens))


def added(semiring: Semiring[Any], *parts: Mapping[str, Any]) -> dict[str, Any]:
    keys = {key for part in parts for key in part}
    sums = {key: semiring.sum([part.get(key, semiring.zero) for part in parts]) for key in keys}
    return {key: value for key, value in sums.items() if value != semiring.zero}


def subtracted(semiring: Semiring[Any], left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """For semirings with negatives."""
    return added(semiring, left, {key: semiring.minus(semiring.zero, value) for key, value in right.items()})


# -- three databases: GUS has genes, BioSQL names with numbers, uBio names that mean the same ---------------------------

MAPPINGS = """
.type Id = num {n: number} | f {n: symbol}
.decl g(id: number, nam: symbol, can: symbol) .input g
.decl b(id: Id, nam: symbol) .input b
.decl u(nam1: symbol, nam2: symbol) .input u
m1: b($f(n), n) :- g(_, n, _).
m2: u(n, c) :- g(_, n, c).
m3: b(x, n2) :- b(x, n1), u(n1, n2).
"""
