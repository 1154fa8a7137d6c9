"""What column names mean inside one SELECT, and in the subqueries inside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import Diagnostic, SqlShape, SqlUnknownColumn, SqlUnknownTable, SqlUnsupported
from whence.lang.sql.functions import advice_on_moving
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Env, Names, Relation


@dataclass
class Item:
    """A table of the FROM clause; `columns` is None if the table is unknown, and then it has every column.

    `merged` are the columns that USING or NATURAL equates with those of a table before: they have no name of their own.
    `hidden` are the variables of hidden columns, and `keys` sets of variables that tell its rows apart.
    """

    alias: str
    columns: list[str] | None
    variables: list[tree.Variable]
    atom: tree.Atom | None
    merged: set[str] = field(default_factory=set)
    hidden: list[tree.Variable] = field(default_factory=list)
    keys: list[frozenset[str]] = field(default_factory=list)

    @property
    def all_variables(self) -> list[tree.Variable]:
        return [*self.variables, *self.hidden]

    def find(self, column: str) -> tree.Variable | None:
        if self.columns is None:
            return tree.Variable("unknown")
        for name, variable in zip(self.columns, self.variables, strict=True):
            if name.lower() == column.lower():
                return variable
        return None

    def visible(self) -> list[tuple[str, tree.Variable]]:
        pairs = zip(self.columns or (), self.variables, strict=False)
        return [(name, variable) for name, variable in pairs if name.lower() not in self.merged]


@dataclass
class Scope:
    """`relation` is what the SELECT defines. Once grouped, `grouped` maps the variables still usable to their keys.

    `nullables` are variables that may be null, `tested` those that could be but for a condition. `used` are the names of
    columns that the SELECT mentions, None if all.
    `is_bag` says whether the rows of its tables have to be told apart.
    """

    relation: Relation
    names: Names
    found: list[Diagnostic]
    env: Env
    parent: Scope | None = None
    items: list[Item] = field(default_factory=list)
    # The columns that USING and NATURAL share, which a star puts first.
    shared: list[str] = field(default_factory=list)
    grouped: dict[str, tree.Variable] | None = None
    nullables: set[str] = field(default_factory=set)
    tested: set[str] = field(default_factory=set)
    used: set[str] | None = None
    is_bag: bool = True

    def refine(self, sure: set[str]) -> None:
        """Takes note of variables that are not null where the body of the SELECT holds."""
        self.tested |= sure & self.nullables
        self.nullables -= sure

    def may_be_nil(self, name: str) -> bool:
        return name in self.nullables or (self.parent is not None and self.parent.may_be_nil(name))

    def is_nullable(self, term: tree.Term) -> bool:
        """Whether the term, as it stands, may be nil."""
        return isinstance(term, tree.Nil) or (isinstance(term, tree.Variable) and self.may_be_nil(term.name))

    def every_nullable(self) -> frozenset[str]:
        """The variables that may be null, those of the queries around this one included."""
        outside = self.parent.every_nullable() if self.parent is not None else frozenset()
        return outside | self.nullables

    def fresh(self, *wishes: str, nullable: bool = False, span: tree.Span = tree.NOWHERE) -> tree.Variable:
        variable = self.names.fresh(*wishes, span=span)
        if nullable:
            self.nullables.add(variable.name)
        return variable

    def peek(self, node: exp.Column) -> tree.Variable | None:
        """The variable of a column, if there is one; nothing is reported, and nothing counts as used."""
        table = node.args.get("table")
        scope: Scope | None = self
        while scope is not None:
            for item in scope.items:
                if table is not None and item.alias.lower() != table.name.lower():
                    continue
                if table is None and node.name.lower() in item.merged:
                    continue
                variable = item.find(node.name) if item.columns is not None else None
                if variable is not None:
                    grouped = scope.grouped
                    return variable if grouped is None else grouped.get(variable.name)
            scope = scope.parent
        return None

    def column(self, node: exp.Column) -> tree.Variable:
        """The variable of a column; what is wrong with it is reported, and then any variable will do."""
        table, name = node.args.get("table"), node.name
        variable = self._unqualified(node, name) if table is None else self._qualified(node, table, name)
        return variable if variable is not None else tree.Variable("unknown")

    def _qualified(self, node: exp.Column, table: exp.Expr, name: str) -> tree.Variable | None:
        scope: Scope | None = self
        crossed: list[Scope] = []
        while scope is not None:
            item = next((item for item in scope.items if item.alias.lower() == table.name.lower()), None)
            if item is None:
                crossed.append(scope)
                scope = scope.parent
                continue
            variable = item.find(name)
            if variable is None:
                self._unknown(node, f"is not in {item.alias}", item.columns or [])
                return None
            return scope.use(node, item, variable, crossed)
        self.found.append(SqlUnknownTable(span_of(table), name=table.name, advice=self._tables_here(table.name)))
        return None

    def _unqualified(self, node: exp.Column, name: str) -> tree.Variable | None:
        scope: Scope | None = self
        crossed: list[Scope] = []
        while scope is not None:
            matches = [
                (item, variable)
                for item in scope.items
                if item.columns is not None and name.lower() not in item.merged and (variable := item.find(name))
            ]
            if len(matches) > 1:
                self._ambiguous(node, name, [item for item, _ in matches])
                return None
            if matches:
                return scope.use(node, *matches[0], crossed)
            if any(item.columns is None for item in scope.items):
                return None
            crossed.append(scope)
            scope = scope.parent
        self._unknown(
            node, "is in no table of this query", [name for item in self.items for name in item.columns or ()]
        )
        return None

    def use(self, node: exp.Column, item: Item, variable: tree.Variable, crossed: list[Scope]) -> tree.Variable | None:
        usable = self.after_grouping(node, node.name, variable)
        if usable is None:
            return None
        for scope in crossed:
            scope.relation.outer[usable.name] = (item.atom,) if item.atom is not None else ()
        return tree.Variable(usable.name, span_of(node))

    def after_grouping(self, node: exp.Expr, name: str, variable: tree.Variable) -> tree.Variable | None:
        """The variable that stands for this one in each group, if the query is grouped."""
        if self.grouped is None:
            return variable
        if variable.name not in self.grouped:
            problem = f"column {name} is neither grouped nor aggregated"
            advice = "add it to GROUP BY, or take its min or max"
            self.found.append(SqlShape(span_of(node), problem=problem, advice=advice))
        return self.grouped.get(variable.name)

    def _ambiguous(self, node: exp.Column, name: str, items: list[Item]) -> None:
        choices = " or ".join(f"{item.alias}.{name}" for item in items)
        self.found.append(
            SqlUnknownColumn(
                span_of(node), name=name, problem=f"is ambiguous: it may be {choices}", advice=f"write {choices}"
            )
        )

    def _unknown(self, node: exp.Column, problem: str, columns: list[str]) -> None:
        if advice := advice_on_moving(node.name):
            self.found.append(SqlUnsupported(span_of(node), feature=node.name, advice=advice))
            return
        self.found.append(
            SqlUnknownColumn(span_of(node), name=node.name, problem=problem, advice=_advice(node, columns))
        )

    def _tables_here(self, name: str) -> str:
        for item in self.items:
            if item.atom is not None and item.atom.relation.lower() == name.lower():
                return f"it is called {item.alias} in this query"
        return f"this query has {', '.join(item.alias for item in self.items)}" if self.items else "add a FROM clause"


def _advice(node: exp.Column, columns: list[str]) -> str:
    close = get_close_matches(node.name, columns, n=1, cutoff=0.75)
    if close:
        return f"did you mean {close[0]}?"
    here = f"the columns here are {', '.join(dict.fromkeys(columns))}" if columns else "there are no columns here"
    if node.args.get("table") is not None:
        return here
    if node.this.args.get("quoted"):
        return f"text is written in single quotes: '{node.name}'; {here}"
    return f"if a constant is meant, write its value, such as 10 or 'ten'; {here}"
