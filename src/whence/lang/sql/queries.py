"""Queries as rules.

Every query defines a relation: a SELECT by one rule, a UNION by those of its branches, EXCEPT and INTERSECT by a rule
over two helpers. A subquery defines a helper whose first columns are the variables of the outer query that it uses.

A query whose rows need not be told apart (`is_bag=False`: below DISTINCT, in EXISTS and IN) defines a set. Otherwise the
relation gets hidden columns as far as its rows could be equal in the others (`identity`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlShape, SqlUnsupported
from whence.lang.sql.conditions import Conditions
from whence.lang.sql.formulas import conjuncts, counted
from whence.lang.sql.grouping import Grouping, counts_rows
from whence.lang.sql.identity import hidden_variables, keys_of
from whence.lang.sql.limits import has_windows, limits_of, with_limit_outside
from whence.lang.sql.logic import Want
from whence.lang.sql.nodes import Functions, has_aggregates, inner
from whence.lang.sql.nulls import is_not_nil, never_nil
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Assumed, Catalog, Draft, Env, Names, Relation, State, legal, unique
from whence.lang.sql.scope import Item, Scope
from whence.lang.sql.select_list import Column, aliased, expand, is_star
from whence.lang.sql.sources import Sources
from whence.lang.sql.tables import all_copies
from whence.lang.sql.terms import NOTHING
from whence.lang.sql.windows import Rows, Windows, windows_in

_CLAUSES: Mapping[str, tuple[str, str]] = {
    "into": ("SELECT INTO", "write CREATE VIEW … AS SELECT"),
    "locks": ("FOR UPDATE", ""),
    "sample": ("TABLESAMPLE", ""),
    "by_name": ("UNION BY NAME", "name the columns in the same order in both branches"),
}
_SELECT_CLAUSES = frozenset(
    "expressions from_ joins laterals where group having distinct with_ order limit offset windows qualify".split()
)
_SET_CLAUSES = frozenset("this expression distinct with_ order".split())
_PARENTHESES = frozenset("this alias with_ order".split())


class Queries:
    def __init__(self, catalog: Catalog, functions: Functions) -> None:
        self.catalog = catalog
        self.functions = functions
        self.root = Env(catalog.globals)
        # The relations of subqueries, which are looked at several times where nulls are to be told from values.
        self._made: dict[tuple[int, str], Relation] = {}

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
        relation.tagged = self.catalog.assumed.get(relation.name, Assumed()).is_bag
        is_bag = not (self.catalog.as_sets and relation.owner is None)
        self.define(relation.query, relation, relation.env or self.root, None, is_bag=is_bag)
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
        made = self._made.get((id(node), purpose))
        if made is not None:
            return made
        relation = self.catalog.helper(scope.relation, purpose)
        relation.existential, relation.inlinable = existential, True
        self._made[id(node), purpose] = relation
        self.define(node, relation, scope.env, scope, is_bag=False)
        return relation

    def scalar(self, node: exp.Expr, scope: Scope) -> Relation:
        """The relation of a subquery that is used as a value: it has one column, and no row where that is null."""
        made = self._made.get((id(node), "value"))
        if made is not None:
            return made
        relation = self.catalog.helper(scope.relation, "value")
        relation.inlinable, relation.partial = True, True
        self._made[id(node), "value"] = relation
        before = len(self.catalog.found)
        self.define(node, relation, scope.env, scope, is_bag=False)
        if relation.columns is not None and len(relation.columns) != 1:
            problem = f"a subquery used as a value has 1 column, not {len(relation.columns)}"
            self.catalog.found.append(SqlShape(span_of(node), problem=problem, advice="select one column"))
        elif not relation.single and len(self.catalog.found) == before:
            self._refuse(
                node,
                "a subquery that may have several rows as a value",
                "aggregate it, add LIMIT 1, or compare a PRIMARY KEY of its table",
            )
        return relation

    def any_row(self, query: exp.Expr, scope: Scope, compared: exp.Expr, want: Want, node: exp.Expr) -> Relation:
        """Whether there is a row of the query, `quantified(value1, …)`, for which a comparison is what is wanted."""
        rows = self.subquery(query, scope, "among")
        relation = self.catalog.helper(scope.relation, "exists")
        relation.existential, relation.inlinable = True, True
        inside = Scope(relation, scope.names.child(), self.catalog.found, scope.env, scope)
        columns = [f"value{at + 1}" for at in range(len(rows.columns or ()))]
        nullable = [*(rows.nullable or ()), *(False for _ in columns)]
        values = [inside.fresh(name, nullable=null) for name, null in zip(columns, nullable, strict=False)]
        atom = rows.atom(values, span_of(node))
        relation.outer.update(rows.outer)
        inside.items.append(Item("quantified", columns, values, atom))
        condition = Conditions(inside, self).condition(compared, want)
        self.catalog.drafts.append(Draft(relation, (), [atom, condition], span_of(node), inside.every_nullable()))
        return relation

    def derived_table(self, node: exp.Expr, scope: Scope, env: Env, *, lateral: bool = False) -> Relation:
        relation = (
            self.catalog.named(scope.relation, node.alias)
            if node.alias
            else self.catalog.helper(scope.relation, "derived")
        )
        self.define(node, relation, env, scope if lateral else None, is_bag=scope.is_bag)
        return relation

    def as_source(self, relation: Relation, *, is_bag: bool) -> Relation:
        """What stands for a table, view or subquery in a FROM clause; what is not known yet of it is assumed."""
        if relation.table is not None:
            return relation if relation.table.is_set or not is_bag else all_copies(relation, self.catalog)
        # A query that is being translated and does not list its columns cannot be referred to meanwhile.
        if not any(each.state is State.OPEN and each.columns is None for each in self.catalog.relations):
            self.translate(relation)
        if relation.state is State.OPEN or (relation.state is State.NEW and relation.query is not None):
            self.catalog.recursive.add(relation.name)
            assumed = self.catalog.assumed.get(relation.name, Assumed())
            width = len(relation.columns or ())
            nullable = (list(assumed.nullable) or [False] * width)[:width]
            stand_in = replace(relation, nullable=[*nullable, False], keys=[])
            stand_in.hidden = ["copy"] if assumed.is_bag else []
            return stand_in
        return relation

    # -- queries

    def define(
        self, query: exp.Expr, relation: Relation, env: Env, parent: Scope | None, *, is_bag: bool = True
    ) -> None:
        """Adds the rules by which the query derives tuples of the relation."""
        env = self.with_names(query, relation, env)
        query = with_limit_outside(query)
        if isinstance(query, exp.Subquery):
            self._check_clauses(query, _PARENTHESES)
            self.define(query.this, relation, env, parent, is_bag=is_bag)
        elif isinstance(query, exp.Union):
            self._union(query, relation, env, parent, is_bag=is_bag)
        elif isinstance(query, exp.Except | exp.Intersect):
            self._two_sided(query, relation, env, parent, is_bag=is_bag)
        elif isinstance(query, exp.Select):
            self._select(query, relation, env, parent, is_bag=is_bag)
        elif isinstance(query, exp.Values):
            self._values(query, relation, env, parent, is_bag=is_bag)
        else:
            self._refuse(query, f"{query.key.upper()} as a query", "write a SELECT")

    def with_names(self, query: exp.Expr, relation: Relation, env: Env, merged: str | None = None) -> Env:
        """Defines the queries of the WITH clause; `merged` is the one that is the relation itself."""
        with_ = query.args.get("with_")
        if with_ is None:
            return env
        names: dict[str, Relation] = {}
        inside = Env(names, env)
        defined: list[Relation] = []
        if search := with_.args.get("search") or with_.args.get("cycle"):
            word = "CYCLE" if str(search.args.get("kind")) == "CYCLE" else "SEARCH"
            self._refuse(search.this, word, "UNION ends on cycles; a column of its own can tell the depth or the way")
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
            return self.catalog.named(relation, name)
        return self.catalog.add(Relation(free, owner=relation.view, span=relation.span))

    def _union(self, query: exp.Expr, relation: Relation, env: Env, parent: Scope | None, *, is_bag: bool) -> None:
        is_bag = is_bag and not query.args.get("distinct")
        branches: list[exp.Expr] = [query]
        # A long UNION leans to the left: unrolled, it needs no deep recursion. What is distinct makes all below it so.
        while isinstance(branches[0], exp.Union) and (branches[0] is query or branches[0].args.get("with_") is None):
            union = branches[0]
            if is_bag and union.args.get("distinct"):
                break
            self._check_clauses(union, _SET_CLAUSES)
            branches[:1] = [union.this, union.expression]
        relation.tagged = relation.tagged or is_bag
        for branch in branches:
            if is_bag and not isinstance(_bare(branch), exp.Select | exp.Values):
                self._restate(branch, relation, env, parent)
            else:
                self.define(branch, relation, env, parent, is_bag=is_bag)

    def _restate(self, query: exp.Expr, relation: Relation, env: Env, parent: Scope | None) -> None:
        """Adds the rows of a query that has a relation of its own: as a branch of UNION ALL."""
        own = self.catalog.helper(relation, "branch")
        self.define(query, own, env, parent)
        if own.columns is None:
            return
        relation.outer.update(own.outer)
        scope = self._scope(relation, env, parent)
        values = [scope.fresh(column) for column in own.columns]
        hidden = [scope.fresh(column) for column in own.hidden]
        nullable = zip([*values, *hidden], own.nullable or (), strict=False)
        scope.nullables.update(each.name for each, null in nullable if null)
        atom = own.atom([*values, *hidden], span_of(query))
        self.emit(relation, own.columns, values, [atom], query, scope=scope, hidden=hidden)

    def _values(self, query: exp.Expr, relation: Relation, env: Env, parent: Scope | None, *, is_bag: bool) -> None:
        alias = query.args.get("alias")
        listed = [part.name for part in alias.args.get("columns") or ()] if alias is not None else []
        scope = self._scope(relation, env, parent)
        several = is_bag and len(query.expressions) > 1
        for at, row in enumerate(query.expressions):
            conditions = Conditions(scope, self)
            values = [conditions.value(part) for part in (row.expressions if isinstance(row, exp.Tuple) else [row])]
            names = listed[: len(values)] + [f"col{place + 1}" for place in range(len(listed), len(values))]
            hidden: list[tree.Term] = [tree.Number(at + 1)] if several else []
            self.emit(relation, names, values, conditions.formulas, row, scope=scope, hidden=hidden)

    def _two_sided(self, query: exp.Expr, relation: Relation, env: Env, parent: Scope | None, *, is_bag: bool) -> None:
        word = query.key.upper()
        self._check_clauses(query, _SET_CLAUSES)
        counts = is_bag and not query.args.get("distinct")
        left, right = (self.catalog.helper(relation, f"{word.lower()}_{side}") for side in ("left", "right"))
        left.inlinable = right.inlinable = True
        self.define(query.this, left, env, parent, is_bag=counts)
        self.define(query.expression, right, env, parent, is_bag=counts)
        if left.columns is None or right.columns is None:
            return
        if len(left.columns) != len(right.columns):
            self._different_widths(query, word, len(left.columns), len(right.columns))
            return
        self.catalog.paired.append((left, right))
        relation.outer.update(left.outer)
        relation.outer.update(right.outer)
        scope = self._scope(relation, env, parent)
        values = [scope.fresh(column) for column in left.columns]
        nullable = zip(values, left.nullable or (), strict=False)
        scope.nullables.update(value.name for value, null in nullable if null)
        hidden: list[tree.Term] = []
        if counts:
            body = self._copies(query, scope, left, right, values)
            hidden = [scope.fresh("copy")]
            body.append(tree.Constraint("=", hidden[0], tree.Call("range", (tree.Number(0), tree.Variable("copies")))))
        else:
            second: tree.Formula = right.atom(values, span_of(query.expression))
            if isinstance(query, exp.Except):
                second = tree.Not(second, second.span)
            body = [left.atom(values, span_of(query.this)), second]
        self.emit(relation, left.columns, values, body, query, scope=scope, hidden=hidden)

    def _copies(
        self, query: exp.Expr, scope: Scope, left: Relation, right: Relation, values: list[tree.Variable]
    ) -> list[tree.Formula]:
        """How many `copies` of a row there are in EXCEPT ALL and INTERSECT ALL, at least one."""
        counts: list[tree.Variable] = []
        body: list[tree.Formula] = []
        for side, name in ((left, "left_copies"), (right, "right_copies")):
            hidden = [scope.fresh(f"_{column}") for column in side.hidden]
            atom = side.atom([*values, *hidden], span_of(query))
            counts.append(scope.fresh(name))
            if side is left:
                body.append(side.atom([*values, *(tree.Wildcard() for _ in hidden)], span_of(query)))
            body.append(tree.Constraint("=", counts[-1], tree.Aggregate("count", None, atom), span_of(query)))
        scope.names.fresh("copies")
        copies = tree.Variable("copies")
        both = tuple(counts)
        made = tree.Call("-" if isinstance(query, exp.Except) else "min", both)
        return [*body, tree.Constraint("=", copies, made), tree.Constraint(">", copies, tree.Number(0))]

    def _scope(self, relation: Relation, env: Env, parent: Scope | None, *, is_bag: bool = True) -> Scope:
        names = parent.names.child() if parent is not None else Names()
        return Scope(relation, names, self.catalog.found, env, parent, is_bag=is_bag)

    def _select(self, select: exp.Select, relation: Relation, env: Env, parent: Scope | None, *, is_bag: bool) -> None:
        self._check_clauses(select, _SELECT_CLAUSES)
        distinct = select.args.get("distinct")
        is_distinct = distinct is not None and distinct.args.get("on") is None
        is_bag = is_bag and not is_distinct
        clauses = (select.args.get("group"), select.args.get("having"))
        is_grouped = any(clause is not None for clause in clauses) or has_aggregates(select, self.functions)
        counts = counts_rows(select, self.functions) if is_grouped else is_bag
        counts = counts or has_windows(select)
        scope = self._scope(relation, env, parent, is_bag=counts)
        scope.used = _mentioned(select)
        sources = Sources(scope, self, is_bag=counts)
        sources.read(select)
        conditions = Conditions(scope, self)
        body = sources.body
        where = select.args.get("where")
        if where is not None:
            body.append(conditions.condition(where.this))
        body = [part for formula in body for part in conjuncts(formula)]
        scope.refine(never_nil(body))
        items = expand(select, scope)
        identity: list[Item] = scope.items
        if is_grouped:
            grouping = Grouping(self, scope, body, select, items)
            conditions, body = grouping.translate()
            identity = [grouping.identity()]
        if any(item.columns is None for item in scope.items) and any(map(is_star, select.expressions)):
            return
        if has_windows(select):
            self._windows(Rows(select, scope, body, conditions, identity, items))
        take = conditions.term if relation.partial else conditions.value
        values = [self._value(item, take, scope) for item in items]
        body = [*body, *conditions.formulas]
        if relation.partial:
            body += [is_not_nil(value) for value in values if scope.is_nullable(value)]
            fixed = [tree.Variable(name) for name in relation.outer]
            relation.single = not hidden_variables(fixed, body, identity)
        hidden: Sequence[tree.Term] = hidden_variables(values, body, identity) if is_bag else ()
        self.emit(
            relation, [item.name for item in items], values, body, select, scope=scope, hidden=hidden, identity=identity
        )

    def _windows(self, rows: Rows) -> None:
        """Adds what binds the window functions, and QUALIFY, DISTINCT ON and LIMIT, to the formulas of the SELECT list."""
        select, conditions, items = rows.select, rows.conditions, rows.items
        windows = Windows(self.catalog, self.functions, rows)
        qualify, distinct, order = (select.args.get(clause) for clause in ("qualify", "distinct", "order"))
        roots = [item.node for item in items if item.variable is None]
        for node in windows_in([*roots, *(part for part in (qualify, order) if part is not None)]):
            conditions.known.append((node, windows.add(node) or NOTHING))
        if qualify is not None:
            condition = qualify.this.transform(lambda node: aliased(node, items))
            conditions.formulas.append(conditions.condition(condition))
        ordered = order.expressions if order is not None else []
        if distinct is not None and distinct.args.get("on") is not None:
            on = distinct.args["on"]
            keys = [inner(key) for key in (on.expressions if isinstance(on, exp.Tuple) else [on])]
            number = Windows(self.catalog, self.functions, rows).number(distinct, keys, ordered, ties=False)
            conditions.formulas.append(tree.Constraint("=", number, tree.Number(1), span_of(distinct)))
        limit = limits_of(select, self.catalog.found)
        if limit is not None:
            number = Windows(self.catalog, self.functions, rows).number(select, [], ordered, ties=limit.with_ties)
            conditions.formulas += limit.formulas(number, span_of(select))

    def _value(self, item: Column, take: Callable[[exp.Expr], tree.Term], scope: Scope) -> tree.Term:
        if item.variable is None:
            return take(item.node)
        return scope.after_grouping(item.node, item.name, item.variable) or item.variable

    def emit(
        self,
        relation: Relation,
        names: list[str],
        values: Sequence[tree.Term],
        body: list[tree.Formula],
        node: exp.Expr,
        *,
        scope: Scope,
        hidden: Sequence[tree.Term] = (),
        identity: Sequence[Item] = (),
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
            return
        first = not any(draft.relation is relation for draft in self.catalog.drafts)
        if relation.tagged:
            tag = sum(draft.relation is relation for draft in self.catalog.drafts) + 1
            hidden = [tree.Branch(f"{legal(relation.name)}_{tag}", tuple(hidden), span_of(node))]
            relation.hidden = ["copy"]
        elif first:
            for each in hidden:
                name = each.name if isinstance(each, tree.Variable) else "row"
                relation.hidden.append(unique(name, [*relation.columns, *relation.hidden]))
            relation.keys = keys_of([*values, *hidden], body, identity) if identity else []
        if not first:
            relation.keys = []
        nullable = [scope.is_nullable(value) for value in (*values, *hidden)]
        before = relation.nullable or [False] * len(nullable)
        relation.nullable = [one or other for one, other in zip(before, nullable, strict=True)]
        self.catalog.drafts.append(
            Draft(relation, (*values, *hidden), body, span_of(node), scope.every_nullable(), frozenset(scope.tested))
        )

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


def _bare(query: exp.Expr) -> exp.Expr:
    """The query without the parentheses around it, unless they have clauses of their own."""
    while isinstance(query, exp.Subquery) and query.args.get("with_") is None:
        query = query.this
    return query


def _mentioned(select: exp.Select) -> set[str] | None:
    """The names of all columns that the query mentions, or None if a star stands for some."""
    if any(map(is_star, select.expressions)) or any(part.args.get("method") for part in select.args.get("joins") or ()):
        return None
    names = {column.name.lower() for column in select.find_all(exp.Column)}
    if any(True for _ in select.find_all(exp.Star)) and any(
        isinstance(star.parent, exp.Select | exp.Column) for star in select.find_all(exp.Star)
    ):
        return None
    for join in select.find_all(exp.Join):
        names.update(column.name.lower() for column in join.args.get("using") or ())
    return names


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
