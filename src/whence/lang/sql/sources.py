"""The FROM clause: one atom per table, with a variable for each column, and the conditions of the joins."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Protocol

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlShape, SqlUnknownColumn, SqlUnknownTable, SqlUnsupported
from whence.lang.sql.conditions import Conditions
from whence.lang.sql.formulas import counted
from whence.lang.sql.nulls import is_not_nil
from whence.lang.sql.outer_joins import OuterJoin
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Env, Relation
from whence.lang.sql.scope import Item, Scope
from whence.lang.sql.terms import Subqueries

_FEATURES: Mapping[type[exp.Expr], str] = {
    exp.Unnest: "UNNEST",
}
_TABLE_FEATURES = {"sample": "TABLESAMPLE", "pivots": "PIVOT", "version": "a table at a point in time"}


class Queries(Subqueries, Protocol):
    def columns(self, relation: Relation, node: exp.Expr) -> list[str] | None: ...

    def derived_table(self, node: exp.Expr, scope: Scope, env: Env, *, lateral: bool = False) -> Relation: ...

    def as_source(self, relation: Relation, *, is_bag: bool) -> Relation: ...


class Sources:
    """Fills the scope with the tables of a SELECT; `body` are their atoms and the conditions that join them."""

    def __init__(self, scope: Scope, queries: Queries, *, is_bag: bool) -> None:
        self._scope = scope
        self._queries = queries
        self._is_bag = is_bag
        self.body: list[tree.Formula] = []

    def read(self, select: exp.Expr) -> None:
        from_ = select.args.get("from_")
        if from_ is not None:
            self._table(from_.this)
        for join in select.args.get("joins") or ():
            self._join(join)
        for lateral in select.args.get("laterals") or ():
            self._table(lateral)

    def _refuse(self, node: exp.Expr, feature: str, advice: str = "") -> None:
        self._scope.found.append(SqlUnsupported(span_of(node), feature=feature, advice=advice))

    def _table(self, node: exp.Expr) -> None:
        """Adds a table, a subquery, or a join in parentheses."""
        for arg, feature in _TABLE_FEATURES.items():
            if node.args.get(arg):
                self._refuse(node, feature)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            self._named(node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery) and not node.alias:
            self._table(node.this)
        elif isinstance(node, exp.Subquery | exp.Values):
            relation = self._queries.derived_table(node, self._scope, self._scope.env)
            self._add(node, relation, node.alias or relation.name)
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            relation = self._queries.derived_table(node.this, self._scope, self._scope.env, lateral=True)
            self._add(node, relation, node.alias or relation.name)
        else:
            kind = node.this if isinstance(node, exp.Table) and node.this is not None else node
            word = f"{kind.key.upper()} in FROM" if not isinstance(kind, exp.Func) else "a function in FROM"
            self._refuse(node, _FEATURES.get(type(kind), word), "write a table or a subquery")
            self._scope.items.append(Item(node.alias_or_name, None, [], None))
        for join in node.args.get("joins") or ():
            self._join(join)

    def _named(self, node: exp.Table) -> None:
        name = ".".join(part.name for part in node.parts)
        relation = self._scope.env.find(name)
        if relation is None:
            self._scope.found.append(SqlUnknownTable(span_of(node.this), name=name, advice=self._known_tables(name)))
            self._scope.items.append(Item(node.alias_or_name, None, [], None))
            return
        self._add(node, relation, node.alias_or_name)

    def _known_tables(self, name: str) -> str:
        known = self._scope.env.known()
        close = get_close_matches(name.lower(), known, n=1, cutoff=0.75)
        if close:
            found = self._scope.env.find(close[0])
            return f"did you mean {found.name if found is not None else close[0]}?"
        return "declare it with CREATE TABLE or CREATE VIEW; a WITH that refers to itself is WITH RECURSIVE"

    def _add(self, node: exp.Expr, relation: Relation, alias: str) -> None:
        columns = self._queries.columns(relation, node)
        renamed = [part.name for part in node.args["alias"].args.get("columns") or ()] if node.args.get("alias") else []
        if columns is not None and len(renamed) > len(columns):
            problem = f"{alias} has {counted(len(columns), 'column')}, but {len(renamed)} names are given to them"
            self._scope.found.append(SqlShape(span_of(node.args["alias"]), problem=problem, advice="leave some out"))
        if columns is not None:
            columns = [*renamed, *columns[len(renamed) :]][: len(columns)]
        if any(item.alias.lower() == alias.lower() for item in self._scope.items):
            problem = f"two tables of this query are called {alias}"
            advice = f"give one of them another name: {alias} AS other"
            self._scope.found.append(SqlShape(span_of(node), problem=problem, advice=advice))
        source = self._queries.as_source(relation, is_bag=self._is_bag)
        scope = self._scope
        span = span_of(node)
        variables = [scope.fresh(column, f"{alias}_{column}", span=span) for column in columns or ()]
        hidden = [scope.fresh(column, f"{alias}_{column}") for column in source.hidden]
        every = [*variables, *hidden]
        scope.nullables.update(
            each.name for each, nullable in zip(every, source.nullable or (), strict=False) if nullable
        )
        keys = [frozenset(every[at].name for at in key if at < len(every)) for key in source.keys]
        atom = source.atom(every, span)
        everything = frozenset(each.name for each in every)
        item = Item(alias, columns, variables, atom, hidden=hidden, keys=keys or [everything])
        scope.items.append(item)
        self.body.append(atom)

    # -- joins

    def _join(self, join: exp.Expr) -> None:
        side, kind, method = (str(join.args.get(arg) or "").upper() for arg in ("side", "kind", "method"))
        is_outer = side in ("LEFT", "RIGHT", "FULL") and kind in ("", "OUTER")
        if (not is_outer and (side or kind not in ("", "INNER", "CROSS"))) or method not in ("", "NATURAL"):
            words = " ".join(word for word in (method, side, kind, "JOIN") if word)
            self._refuse(join, words, "write EXISTS or NOT EXISTS" if kind in ("SEMI", "ANTI") else "")
        before, left = list(self._scope.items), self.body
        self.body = []
        self._table(join.this)
        added, right = self._scope.items[len(before) :], self.body
        self.body = []
        on, using = join.args.get("on"), join.args.get("using")
        if on is not None:
            self.body.append(Conditions(self._scope, self._queries).condition(on))
        shared: list[tuple[exp.Expr, str]] = []
        if method == "NATURAL":
            names = [name for item in added for name, _ in item.visible() if any(_has(each, name) for each in before)]
            shared = [(join.this, name) for name in names]
        elif using:
            shared = [(column, column.name) for column in using]
        pairs = self._share(shared, before, added)
        condition, self.body = self.body, []
        if not is_outer:
            self.body = [*left, *right, *condition]
            return
        for name, one, other in pairs:  # which side has the value that USING names
            if side == "RIGHT":
                one.merged.add(name)
                other.merged.discard(name)
        outer = OuterJoin(self._scope, self._queries, join, condition)
        if side == "FULL":
            self.body = [outer.full(left, before, right, added, pairs)]
        elif side == "LEFT":
            self.body = [outer.left(left, before, right, added)]
        else:
            self.body = [outer.left(right, added, left, before)]

    def _share(
        self, columns: list[tuple[exp.Expr, str]], before: list[Item], added: list[Item]
    ) -> list[tuple[str, Item, Item]]:
        """Equates the columns that both sides share; gives their names and whose they are."""
        pairs = [pair for node, name in columns if (pair := self._merge(node, name, before, added)) is not None]
        names = [name.lower() for _, name in columns]
        self._scope.shared = names + [name for name in self._scope.shared if name not in names]
        return pairs

    def _merge(self, node: exp.Expr, name: str, before: list[Item], added: list[Item]) -> tuple[str, Item, Item] | None:
        """Equates a column of the tables before the join with the one of the same name after it."""
        sides = []
        for items in (before, added):
            matches = [item for item in items if _has(item, name) or item.columns is None]
            if len(matches) != 1:
                problem = "is on one side of the join only" if not matches else "is ambiguous in this join"
                advice = "write the condition with ON, naming the tables"
                self._scope.found.append(SqlUnknownColumn(span_of(node), name=name, problem=problem, advice=advice))
                return None
            sides.append(matches[0])
        left, right = (side.find(name) for side in sides)
        if left is not None and right is not None:
            self.body.append(tree.Constraint("=", left, right, span_of(node)))
            if self._scope.may_be_nil(left.name) and self._scope.may_be_nil(right.name):
                self.body.append(is_not_nil(left))
        sides[1].merged.add(name.lower())
        return name.lower(), sides[0], sides[1]


def _has(item: Item, name: str) -> bool:
    return any(visible.lower() == name.lower() for visible, _ in item.visible())
