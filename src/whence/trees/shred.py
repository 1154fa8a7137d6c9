"""Queries by shredding: trees to rows, rules on the engine or on Spark, rows to trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from whence.annotated import evaluate_annotated
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.semiring import Semiring
from whence.semiring.algebra import V
from whence.session import evaluate
from whence.trees.compile import EDGE, INSIDE, MEMBER, ONCE, SCALAR, Compiled, compile_query
from whence.trees.core import Query
from whence.trees.values import Forest, KSets, Tree

Rows = dict[Tuple, V]


def shred(name: str, forest: Forest[V]) -> Rows[V]:
    """The rows of a document, `edge(parent, node, label)`, with the annotations of the nodes."""
    rows: Rows[V] = {}
    waiting: list[tuple[str, Forest[V]]] = [(name, forest)]
    while waiting:
        parent, members = waiting.pop()
        for tree, value in members.items():
            node = f"{name}.{len(rows) + 1}"
            rows[parent, node, tree.label] = value
            waiting.append((node, tree.children))
    return rows


def decode(semiring: Semiring[V], members: Mapping[Tuple, V], inside: Mapping[Tuple, V]) -> Forest[V]:
    """The trees that rows stand for. Rows that no member leads to are left out."""
    sets = KSets(semiring)
    children: dict[str, list[tuple[str, str, V]]] = {}
    for (parent, node, label), value in inside.items():
        children.setdefault(str(parent), []).append((str(node), str(label), value))
    made: dict[tuple[str, str], Tree[V]] = {}

    def tree_of(node: str, label: str) -> Tree[V]:
        found = made.get((node, label))
        if found is None:
            below = ((tree_of(child, its), value) for child, its, value in children.get(node, ()))
            found = made[node, label] = Tree(label, sets.of(below))
        return found

    return sets.of((tree_of(str(node), str(label)), value) for (node, label), value in members.items())


def evaluate_shredded(
    query: Query,
    documents: Mapping[str, Forest[V]],
    semiring: Semiring[V],
    *,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> Forest[V]:
    """The same as `evaluate_query`, by rules on the engine."""
    compiled = compile_query(query)
    given = base_rows(compiled, documents, semiring)
    guards = evaluate(compiled.program, given, wanted=compiled.guards, limits=limits)
    facts: dict[str, Iterable[Tuple]] = {**given, **{name: guards[name] for name in compiled.guards}}

    def annotation(relation: str, row: Tuple) -> V:
        return given[relation][row] if relation in given else semiring.one

    views = evaluate_annotated(compiled.annotated, facts, semiring, annotation, limits=limits)
    return decode(semiring, views[MEMBER], views[INSIDE])


def base_rows(compiled: Compiled, documents: Mapping[str, Forest[V]], semiring: Semiring[V]) -> dict[str, Rows[V]]:
    """The base relations of a compiled query, with their annotations."""
    rows: dict[str, Rows[V]] = {
        EDGE: {row: value for name in compiled.query.documents for row, value in shred(name, documents[name]).items()},
        SCALAR: {(at,): value for at, value in enumerate(compiled.scalars) if value != semiring.zero},
        ONCE: {(0,): semiring.one},
    }
    return {name: rows[name] for name in rows if name in compiled.relations}
