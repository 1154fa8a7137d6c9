"""Tables beyond their columns: the copies of equal rows, and conditions that rows have to satisfy."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlUnsupported
from whence.lang.sql.conditions import Conditions
from whence.lang.sql.logic import Want
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Catalog, Draft, Env, Names, Relation, State, unique
from whence.lang.sql.scope import Item, Scope
from whence.lang.sql.terms import Subqueries
from whence.lang.tables import Check


def add_copies(table: Relation, catalog: Catalog) -> None:
    """Gives a table whose rows may be equal its companion (`lang.tables`)."""
    assert table.columns is not None
    assert table.table is not None
    assert table.types is not None
    columns = [*table.columns, unique("copy", table.columns)]
    name = catalog.name_for(f"{table.name}.copies")
    companion = Relation(name, columns, types=[*table.types, "number"], owner=table, state=State.DONE, span=table.span)
    companion.nullable = [*(table.nullable or ()), False]
    catalog.add(companion)
    table.table = replace(table.table, copies=name)


def all_copies(table: Relation, catalog: Catalog) -> Relation:
    """What stands for such a table where its copies count: all rows, with the number of the copy as a hidden column."""
    assert table.columns is not None
    assert table.table is not None
    assert table.table.copies is not None
    if table.counted is None:
        made = Relation(catalog.name_for(f"{table.name}.rows"), table.columns, owner=table, state=State.DONE)
        made.hidden, made.span = [unique("copy", table.columns)], table.span
        made.nullable = [*(table.nullable or ()), False]
        table.counted = catalog.add(made)
        table.table = replace(table.table, rows=made.name)
        names = Names()
        values = tuple(names.fresh(column) for column in table.columns)
        number = names.fresh(made.hidden[0])
        nullables = frozenset(value.name for value, null in zip(values, table.nullable or (), strict=False) if null)
        assert table.table.copies is not None
        copies = tree.Atom(table.table.copies, (*values, number), None, table.span)
        for last, atom in ((tree.Number(1), table.atom(values, table.span)), (number, copies)):
            catalog.drafts.append(Draft(made, (*values, last), [atom], table.span, nullables))
    return table.counted


def add_checks(table: Relation, queries: Subqueries) -> None:
    """Rules that tell rows of which a CHECK is false from the others, without looking at the table itself."""
    catalog = queries.catalog
    if not table.checks:
        return
    assert table.columns is not None
    assert table.table is not None
    nullable = table.nullable or [False] * len(table.columns)
    given = Relation(f"{table.name}!given", table.columns, types=table.types, owner=table, state=State.DONE)
    given.nullable, given.span = nullable, table.span
    catalog.add(given)
    checks: list[Check] = []
    for node in table.checks:
        if node.find(exp.Query) is not None:
            advice = "a CHECK is about one row of the table"
            catalog.found.append(SqlUnsupported(span_of(node), feature="a subquery in CHECK", advice=advice))
            continue
        broken = Relation(f"{table.name}!check{len(checks) + 1}", table.columns, owner=table, state=State.DONE)
        broken.nullable, broken.span = nullable, table.span
        catalog.add(broken)
        scope = Scope(broken, Names(), catalog.found, Env(catalog.globals))
        values = [scope.fresh(column, nullable=null) for column, null in zip(table.columns, nullable, strict=True)]
        atom = given.atom(values, table.span)
        scope.items.append(Item(table.name, table.columns, values, atom))
        conditions = Conditions(scope, queries)
        body = [atom, conditions.condition(node, Want.FALSE), *conditions.formulas]
        drafted = Draft(broken, tuple(values), body, span_of(node), scope.every_nullable(), frozenset(scope.tested))
        catalog.drafts.append(drafted)
        checks.append(Check(given.name, broken.name, f"CHECK ({node.sql()})"))
    table.table = replace(table.table, checks=tuple(checks))
