"""The SELECT list: its columns, with stars expanded, and their names."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlShape, SqlUnknownTable, SqlUnsupported
from whence.lang.sql.functions import AGGREGATES
from whence.lang.sql.nodes import inner
from whence.lang.sql.parse import span_of
from whence.lang.sql.scope import Scope


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the result: the expression that was written, or the variable of a column that a star stands for."""

    name: str
    node: exp.Expr
    variable: tree.Variable | None = None


def expand(select: exp.Select, scope: Scope) -> list[Column]:
    columns: list[Column] = []
    for item in select.expressions:
        if is_star(item):
            columns.extend(_star(item, scope, item.args.get("table")))
        else:
            node = item.this if isinstance(item, exp.Alias) else item
            columns.append(Column(_name(item, len(columns) + 1), node))
    return columns


def aliased(node: exp.Expr, columns: list[Column]) -> exp.Expr:
    """What a name of the SELECT list stands for; any other expression is itself."""
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        for column in columns:
            if column.variable is None and column.name.lower() == node.name.lower():
                return column.node
    return node


def is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _name(item: exp.Expr, position: int) -> str:
    if isinstance(item, exp.Alias):
        return item.alias
    node = inner(item)
    if isinstance(node, exp.Filter):
        node = node.this
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES:
        return node.name.lower()
    return f"col{position}"


def _star(node: exp.Expr, scope: Scope, table: exp.Expr | None) -> list[Column]:
    star = node if isinstance(node, exp.Star) else node.this
    if any(star.args.values()):
        scope.found.append(SqlUnsupported(span_of(node), feature="* EXCEPT or REPLACE", advice="list the columns"))
    if table is None:
        if not scope.items:
            scope.found.append(SqlShape(span_of(node), problem="* needs a FROM clause", advice="add one"))
        columns = [Column(name, node, variable) for item in scope.items for name, variable in item.visible()]
        first: list[Column] = []
        for name in scope.shared:
            first += [column for column in columns if column.name.lower() == name][:1]
        return first + [column for column in columns if column not in first]
    for item in scope.items:
        if item.alias.lower() == table.name.lower():
            pairs = zip(item.columns or (), item.variables, strict=False)
            return [Column(name, node, variable) for name, variable in pairs]
    advice = f"this query has {', '.join(item.alias for item in scope.items) or 'no tables'}"
    scope.found.append(SqlUnknownTable(span_of(table), name=table.name, advice=advice))
    return []
