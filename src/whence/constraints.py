"""What rows of SQL tables have to satisfy: keys, checks and references, and who breaks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from whence.lang.program import Program
from whence.lang.table_facts import row_of
from whence.lang.tables import Key, Reference, Table, behind_tables
from whence.lang.types import Tuple, Value
from whence.limits import Limits
from whence.plan import restrict
from whence.reference import evaluate


class ConstraintError(ValueError):
    """A row that a table cannot take: which, why, and what to do."""

    def __init__(self, broken: Broken, where: str = "") -> None:
        self.broken = broken
        super().__init__(f"{f'{where}: ' if where else ''}{broken}: {broken.advice}")


@dataclass(frozen=True)
class Broken:
    """The row at some place of a sequence breaks a constraint; if that is a key, `other` has it already.

    A row that refers to nothing has the `reference` that it breaks. One that is to go, and stays, is told with a row `referring`
    to it.
    """

    at: int
    relation: str
    row: Tuple
    constraint: str
    other: Tuple | None = None
    reference: Reference | None = None
    referring: tuple[str, Tuple] | None = None

    def __str__(self) -> str:
        if self.referring is not None:
            return f"{fact_text(self.relation, self.row)} cannot go: {fact_text(*self.referring)} refers to it"
        text = f"{fact_text(self.relation, self.row)} breaks {self.constraint}"
        if self.other is None:
            return text
        there = "it" if self.other == self.row else fact_text(self.relation, self.other)
        return f"{text}: {there} is there already"

    @property
    def advice(self) -> str:
        if self.referring is not None:
            return "delete what refers to it as well, in the same epoch"
        if self.reference is not None:
            return "leave it out, or insert what it refers to in the same epoch"
        return "leave it out" if self.other is None else "leave it out, or delete the other one first"


def fact_text(relation: str, row: Tuple) -> str:
    """
    >>> fact_text("sale", (1, "A", None))
    'sale(1, "A", nil)'
    """
    return f"{relation}({', '.join(map(_shown, row))})"


def _shown(value: Value) -> str:
    return "nil" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


class Constraints:
    """Those of all tables of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.tables: Mapping[str, Table] = {
            name: relation.table for name, relation in program.relations.items() if relation.table is not None
        }

    def __bool__(self) -> bool:
        return any(table.keys or table.checks or table.copies for table in self.tables.values())

    @cached_property
    def behind(self) -> frozenset[str]:
        """Relations that updates do not speak of."""
        return behind_tables(self.program)

    @cached_property
    def references(self) -> tuple[tuple[str, Reference], ...]:
        """What rows of tables refer to, each with the table."""
        return tuple((name, each) for name, table in self.tables.items() for each in table.references)

    @cached_property
    def written(self) -> Mapping[str, Mapping[Tuple, int]]:
        """The rows that the text inserts, which no update takes away, and how often it does."""
        found: dict[str, dict[Tuple, int]] = {name: {} for name in self.tables}
        companions = {table.copies: name for name, table in self.tables.items() if table.copies is not None}
        for rule in self.program.rules:
            name = rule.head.relation
            if rule.is_fact and (name in found or name in companions):
                row = row_of(rule, self.program.functions)
                if row is not None:
                    row, name = (row[:-1], companions[name]) if name in companions else (row, name)
                    found[name][row] = found[name].get(row, 0) + 1
        return found

    def unchecked(self, name: str, rows: Iterable[Tuple]) -> dict[Tuple, str]:
        """The rows of which a CHECK of the table is false, and which CHECK that is."""
        checks = self.tables[name].checks
        if not checks:
            return {}
        views = evaluate(self._checking[name], {checks[0].given: list(rows)}, limits=Limits(within_memory=False))
        return {row: check.text for check in reversed(checks) for row in views[check.broken]}

    @cached_property
    def _checking(self) -> Mapping[str, Program]:
        return {
            name: restrict(self.program, [check.broken for check in table.checks])
            for name, table in self.tables.items()
            if table.checks
        }

    def broken(self, name: str, rows: Sequence[Tuple]) -> Iterator[Broken]:
        """The rows that break a constraint if they come in this order, behind those that the text inserts."""
        table = self.tables[name]
        written = list(self.written[name])
        for row, text in self.unchecked(name, written).items():
            yield Broken(-1, name, row, text)
        unchecked = self.unchecked(name, rows)
        holders = [{values: row for row in written if None not in (values := key_of(row, key))} for key in table.keys]
        for at, row in enumerate(rows):
            if row in unchecked:
                yield Broken(at, name, row, unchecked[row])
                continue
            keys = [(key, key_of(row, key), held) for key, held in zip(table.keys, holders, strict=True)]
            broken = next(
                (Broken(at, name, row, key.text, held[each]) for key, each, held in keys if each in held), None
            )
            if broken is not None:
                yield broken
                continue
            for _, values, held in keys:
                if None not in values:
                    held[values] = row

    def look_at_rows(self, name: str) -> bool:
        """Whether rows of the table have to be looked at one by one."""
        table = self.tables.get(name)
        return table is not None and bool(table.checks or self.written[name])


def key_of(row: Tuple, key: Key) -> tuple[Value, ...]:
    return values_at(row, key.columns)


def values_at(row: Tuple, columns: Iterable[int]) -> tuple[Value, ...]:
    return tuple([row[at] for at in columns])


# What rows have in some columns: they may be there as columns only.
ValuesIn = Callable[[tuple[int, ...]], Iterable[tuple[Value, ...]]]


def values_in(rows: Iterable[Tuple]) -> ValuesIn:
    return lambda columns: (values_at(row, columns) for row in rows)


def check_references(given: Mapping[str, ValuesIn], constraints: Constraints) -> None:
    """Raises ConstraintError if a row of the facts, or of the text, refers to nothing."""

    def values(name: str, columns: tuple[int, ...]) -> Iterator[tuple[Value, ...]]:
        yield from (values_at(row, columns) for row in constraints.written[name])
        if name in given:
            yield from given[name](columns)

    for name, each in constraints.references:
        known = set(values(each.table, each.keys))
        for at, asked in enumerate(values(name, each.columns)):
            if None not in asked and asked not in known:
                place = at - len(constraints.written[name])
                rows = values(name, tuple(range(constraints.program.relations[name].arity)))
                row = next(row for row in rows if values_at(row, each.columns) == asked)
                where = "the program" if place < 0 else f"row {place + 1}"
                raise ConstraintError(Broken(place, name, row, each.text, reference=each), where)
