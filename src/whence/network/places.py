"""Which values name nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from whence.lang.program import Atom, Const, Program, Rule, Term, Var
from whence.lang.tree import walk
from whence.lang.types import Value
from whence.plan.localize import Placed, is_placed


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


def named_nodes(placed: Placed, columns: Mapping[str, Sequence[int]]) -> Iterator[Value]:
    """The nodes that the program itself names: in heads, and as places. `columns` are those of `node_columns`."""
    for rule in placed.program.rules:
        site = placed.sites[rule.name]
        if isinstance(site, Const):
            yield site.value
        for column in columns[rule.head.relation]:
            if isinstance(named := rule.head.args[column], Const):
                yield named.value


def node_columns(placed: Placed) -> Mapping[str, tuple[int, ...]]:
    """By relation the columns whose values name nodes: something lives there, or a rule ships something there sooner or later."""
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
                for column, arg in enumerate(atom.args):
                    if isinstance(arg, Var) and arg.name in named and column not in columns[atom.relation]:
                        columns[atom.relation].add(column)
                        changed = True
    return {name: tuple(sorted(found)) for name, found in columns.items()}


def _atoms(rule: Rule) -> Iterator[Atom]:
    yield rule.head
    yield from (part for part in walk(rule.body) if isinstance(part, Atom))


def _named(atom: Atom, columns: Mapping[str, set[int]]) -> Iterator[str]:
    """The variables that name nodes, as far as is known."""
    for column in columns[atom.relation]:
        term: Term = atom.args[column]
        if isinstance(term, Var):
            yield term.name
