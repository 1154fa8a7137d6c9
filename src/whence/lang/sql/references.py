"""REFERENCES and FOREIGN KEY: which columns of a table name a row of which other."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from whence.lang.diagnostics import SqlShape, SqlUnknownTable
from whence.lang.sql.constraints import Referring
from whence.lang.sql.nodes import inner
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Catalog, Relation
from whence.lang.tables import Reference


def add_references(table: Relation, catalog: Catalog) -> None:
    """What the rows of a table refer to, once all tables are known."""
    assert table.table is not None
    found = [made for each in table.references if (made := _resolved(each, table, catalog)) is not None]
    table.table = replace(table.table, references=tuple(found))


def _resolved(referring: Referring, table: Relation, catalog: Catalog) -> Reference | None:
    """The reference by the positions of columns; None if something is wrong with it, which is reported."""
    written = inner(referring.reference.this)
    named = written.this if isinstance(written, exp.Schema) else written
    target = catalog.globals.get(named.name.lower())
    if target is None:
        catalog.found.append(SqlUnknownTable(span_of(named), name=named.name, advice="declare it with CREATE TABLE"))
        return None
    columns = _places(table, list(referring.columns), referring.place, catalog)
    if target.table is None or columns is None:
        if target.table is None:
            _report(
                named, f"{named.name} is no table to refer to", "refer to the table that its rows come from", catalog
            )
        return None
    listed = [inner(part).name.lower() for part in written.expressions] if isinstance(written, exp.Schema) else []
    primary = next((key.columns for key in target.table.keys if key.text.startswith("PRIMARY KEY")), None)
    keys = _places(target, listed, referring.place, catalog) if listed else primary
    if keys is None:
        if not listed:
            advice = "give it one, or list the columns that are UNIQUE"
            _report(named, f"{named.name} has no PRIMARY KEY to refer to", advice, catalog)
        return None
    if not any({*key.columns} == {*keys} for key in target.table.keys):
        problem = f"what is referred to is no key of {named.name}"
        _report(named, problem, "refer to its PRIMARY KEY, or to columns that are UNIQUE together", catalog)
        return None
    kinds = [[(each.types or ())[at] for at in places] for each, places in ((table, columns), (target, keys))]
    if kinds[0] != kinds[1]:
        problem = f"{named.name} has {', '.join(kinds[1])} where {table.name} has {', '.join(kinds[0])}"
        _report(named, problem, "give both the same types", catalog)
        return None
    own = ", ".join((table.columns or [])[at] for at in columns)
    other = ", ".join((target.columns or [])[at] for at in keys)
    return Reference(columns, target.name, keys, f"FOREIGN KEY ({own}) REFERENCES {target.name} ({other})")


def _places(table: Relation, names: list[str], node: exp.Expr, catalog: Catalog) -> tuple[int, ...] | None:
    columns = [column.lower() for column in table.columns or ()]
    for name in names:
        if name not in columns:
            advice = f"the columns are {', '.join(table.columns or ())}"
            _report(node, f"{table.name} has no column {name}", advice, catalog)
            return None
    return tuple(columns.index(name) for name in names)


def _report(node: exp.Expr, problem: str, advice: str, catalog: Catalog) -> None:
    catalog.found.append(SqlShape(span_of(node), problem=problem, advice=advice))
