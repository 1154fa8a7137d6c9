"""Which relations are graphs, and where their nodes are: as the program says, or as their columns look.

`.pragma "graph" "link(x, y)"` says that rows of `link` lead from `x` to `y`, `.pragma "place" "city(name, x, y)"` that `name` is
at a place. Where nothing is said, two columns of one type are taken for an edge, and columns called `x` and `y`, or `lat` and
`lon`, for a place; viewers may see it otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal as OneOf

from whence.lang import tree
from whence.lang.diagnostics import Diagnostic, Diagnostics
from whence.lang.program import Program, Relation
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED
from whence.serve.diagnostics import BadShape

_SHAPE = re.compile(r"\s*([\w.?]+)\s*\(([^()]*)\)\s*")
_COORDINATES = (("x", "y"), ("lon", "lat"), ("lng", "lat"), ("longitude", "latitude"), ("col", "row"))
_WIDE = 5  # columns: wider relations are seldom graphs
_NUMBERS = (NUMBER, UNSIGNED, FLOAT)


@dataclass(frozen=True)
class Graph:
    """Rows lead from one column to another."""

    source: int
    target: int
    is_declared: bool = False


@dataclass(frozen=True)
class Placed:
    """`key` is at `x` and `y`, on a plan or on the globe."""

    key: int
    x: int
    y: int
    on: OneOf["plan", "globe"] = "plan"
    is_declared: bool = False


@dataclass(frozen=True)
class Shapes:
    graphs: Mapping[str, Graph]
    places: Mapping[str, Placed]


def shapes_of(program: Program) -> Shapes:
    """Raises ProgramError if what the program says of shapes does not fit its relations."""
    graphs = {name: found for name, relation in program.relations.items() if (found := _guessed_graph(relation))}
    places = {name: there for name, relation in program.relations.items() if (there := _guessed_place(relation))}
    problems: list[Diagnostic] = []
    for pragma, name, columns in _declared(program, problems):
        if pragma.key == "graph":
            graphs[name] = Graph(columns[0], columns[1], is_declared=True)
        else:
            key, x, y = columns
            places[name] = Placed(key, x, y, _on(program.relations[name], x), is_declared=True)
    Diagnostics(program.source, problems).raise_if_errors()
    return Shapes(graphs, places)


def _declared(program: Program, problems: list[Diagnostic]) -> Iterator[tuple[tree.Pragma, str, list[int]]]:
    for pragma in program.module.statements:
        if not isinstance(pragma, tree.Pragma) or pragma.key not in ("graph", "place"):
            continue
        expected = "link(from, to)" if pragma.key == "graph" else "node(name, x, y)"
        match = _SHAPE.fullmatch(pragma.value or "")
        names = [] if match is None else [each.strip() for each in match[2].split(",")]
        if match is None or len(names) != expected.count(",") + 1:
            problems.append(
                BadShape(pragma.span, problem=f'.pragma "{pragma.key}" is followed by "{expected}"', known="")
            )
            continue
        relation = program.relations.get(match[1])
        if relation is None:
            known = f"there are {', '.join(program.relations)}"
            problems.append(BadShape(pragma.span, problem=f"there is no relation {match[1]}", known=known))
            continue
        columns = [field.name for field in relation.fields]
        missing = [each for each in names if each not in columns]
        if missing:
            known = f"it has {', '.join(columns)}"
            problems.append(BadShape(pragma.span, problem=f"{match[1]} has no column {missing[0]}", known=known))
            continue
        yield pragma, match[1], [columns.index(each) for each in names]


def _guessed_graph(relation: Relation) -> Graph | None:
    fields = relation.fields
    if 2 <= len(fields) <= _WIDE:
        for at, (one, other) in enumerate(pairwise(fields)):
            if one.type == other.type and (one.kind == SYMBOL or (at == 0 and len(fields) == 2 and one.kind != FLOAT)):
                return None if _guessed_place(relation) else Graph(at, at + 1)
    return None


def _guessed_place(relation: Relation) -> Placed | None:
    named = {field.name.lower(): at for at, field in enumerate(relation.fields) if field.kind in _NUMBERS}
    for x, y in _COORDINATES:
        if x in named and y in named:
            others = [at for at in range(relation.arity) if at not in (named[x], named[y])]
            if others:
                return Placed(others[0], named[x], named[y], _on(relation, named[x]))
    return None


def _on(relation: Relation, x: int) -> OneOf["plan", "globe"]:
    return "globe" if relation.fields[x].name.lower().startswith(("lon", "lng")) else "plan"
