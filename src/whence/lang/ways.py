"""The ways by which rows of tagged relations are derived (UNION ALL in SQL), read backwards.

The way of a row is a term: a branch for each rule, whose parts are what the rule read and the other columns do not tell. So a
row and its way tell the rows of the recursion that it was derived from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whence.lang.program import Atom, Make, Program, Rule, Var


@dataclass(frozen=True, slots=True)
class Source:
    """Where the value of a parent's column stands: in a column of the row, or in a part of its way."""

    at: int
    in_way: bool


@dataclass(frozen=True, slots=True)
class Parent:
    """A row that a rule reads. Columns that neither the row nor its way has are None; the last one is the parent's way."""

    relation: str
    columns: tuple[Source | None, ...]


def parents_of(program: Program, relations: Sequence[str]) -> Mapping[tuple[str, str], tuple[Parent, ...]]:
    """For each relation and branch of its ways, the rows of these relations that its rules read."""
    found: dict[tuple[str, str], list[Parent]] = {}
    for rule in program.rules:
        way = rule.head.args[-1] if rule.head.args else None
        if rule.head.relation in relations and isinstance(way, Make) and way.branch is not None:
            listed = found.setdefault((rule.head.relation, way.branch), [])
            listed += [each for each in _parents(rule, way, relations) if each not in listed]
    return {key: tuple(listed) for key, listed in found.items()}


def _parents(rule: Rule, way: Make, relations: Sequence[str]) -> list[Parent]:
    sources = {part.name: Source(at, in_way=True) for at, part in enumerate(way.args) if isinstance(part, Var)}
    sources |= {part.name: Source(at, in_way=False) for at, part in enumerate(rule.head.args) if isinstance(part, Var)}
    atoms = [atom for atom in rule.body if isinstance(atom, Atom) and atom.relation in relations]
    return [
        Parent(atom.relation, tuple(sources.get(part.name) if isinstance(part, Var) else None for part in atom.args))
        for atom in atoms
        if isinstance(last := atom.args[-1], Var) and last.name in sources
    ]


def joined_columns(program: Program, relation: str) -> list[int]:
    """The columns of a relation by which rules find partners for its rows."""
    found: set[int] = set()
    for rule in program.rules:
        atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
        for atom in (each for each in atoms if each.relation == relation):
            others = {part.name for each in atoms if each is not atom for part in each.args if isinstance(part, Var)}
            found.update(at for at, part in enumerate(atom.args) if isinstance(part, Var) and part.name in others)
    return sorted(found)
