"""Which values of base tuples name nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from whence.lang.program import Atom, Const, Program, Rule, Term, Var
from whence.lang.tree import walk
from whence.lang.types import Value
from whence.plan.localize import HERE, Placed, is_placed


class PlaceError(Exception):
    """A node that is not there, or a program without places. `hint` says what to do."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


def check_placed(program: Program) -> None:
    if not is_placed(program):
        raise PlaceError(
            "the program does not say where its tuples live",
            hint="mark the argument that names a tuple's node, as in link(@x, y)",
        )


def named_nodes(placed: Placed) -> Iterator[Value]:
    """The nodes that the program itself names: in facts, and as places."""
    relations = placed.program.relations
    for rule in placed.program.rules:
        site = placed.sites[rule.name]
        if isinstance(site, Const):
            yield site.value
        column = relations[rule.head.relation].location
        if column is not None and isinstance(home := rule.head.args[column], Const):
            yield home.value


def node_columns(placed: Placed) -> Mapping[str, tuple[int, ...]]:
    """The columns of base relations whose values name nodes: a rule ships something there, sooner or later."""
    program = placed.program
    columns: dict[str, set[int]] = {
        name: set() if relation.location is None else {relation.location}
        for name, relation in program.relations.items()
    }
    changed = True
    while changed:
        changed = False
        for rule in program.rules:
            named = {name for atom in _atoms(rule) for name in _named(atom, columns)}
            for atom in _atoms(rule):
                if atom.relation == HERE:
                    continue
                for column, arg in enumerate(atom.args):
                    if isinstance(arg, Var) and arg.name in named and column not in columns[atom.relation]:
                        columns[atom.relation].add(column)
                        changed = True
    return {name: tuple(sorted(columns[name])) for name in program.base_relations if name != HERE}


def _atoms(rule: Rule) -> Iterator[Atom]:
    yield rule.head
    yield from (part for part in walk(rule.body) if isinstance(part, Atom))


def _named(atom: Atom, columns: Mapping[str, set[int]]) -> Iterator[str]:
    """The variables that name nodes, as far as is known."""
    for column in columns[atom.relation]:
        term: Term = atom.args[column]
        if isinstance(term, Var):
            yield term.name
