"""Which column says where a tuple lives: `@` in a declaration, or in any atom of the relation."""

from __future__ import annotations

from dataclasses import replace

from whence.lang import tree
from whence.lang.diagnostics import Diagnostic, MisplacedLocation
from whence.lang.normalize import FlatRule
from whence.lang.program import Relation


def find_places(rules: list[FlatRule], relations: dict[str, Relation], found: list[Diagnostic]) -> None:
    """Gives relations the locations that atoms mark. All atoms of a relation mark the same argument, if they mark one."""
    for rule in rules:
        for atom in tree.walk((rule.head, rule.body)):
            if isinstance(atom, tree.Atom) and atom.location is not None:
                _place(atom, atom.location, relations, found)


def _place(atom: tree.Atom, location: int, relations: dict[str, Relation], found: list[Diagnostic]) -> None:
    relation = relations.get(atom.relation)
    if relation is None or location >= relation.arity or relation.location == location:
        return
    if relation.everywhere:
        problem = f"{relation.name} is declared to be everywhere"
    elif relation.location is not None:
        problem = f"argument {relation.location + 1} of {relation.name} says where its tuples live, not {location + 1}"
    else:
        relations[atom.relation] = replace(relation, location=location)
        return
    found.append(MisplacedLocation(atom.span, problem=problem))
