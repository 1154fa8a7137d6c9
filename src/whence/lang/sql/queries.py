"""Queries as rules.

Every query defines a relation: a SELECT by one rule, a UNION by those of its branches, EXCEPT and INTERSECT by a rule
over two helpers. A subquery defines a helper whose first columns are the variables of the outer query that it uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlShape, SqlUnsupported
from whence.lang.sql.conditions import Conditions
from whence.lang.sql.formulas import counted
from whence.lang.sql.grouping import Grouping
from whence.lang.sql.nodes import Functions, has_aggregates
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Catalog, Draft, Env, Names, Relation, State, unique
from whence.lang.sql.scope import Scope
from whence.lang.sql.select_list import Column, expand, is_star
from whence.lang.sql.sources import Sources

_SETS = "relations are sets: their rows have no order"
_CLAUSES: Mapping[str, tuple[str, str]] = {
    "order": ("ORDER BY", _SETS),
    "limit": ("LIMIT", f"{_SETS}, so there is no first one"),
    "offset": ("OFFSET", f"{_SETS}, so there is no first one"),
    "fetch": ("FETCH", f"{_SETS}, so there is no first one"),
    "windows": ("WINDOW", "write an aggregate with GROUP BY, and join it"),
    "qualify": ("QUALIFY", "write an aggregate with GROUP BY, and join it"),
    "into": ("SELECT INTO", "write CREATE VIEW … AS SELECT"),
    "locks": ("FOR UPDATE", ""),
    "sample": ("TABLESAMPLE", ""),
    "by_name": ("UNION BY NAME", "name the columns in the same order in both branches"),
}
_SELECT_CLAUSES = frozenset("expressions from_ joins laterals where group having distinct with_".split())
_SET_CLAUSES = frozenset("this expression distinct with_".split())
_PARENTHESES = frozenset("this alias with_".split())


class Queries:
    def __init__(self, catalog: Catalog, functions: Functions) -> None:
        self.catalog = catalog
        self.functions = functions
        self.root = Env(catalog.globals)

    # -- relations that have a query

    def translate(self, relation: Relation) -> None:
        """Makes the rules of a view or of a query of WITH, unless that has been done."""
        if relation.state is not State.NEW or relation.query is None:
            return
        merged = _own_definition(relation.query, relation) if relation.owner is None else None
        if merged is not None:
            self.with_names(relation.query, relation, self.root, merged)
            return
        relation.state = State.OPEN
        self.define(relation.query, relation, relation.env or self.root, None)
        relation.state = State.DONE

    def columns(self, relation: Relation, node: exp.Expr) -> list[str] | None:
        """The columns of a table or view; translates it if only that can tell."""
        if relation.columns is None:
            self.translate(relation)
        if relation.columns is None and relation.state is State.OPEN:
            name = relation.name.rpartition(".")[2]
            self.catalog.found.append(
                SqlShape(
                    span_of(node),
                    problem=f"the columns of {name} depend on themselves",
                    advice=f"list them: {name}(a, b)",
                )
            )
        return relation.columns

    def subquery(self, node: exp.Expr, scope: Scope, purpose: str, *, existential: bool = False) -> Relation:
        relation = self.catalog.helper(scope.relation, purpose)
        relation.existential, relation.inlinable = existential, True
        self.define(node, relation, scope.env, scope)
        return relation

    def derived_table(self, node: exp.Expr, scope: Scope, env: Env) -> Relation:
        relation = self.catalog.helper(scope.relation, node.alias or "derived")
        self.define(node, relation, env, None)
        return relation

    # -- queries

    def define(self, query: exp.Expr, relation: Relation, env: Env, parent: Scope | None) -> None:
        """Adds the rules by which the query derives tuples of the relation."""
        env = self.with_names(query, relation, env)
        if isinstance(query, exp.Subquery):
            self._check_clauses(query, _PARENTHESES)
            self.define(query.this, relation, env, parent)
        elif isinstance(query, exp.Union):
            self._union(query, relation, env, parent)
        elif isinstance(query, exp.Except | exp.Intersect):
            self._two_sided(query, relation, env, parent)
        elif isinstance(query, exp.Select):
            self._select(query, relation, env, parent)
        else:
            advice = "write SELECT 1, 2 UNION SELECT 3, 4" if isinstance(query, exp.Values) else "write a SELECT"
            self._refuse(query, f"{query.key.upper()} as a query", advice)

    def with_names(self, query: exp.Expr, relation: Relation, env: Env, merged: str | None = None) -> Env:
        """Defines the queries of the WITH clause; `merged` is the one that is the relation itself."""
        with_ = query.args.get("with_")
        if with_ is None:
            return env
        names: dict[str, Relation] = {}
        inside = Env(names, env)
        defined: list[Relation] = []
        for cte in with_.expressions:
            name, listed = cte.alias, [part.name for part in cte.args["alias"].args.get("columns") or ()]
            if name.lower() in names:
                problem = f"WITH defines {name} twice"
                self.catalog.found.append(
                    SqlShape(span_of(cte.args["alias"]), problem=problem, advice="rename one of them")
                )
            made = relation if name.lower() == merged else self._named_helper(relation, name)
            if listed and not made.listed:
                made.columns, made.listed = listed, True
            # Without RECURSIVE a query sees only those before it, and not itself.
            made.query, made.env = cte.this, inside if with_.args.get("recursive") else Env(dict(names), env)
            names[name.lower()] = made
            defined.append(made)
        for made in defined:
            self.translate(made)
        return inside

    def _named_helper(self, relation: Relation, name: str) -> Relation:
        free = self.catalog.name_for(name)
        if name.lower() in self.catalog.globals or free != name:
            return self.catalog.helper(relation, name)
        return self.catalog.add(Relation(free, owner=relation.view, span=relation.span))

    def _union(self, query: exp.Expr, relation: Relation, env: Env, parent: Scope | None) -> None:
        branches: list[exp.Expr] = [query]
        # A long UNION leans to the left: unrolled, it needs no deep recursion.
        while isinstance(branches[0], exp.Union) and (branches[0] is query or branches[0].args.get("with_") is None):
            union = branches[0]
            self._check_clauses(union, _SET_CLAUSES)
            if not union.args.get("distinct"):
                self.catalog.bags.append((relation, span_of(union)))
            branches[:1] = [union.this, union.expression]
        for branch in branches:
            self.define(branch, relation, env, parent)

    def _two_sided(self, query: exp.Expr, relation: Relation, env: Env, parent: Scope | None) -> None:
        word = query.key.upper()
        self._check_clauses(query, _SET_CLAUSES)
        if not query.args.get("distinct"):
            self._refuse(query, f"{word} ALL", f"relations are sets: write {word}")
        left, right = (self.catalog.helper(relation, f"{word.lower()}_{side}") for side in ("left", "right"))
        left.inlinable = right.inlinable = True
        self.define(query.this, left, env, parent)
        self.define(query.expression, right, env, parent)
        if left.columns is None or right.columns is None:
            return
        if len(left.columns) != len(right.columns):
            self._different_widths(query, word, len(left.columns), len(right.columns))
            return
        relation.outer.update(left.outer)
        relation.outer.update(right.outer)
        names = parent.names.child() if parent is not None else Names()
        values = [names.fresh(column) for column in left.columns]
        second: tree.Formula = right.atom(values, span_of(query.expression))
        if isinstance(query, exp.Except):
            second = tree.Not(second, second.span)
        self.emit(relation, left.columns, values, [left.atom(values, span_of(query.this)), second], query)

    def _select(self, select: exp.Select, relation: Relation, env: Env, parent: Scope | None) -> None:
        self._check_clauses(select, _SELECT_CLAUSES)
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            self._refuse(distinct, "DISTINCT ON", "write an aggregate with GROUP BY, and join it")
        names = parent.names.child() if parent is not None else Names()
        scope = Scope(relation, names, self.catalog.found, env, parent)
        sources = Sources(scope, self)
        sources.read(select)
        conditions = Conditions(scope, self)
        body = sources.body
        where = select.args.get("where")
        if where is not None:
            body.append(conditions.condition(where.this))
        items = expand(select, scope)
        clauses = (select.args.get("group"), select.args.get("having"))
        if any(clause is not None for clause in clauses) or has_aggregates(select, self.functions):
            conditions, body = Grouping(self, scope, body, select, items).translate()
        if any(item.columns is None for item in scope.items) and any(map(is_star, select.expressions)):
            return
        values = [self._value(item, conditions, scope) for item in items]
        self.emit(relation, [item.name for item in items], values, [*body, *conditions.formulas], select)

    def _value(self, item: Column, conditions: Conditions, scope: Scope) -> tree.Term:
        if item.variable is None:
            return conditions.term(item.node)
        return scope.after_grouping(item.node, item.name, item.variable) or item.variable

    def emit(
        self,
        relation: Relation,
        names: list[str],
        values: Sequence[tree.Term],
        body: list[tree.Formula],
        node: exp.Expr,
    ) -> None:
        """Adds a rule; the first one names the columns of a relation that does not list them."""
        if relation.columns is None:
            relation.columns = []
            for name in names:
                relation.columns.append(unique(name, relation.columns))
        elif len(relation.columns) != len(values):
            if relation.listed:
                listed = counted(len(relation.columns), "column")
                problem = f"{relation.name} lists {listed}, but its query has {len(values)}"
                advice = "list as many columns as the query selects"
                self.catalog.found.append(SqlShape(span_of(node), problem=problem, advice=advice))
            else:
                self._different_widths(node, "UNION", len(relation.columns), len(values))
        self.catalog.drafts.append(Draft(relation, tuple(values), body, span_of(node)))

    # -- what is refused

    def _different_widths(self, node: exp.Expr, word: str, left: int, right: int) -> None:
        problem = f"the branches of {word} have {left} and {counted(right, 'column')}"
        self.catalog.found.append(SqlShape(span_of(node), problem=problem, advice="select as many columns in each"))

    def _refuse(self, node: exp.Expr, feature: str, advice: str) -> None:
        self.catalog.found.append(SqlUnsupported(span_of(node), feature=feature, advice=advice))

    def _check_clauses(self, node: exp.Expr, known: frozenset[str]) -> None:
        for clause, value in node.args.items():
            if value and clause not in known:
                feature, advice = _CLAUSES.get(clause, (clause.strip("_").upper(), ""))
                place = value[0] if isinstance(value, list) else value
                self._refuse(place if isinstance(place, exp.Expr) else node, feature, advice)


def _own_definition(query: exp.Expr, relation: Relation) -> str | None:
    """The name of the view, if its query is `WITH view AS (…) SELECT * FROM view`: then the two are one relation."""
    with_, from_ = query.args.get("with_"), query.args.get("from_")
    if with_ is None or from_ is None or not isinstance(query, exp.Select):
        return None
    name = relation.name.lower()
    parts = {clause for clause, value in query.args.items() if value}
    cte = next((each for each in with_.expressions if each.alias.lower() == name), None)
    if cte is None or parts != {"with_", "from_", "expressions"} or from_.this.name.lower() != name:
        return None
    listed = [part.name.lower() for part in cte.args["alias"].args.get("columns") or ()]
    if relation.listed and [column.lower() for column in relation.columns or ()] != listed:
        return None
    selected = [item.name.lower() for item in query.expressions if isinstance(item, exp.Column)]
    star = len(query.expressions) == 1 and isinstance(query.expressions[0], exp.Star)
    return name if star or (listed and selected == listed and len(selected) == len(query.expressions)) else None
