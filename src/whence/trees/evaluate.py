"""What a query means: each expression is a label, a tree or a K-set, by recursion over the query and over trees.

It is the definition of correct for whatever evaluates queries by other means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from whence.semiring import Semiring
from whence.semiring.algebra import V
from whence.trees import core
from whence.trees.core import Core, Query
from whence.trees.syntax import ANY
from whence.trees.values import Forest, KSet, KSets, Tree

R = TypeVar("R")


def evaluate_query(query: Query, documents: Mapping[str, Forest[V]], semiring: Semiring[V]) -> Forest[V]:
    """The answer: a K-set of trees."""
    found: Forest[V] = _Evaluator(KSets(semiring), documents).value(query.core, {})
    return found


def structural_recursion(tree: Tree[V], combine: Callable[[str, list[tuple[R, V]]], R]) -> R:
    """`combine` is given a label and, for each child, what it gave for that one and the child's annotation."""
    below = [(structural_recursion(child, combine), value) for child, value in tree.children.items()]
    return combine(tree.label, below)


def descendants(sets: KSets[V], tree: Tree[V], test: str) -> Forest[V]:
    """The trees in a tree whose label passes the test, itself among them, annotated by the sum over the ways down to each."""

    # For each child: what was found below it, and the tree that it is.
    def combine(label: str, below: list[tuple[tuple[Forest[V], Tree[V]], V]]) -> tuple[Forest[V], Tree[V]]:
        itself = Tree(label, sets.of((child, value) for (_, child), value in below))
        found = [sets.scale(value, matches) for (matches, _), value in below]
        return sets.union(*found, *([sets.single(itself)] if test in (ANY, label) else [])), itself

    return structural_recursion(tree, combine)[0]


class _Evaluator:
    def __init__(self, sets: KSets[Any], documents: Mapping[str, Forest[Any]]) -> None:
        self.sets = sets
        self.documents = documents

    def value(self, expression: Core, scope: dict[str, Any]) -> Any:
        sets = self.sets
        match expression:
            case core.Literal(text):
                return text
            case core.NameOf(tree):
                return self.value(tree, scope).label
            case core.Bound(name):
                return scope[name]
            case core.Given(name):
                return self.documents[name]
            case core.Element(label, body):
                return Tree(self.value(label, scope), self.value(body, scope))
            case core.Single(tree):
                return sets.single(self.value(tree, scope))
            case core.Union(parts):
                return sets.union(*(self.value(each, scope) for each in parts))
            case core.For(variable, source, body):
                members = self.value(source, scope)
                return sets.big_union(members, lambda tree: self.value(body, scope | {variable: tree}))
            case core.Let(variable, value, body):
                return self.value(body, scope | {variable: self.value(value, scope)})
            case core.If(left, right, then, otherwise):
                same = self.value(left, scope) == self.value(right, scope)
                return self.value(then if same else otherwise, scope)
            case core.Annot(value, body):
                return sets.scale(value, self.value(body, scope))
            case core.Step(source, axis, test):
                return sets.big_union(self.value(source, scope), lambda tree: self.step(tree, axis, test))
        raise AssertionError(expression)

    def step(self, tree: Tree[Any], axis: str, test: str) -> KSet[Any, Any]:
        if axis == "descendant":
            return descendants(self.sets, tree, test)
        found = self.sets.single(tree) if axis == "self" else tree.children
        return self.sets.of((each, value) for each, value in found.items() if test in (ANY, each.label))
