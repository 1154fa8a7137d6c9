"""Tables of SQL: what their rows have to satisfy, and how a table holds equal rows although every relation is a set.

The rows of a table without a key may be equal. Its relation `t` has each of them once, and its companion `t.copies` has the
second, third … copy of a row under their numbers. So both are sets, a row more or less changes one of them by one tuple, and
whoever does not count copies looks at `t` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from whence.lang.types import Tuple

if TYPE_CHECKING:
    from whence.lang.program import Program

# Whether each of some rows is in a relation.
AreThere = Callable[[str, list[Tuple]], Iterable[bool]]


@dataclass(frozen=True, slots=True)
class Key:
    """No two rows have the same values in these columns; what is nil in one of them is equal to nothing."""

    columns: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Check:
    """Of the rows that are put into `given`, the relation `broken` has those of which the condition is false."""

    given: str
    broken: str
    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """What a row has in these columns, some row of a table has in `keys`; a row that is nil in one of them refers to none."""

    columns: tuple[int, ...]
    table: str
    keys: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """What CREATE TABLE says of rows beside their columns.

    `copies` is the companion of a table whose rows may be equal, and `rows` has all of them, numbered, if a view counts them.
    """

    keys: tuple[Key, ...] = ()
    checks: tuple[Check, ...] = ()
    references: tuple[Reference, ...] = ()
    copies: str | None = None
    rows: str | None = None

    @property
    def is_set(self) -> bool:
        return self.copies is None


def bag_tables(program: Program) -> dict[str, str]:
    """The tables whose rows may be equal, each with its companion."""
    return {
        name: relation.table.copies
        for name, relation in program.relations.items()
        if relation.table is not None and relation.table.copies is not None
    }


def has_constraints(program: Program) -> bool:
    """Whether there are rows that a table of the program cannot take."""
    tables = (relation.table for relation in program.relations.values() if relation.table is not None)
    return any(table.keys or table.checks or table.references for table in tables)


def as_relations(program: Program) -> Program:
    """The program with tables as relations like any other: rows are taken as they come, and constraints trusted."""
    relations = {name: replace(relation, table=None) for name, relation in program.relations.items()}
    return replace(program, relations=relations)


def taking_updates(program: Program) -> tuple[str, ...]:
    """The base relations that updates and facts are of: without those that stand behind tables."""
    behind = behind_tables(program)
    return tuple(name for name in program.base_relations if name not in behind)


def behind_tables(program: Program) -> frozenset[str]:
    """Base relations of which only tables know: copies, and rows that are to be checked."""
    tables = [relation.table for relation in program.relations.values() if relation.table is not None]
    given = {check.given for table in tables for check in table.checks}
    return frozenset(given | {table.copies for table in tables if table.copies is not None})


def numbered(rows: Iterable[Tuple], before: Mapping[Tuple, int] | None = None) -> tuple[list[Tuple], list[Tuple]]:
    """Each row once, and those that come again with the number of the copy; some may be there so often `before`.

    >>> numbered([("a",), ("b",), ("a",), ("a",)])
    ([('a',), ('b',)], [('a', 2), ('a', 3)])
    """
    counts: dict[Tuple, int] = dict(before or {})
    first: list[Tuple] = []
    again: list[Tuple] = []
    for row in rows:
        count = counts[row] = counts.get(row, 0) + 1
        if count > 1:
            again.append((*row, count))
        else:
            first.append(row)
    return first, again


def copies_there(rows: Iterable[Tuple], table: str, companion: str, are_there: AreThere) -> dict[Tuple, int]:
    """How often each of the rows is in a table.

    The numbers of copies have no gaps: the last is found by doubling, then by halving, in as many looks as it has bits.
    """
    asked = list(dict.fromkeys(rows))
    counts = dict.fromkeys(asked, 0)
    growing = [row for row, there in zip(asked, are_there(table, asked), strict=True) if there]
    counts.update(dict.fromkeys(growing, 1))
    missing: dict[Tuple, int] = {}  # a number that is not there
    number = 2
    while growing:
        found = list(zip(growing, are_there(companion, [(*row, number) for row in growing]), strict=True))
        missing.update((row, number) for row, there in found if not there)
        growing = [row for row, there in found if there]
        counts.update(dict.fromkeys(growing, number))
        number *= 2
    while unsure := [row for row, absent in missing.items() if absent - counts[row] > 1]:
        middle = {row: (counts[row] + missing[row]) // 2 for row in unsure}
        for row, there in zip(unsure, are_there(companion, [(*row, middle[row]) for row in unsure]), strict=True):
            (counts if there else missing)[row] = middle[row]
    return counts
