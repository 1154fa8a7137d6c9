"""Bags, as programs hold them: a relation has each row once, and its companion `name.copies` how often, if more than once.

Only SQL makes such companions: of views whose rows may be equal, and of tables without a key. The companion of a table has
every number from 2 on (see `tables`), that of a view only the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat

from whence.lang.program import Atom, Program
from whence.lang.types import Tuple

_SUFFIX = ".copies"


def copies_of(program: Program, name: str) -> str | None:
    """The relation that says how often rows of another are there, if that is a bag."""
    if (table := program.relations[name].table) is not None:
        return table.copies
    companion = program.relations.get(f"{name}{_SUFFIX}")
    is_bag = companion is not None and companion.arity == program.relations[name].arity + 1
    return f"{name}{_SUFFIX}" if is_bag else None


def bag_rows(program: Program) -> Iterator[tuple[str, str]]:
    """The relations that tell the rows of views that are bags apart, each with its view, which only restates it."""
    for view in program.relations:
        if copies_of(program, view) is not None:
            for rule in program.rules_for(view):
                atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
                if len(atoms) == 1 and program.relations[atoms[0].relation].helper:
                    yield atoms[0].relation, view


def is_helper(name: str) -> bool:
    """Whether a relation is there for the sake of another one, whoever looks at it."""
    return name.endswith(_SUFFIX) or "!" in name


def named_relations(program: Program) -> tuple[str, ...]:
    """The relations that whoever wrote the program knows: tables and views without what stands behind them."""
    tables = [relation.table for relation in program.relations.values() if relation.table is not None]
    behind = {each for table in tables for each in (table.copies, table.rows)}
    return tuple(
        name
        for name, relation in program.relations.items()
        if not relation.helper and name not in behind and "!" not in name
    )


def with_copies(program: Program, names: Iterable[str]) -> tuple[str, ...]:
    """The relations, each with its companion."""
    return tuple(each for name in names for each in (name, copies_of(program, name)) if each is not None)


Sides = tuple[Sequence[Tuple], Sequence[Tuple]]  # rows that came, and rows that went


def changes_of_bag(rows: Sides, copies: Sides) -> Sides:
    """The changes of a view as often as its rows came or went, given those of its rows, each once, and of its companion.

    >>> changes_of_bag(([("a",)], []), ([("a", 3), ("b", 1)], [("b", 2)]))
    ([('a',), ('a',), ('a',)], [('b',)])
    """
    come, gone = (dict.fromkeys(side, 1) for side in rows)
    now, before = ({row[:-1]: row[-1] for row in side} for side in copies)
    inserted: list[Tuple] = []
    deleted: list[Tuple] = []
    for row in dict.fromkeys([*come, *gone, *now, *before]):
        after, then = now.get(row, row not in gone), before.get(row, row not in come)
        assert isinstance(after, int)
        assert isinstance(then, int)
        inserted += repeat(row, after - then)
        deleted += repeat(row, then - after)
    return inserted, deleted


def repeated(program: Program, name: str, views: Mapping[str, Iterable[Tuple]]) -> Iterable[Tuple]:
    """The rows of a relation, as often as they are there; those of a set are given as they are, and need not be looked at."""
    companion = copies_of(program, name)
    return views[name] if companion is None else _repeated(views[name], views[companion])


def _repeated(rows: Iterable[Tuple], numbered: Iterable[Tuple]) -> Iterator[Tuple]:
    copies: dict[Tuple, int] = {}
    for each in numbered:
        row, count = each[:-1], each[-1]
        assert isinstance(count, int)
        copies[row] = max(count, copies.get(row, 1))
    for row in rows:
        yield from repeat(row, copies.get(row, 1))
