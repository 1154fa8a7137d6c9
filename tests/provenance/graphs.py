"""Derivation graphs from programs, by listing every firing of every rule: slow and independent of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

from whence.lang import load
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.reference import evaluate
from whence.reference.annotated import base_facts, instances_of
from whence.semiring import Semiring

Facts = Mapping[str, Iterable[Tuple]]


def graph_of(program: Program | str, facts: Facts) -> DerivationGraph:
    program = load(program) if isinstance(program, str) else program
    base = frozenset(Fact(*fact) for fact in base_facts(program, facts))
    rules = replace(program, rules=tuple(rule for rule in program.rules if not rule.is_fact))
    given: dict[str, set[Tuple]] = {}
    for name, row in base:
        given.setdefault(name, set()).add(row)
    views = evaluate(rules, given)
    derivations: dict[Fact, tuple[Derivation, ...]] = {}
    for rule, head, body in instances_of(rules, views):
        fact = Fact(*head)
        firing = Derivation(rule, fact, tuple(Fact(*each) for each in body))
        derivations[fact] = (*derivations.get(fact, ()), firing)
    return DerivationGraph(tuple(Fact(name, row) for name, rows in views.items() for row in rows), derivations, base)


# A tree is a base fact, or a derivation with a tree for each fact of its body.
Tree = Fact | tuple[Derivation, tuple["Tree", ...]]


def trees(graph: DerivationGraph, fact: Fact, height: int) -> Iterator[Tree]:
    """Every derivation tree of a fact, up to a height."""
    if fact in graph.base:
        yield fact
    if height == 0:
        return
    for derivation in graph.derivations.get(fact, ()):
        for subtrees in product(*(list(trees(graph, each, height - 1)) for each in derivation.body)):
            yield derivation, subtrees


def leaves(tree: Tree) -> list[Fact]:
    if isinstance(tree, Fact):
        return [tree]
    return [leaf for subtree in tree[1] for leaf in leaves(subtree)]


def value_of(tree: Tree, semiring: Semiring[Any], annotations: Mapping[Fact, Any]) -> Any:
    return reduce(semiring.times, (annotations[leaf] for leaf in leaves(tree)), semiring.one)
