"""Weak acyclicity: mappings that invent values from invented values for ever are found before any data is.

Positions (a relation and a column) are nodes. A variable that a mapping carries over is an edge; where it also takes part in
inventing a value, it is a special edge to the positions of that value. No cycle may go through a special edge. What a function
computes counts as invented: nothing else keeps `y = x + 1` from going on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from whence.exchange.model import Relation, SchemaMapping, variables_of
from whence.lang import tree

Position = tuple[str, int]


class Edge(NamedTuple):
    source: Position
    target: Position
    mapping: str
    invents: bool


def position_edges(mappings: Iterable[SchemaMapping]) -> list[Edge]:
    edges: dict[Edge, None] = {}
    for mapping in mappings:
        shared = set(mapping.shared)
        computing = set(variables_of(mapping.conditions))
        computed = shared - set(variables_of(mapping.atoms))
        targets = [(name, position) for atom in mapping.heads for name, position in _variables(atom)]
        for atom in mapping.atoms:
            for name, source in _variables(atom):
                for other, target in targets:
                    invents = (name in shared and other in mapping.exists) or (name in computing and other in computed)
                    if other == name or invents:
                        edges[Edge(source, target, mapping.name, invents)] = None
    return list(edges)


def offending_cycle(
    relations: Mapping[str, Relation], mappings: Iterable[SchemaMapping]
) -> tuple[str, list[str]] | None:
    """A shortest cycle through a special edge, as text, and the mappings on it; None if there is none."""
    edges = position_edges(mappings)
    leaving: dict[Position, list[Edge]] = {}
    for edge in edges:
        leaving.setdefault(edge.source, []).append(edge)
    best: list[Edge] | None = None
    for edge in edges:
        if edge.invents:
            path = _path(leaving, edge.target, edge.source)
            if path is not None and (best is None or len(path) + 1 < len(best)):
                best = [edge, *path]
    if best is None:
        return None
    steps = _shown(relations, best[0].source)
    for edge in best:
        steps += f" {'=' if edge.invents else '-'}{edge.mapping}{'=>' if edge.invents else '->'} "
        steps += _shown(relations, edge.target)
    return steps, list(dict.fromkeys(edge.mapping for edge in best))


def _path(leaving: Mapping[Position, list[Edge]], start: Position, end: Position) -> list[Edge] | None:
    before: dict[Position, Edge | None] = {start: None}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        if here == end:
            path: list[Edge] = []
            while (edge := before[here]) is not None:
                path.insert(0, edge)
                here = edge.source
            return path
        for edge in leaving.get(here, ()):
            if edge.target not in before:
                before[edge.target] = edge
                waiting.append(edge.target)
    return None


def _variables(atom: tree.Atom) -> Iterable[tuple[str, Position]]:
    return ((arg.name, (atom.relation, at)) for at, arg in enumerate(atom.args) if isinstance(arg, tree.Variable))


def _shown(relations: Mapping[str, Relation], position: Position) -> str:
    name, at = position
    return f"{name}.{relations[name].columns[at].name}"
