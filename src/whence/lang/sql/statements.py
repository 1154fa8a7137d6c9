"""Statements: tables, views, rows and bare queries."""

from __future__ import annotations

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import Redefined, SqlShape, SqlSyntax, SqlUnknownColumn, SqlUnknownTable, SqlUnsupported
from whence.lang.sql.conditions import Conditions
from whence.lang.sql.constraints import Constraints, telling_apart
from whence.lang.sql.formulas import counted
from whence.lang.sql.functions import TYPES, type_of
from whence.lang.sql.nodes import Functions
from whence.lang.sql.parse import Statement, span_of
from whence.lang.sql.queries import Queries
from whence.lang.sql.references import add_references
from whence.lang.sql.relations import Catalog, Draft, Names, Relation, State, unique
from whence.lang.sql.scope import Scope
from whence.lang.sql.tables import add_checks, add_copies
from whence.lang.tables import Table

_KINDS = (exp.MaterializedProperty, exp.TemporaryProperty)
_CREATE_PARTS = frozenset("this kind replace exists expression properties".split())
_INSERT_PARTS = frozenset("this expression".split())


class Statements:
    """Collects the relations first, so that views may refer to each other in any order, and then translates."""

    def __init__(self, catalog: Catalog, functions: Functions) -> None:
        self._catalog = catalog
        self._queries = Queries(catalog, functions)
        self._inserts: list[exp.Insert] = []

    def read(self, statement: Statement) -> None:
        node = statement.expression
        if isinstance(node, exp.Create) and node.args.get("kind") in ("TABLE", "VIEW"):
            self._create(node)
        elif isinstance(node, exp.Insert):
            self._inserts.append(node)
        elif isinstance(node, exp.Query | exp.Values) and not isinstance(node, exp.Table):
            self._query(node, statement)
        else:
            advice = "a program is made of CREATE TABLE, CREATE VIEW, INSERT and SELECT"
            self._catalog.found.append(SqlUnsupported(statement.span, feature=_word(node), advice=advice))

    def translate(self) -> None:
        tables = [relation for relation in self._catalog.globals.values() if relation.table is not None]
        for table in tables:
            if not table.keys and not self._catalog.as_sets:
                add_copies(table, self._catalog)
        for relation in list(self._catalog.globals.values()):
            self._queries.translate(relation)
        for table in tables:
            add_checks(table, self._queries)
            add_references(table, self._catalog)
        for insert in self._inserts:
            self._insert(insert)

    def _refuse(self, node: exp.Expr, feature: str, advice: str = "") -> None:
        self._catalog.found.append(SqlUnsupported(span_of(node), feature=feature, advice=advice))

    def _add(self, name: str, relation: Relation, what: str, *, replaces: bool = False) -> None:
        known = self._catalog.globals.get(name.lower())
        if known is not None and not replaces:
            note = [(known.span, "the other one is here")]
            self._catalog.found.append(Redefined(relation.span, what=what, name=name, related=note))
            return
        if known is not None:
            self._catalog.relations.remove(known)
        relation.name = self._catalog.name_for(name)
        self._catalog.globals[name.lower()] = self._catalog.add(relation)

    def _target(self, node: exp.Expr) -> tuple[exp.Schema | None, exp.Table | None]:
        """The list of columns, if there is one, and the table that a statement makes or fills."""
        schema = node.this if isinstance(node.this, exp.Schema) else None
        table = schema.this if schema is not None else node.this
        if isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier):
            return schema, table
        problem = f"{node.key.upper()} names no table"
        self._catalog.found.append(SqlSyntax(span_of(node), problem=problem, advice="write its name"))
        return schema, None

    # -- CREATE

    def _create(self, node: exp.Create) -> None:
        schema, table = self._target(node)
        if table is None:
            return
        name = _full_name(table)
        for part, value in node.args.items():
            if value and part not in _CREATE_PARTS:
                self._refuse(node, part.strip("_").upper())
        properties = node.args.get("properties")
        for each in properties.expressions if properties is not None else ():
            if not isinstance(each, _KINDS):
                self._refuse(each, f"the option {each.sql()}")
        if node.args.get("exists") and name.lower() in self._catalog.globals:
            return
        parts = schema.expressions if schema is not None else []
        if node.args["kind"] == "TABLE":
            self._create_table(node, name, table, parts)
        else:
            self._create_view(node, name, table, parts)

    def _create_table(self, node: exp.Create, name: str, table: exp.Expr, parts: list[exp.Expr]) -> None:
        if node.args.get("expression") is not None:
            self._refuse(node.this, "CREATE TABLE … AS", "write CREATE VIEW … AS")
            return
        columns: list[str] = []
        types: list[str] = []
        constraints = Constraints(self._catalog.found)
        for part in parts:
            if not isinstance(part, exp.ColumnDef | exp.Identifier):
                constraints.add(part)
                continue
            if part.name.lower() in (column.lower() for column in columns):
                self._catalog.found.append(Redefined(span_of(part), what="column", name=part.name))
            columns.append(part.name)
            types.append(self._type(part))
            for constraint in part.args.get("constraints") or ():
                constraints.add(constraint.args["kind"], part.name)
        if not columns:
            problem = f"table {name} has no columns"
            self._catalog.found.append(
                SqlShape(span_of(table), problem=problem, advice="list them: (a TEXT, b BIGINT)")
            )
        made = Relation(name, columns, listed=True, types=types, state=State.DONE, span=span_of(table))
        keys = constraints.keys(columns)
        made.nullable = constraints.nullable(columns)
        made.keys, made.table = telling_apart(keys, made.nullable), Table(tuple(keys))
        made.checks, made.references = constraints.checks, constraints.references
        self._add(name, made, "table", replaces=bool(node.args.get("replace")))

    def _type(self, column: exp.Expr) -> str:
        kind = column.args.get("kind")
        if kind is None:
            problem = f"column {column.name} has no type"
            self._catalog.found.append(SqlShape(span_of(column), problem=problem, advice=TYPES))
            return "symbol"
        found = type_of(kind)
        if found is None:
            self._refuse(column, f"the type {kind.sql()}", TYPES)
        return found or "symbol"

    def _create_view(self, node: exp.Create, name: str, table: exp.Expr, parts: list[exp.Expr]) -> None:
        query = node.args.get("expression")
        if query is None:
            end = span_of(node)
            self._catalog.found.append(SqlSyntax(end, problem=f"view {name} has no query", advice="write AS SELECT …"))
            return
        made = Relation(name, query=query, env=self._queries.root, span=span_of(table))
        if parts:
            made.columns, made.listed = [part.name for part in parts], True
        self._add(name, made, "view", replaces=bool(node.args.get("replace")))

    def _query(self, node: exp.Expr, statement: Statement) -> None:
        name = statement.named or unique("result", self._catalog.globals)
        made = Relation(name, query=node, env=self._queries.root, span=statement.span)
        self._add(name, made, "view")

    # -- INSERT

    def _insert(self, node: exp.Insert) -> None:
        schema, table = self._target(node)
        if table is None:
            return
        for part, value in node.args.items():
            if value and part not in _INSERT_PARTS:
                self._refuse(node, f"INSERT with {part.strip('_').upper()}")
        name = _full_name(table)
        relation = self._catalog.globals.get(name.lower())
        if relation is None:
            self._catalog.found.append(SqlUnknownTable(span_of(table), name=name, advice="write CREATE TABLE first"))
            return
        if relation.types is None or relation.columns is None:
            problem = f"{name} is a view: its rows follow from its query"
            self._catalog.found.append(SqlShape(span_of(table), problem=problem, advice="insert into a table"))
            return
        values = node.args.get("expression")
        if not isinstance(values, exp.Values):
            self._refuse(node, "INSERT of a query", "write CREATE VIEW … AS")
            return
        order = self._order(relation, schema.expressions if schema is not None else [])
        for row in values.expressions if order is not None else ():
            self._fact(relation, row, order or [])

    def _order(self, relation: Relation, listed: list[exp.Expr]) -> list[int] | None:
        """For each column of the table, the position of its value in a row, or -1 if it is null."""
        columns = [column.lower() for column in relation.columns or ()]
        if not listed:
            return list(range(len(columns)))
        names = [part.name.lower() for part in listed]
        for part in listed:
            if part.name.lower() not in columns:
                advice = f"it has {', '.join(relation.columns or ())}"
                problem = f"is not in {relation.name}"
                self._catalog.found.append(
                    SqlUnknownColumn(span_of(part), name=part.name, problem=problem, advice=advice)
                )
        nullable = relation.nullable or [False] * len(columns)
        missing = [
            column
            for column, null in zip(relation.columns or (), nullable, strict=True)
            if column.lower() not in names and not null
        ]
        if missing:
            problem = f"the rows have no value for {', '.join(missing)}"
            advice = "these columns are NOT NULL: give each a value"
            self._catalog.found.append(SqlShape(span_of(listed[0]), problem=problem, advice=advice))
        elif len(names) != len(set(names)):
            problem = "a column is listed twice"
            self._catalog.found.append(SqlShape(span_of(listed[0]), problem=problem, advice="list each column once"))
        elif set(names) <= set(columns):
            return [names.index(column) if column in names else -1 for column in columns]
        return None

    def _fact(self, relation: Relation, row: exp.Expr, order: list[int]) -> None:
        nodes = row.expressions if isinstance(row, exp.Tuple) else [row]
        given = sum(at >= 0 for at in order)
        if len(nodes) != given:
            problem = f"the row has {counted(len(nodes), 'value')} for {counted(given, 'column')}"
            self._catalog.found.append(SqlShape(span_of(row), problem=problem, advice="give each column one value"))
            return
        scope = Scope(relation, Names(), self._catalog.found, self._queries.root)
        conditions = Conditions(scope, self._queries)
        values = [conditions.value(node) for node in nodes]
        facts = tuple(values[at] if at >= 0 else tree.Nil(span_of(row)) for at in order)
        for at, (fact, null) in enumerate(zip(facts, relation.nullable or (), strict=False)):
            if isinstance(fact, tree.Nil) and not null:
                problem = f"column {(relation.columns or ())[at]} of {relation.name} is NOT NULL"
                self._catalog.found.append(SqlShape(span_of(row), problem=problem, advice="give it a value"))
        self._catalog.drafts.append(Draft(relation, facts, conditions.formulas, span_of(row)))


def _full_name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def _word(node: exp.Expr) -> str:
    """What to call a statement: its first words."""
    if isinstance(node, exp.Command):
        return str(node.this).upper()
    kind = node.args.get("kind")
    if isinstance(node, exp.Create | exp.Drop | exp.Alter) and isinstance(kind, str):
        return f"{node.key.upper()} {kind}"
    return node.key.upper() if isinstance(node, exp.DML | exp.DDL | exp.Set | exp.Use) else "this statement"
