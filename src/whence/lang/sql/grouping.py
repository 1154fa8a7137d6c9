"""Grouped queries.

SQL aggregates over rows, and Whence over distinct assignments to the variables of a body: so the body of an aggregate
binds what tells the rows of the FROM clause apart. Where the rows are those of one table, the aggregate's body is a
copy of the query's; otherwise a helper holds them. `count(DISTINCT x)` has a helper of its own with the keys and x.

An aggregate other than `count` is null for a group without values. Where that can be, it has a helper with a rule for
groups that have one, and a rule for those that do not.
"""

from __future__ import annotations

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlShape, SqlUnsupported
from whence.lang.sql.aggregates import Arguments, Call, arguments_of
from whence.lang.sql.conditions import Conditions
from whence.lang.sql.formulas import conjunction, conjuncts, equation, rename, variables
from whence.lang.sql.functions import AGGREGATES, TRUTHS
from whence.lang.sql.identity import hidden_variables
from whence.lang.sql.nodes import Functions, aggregates_in, inner, is_predicate
from whence.lang.sql.nulls import is_not_nil
from whence.lang.sql.over import Joined, Order
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Draft, Listing, Relation
from whence.lang.sql.scope import Item, Scope
from whence.lang.sql.select_list import Column
from whence.lang.sql.terms import Subqueries

# These give the same for a set of values as for a bag of them.
_SET_LIKE = frozenset({"min", "max"})
_NEVER = tree.Constraint("<", tree.Number(0), tree.Number(0))


def counts_rows(select: exp.Expr, functions: Functions) -> bool:
    """Whether it matters how often equal rows are there, to one of the aggregates."""
    having = select.args.get("having")
    roots = [*select.expressions, *([having] if having is not None else [])]
    nodes = [node for root in roots for node in aggregates_in(root, functions)]
    return any(not _is_set_like(node.this if isinstance(node, exp.Filter) else node) for node in nodes)


def _is_set_like(call: exp.Expr) -> bool:
    return AGGREGATES[call.name.upper()] in _SET_LIKE or arguments_of(call).distinct


class Grouping:
    def __init__(
        self, queries: Subqueries, scope: Scope, body: list[tree.Formula], select: exp.Select, items: list[Column]
    ) -> None:
        self._queries = queries
        self._scope = scope
        self._body = [part for formula in body for part in conjuncts(formula)]
        self._select = select
        self._items = items
        self._keys: list[tuple[exp.Expr, tree.Term]] = []
        self._final: list[tree.Term] = []
        self._originals_free = True
        self._broken = False

    def identity(self) -> Item:
        """The groups, as if they were the rows of a table."""
        keys = [key for key in self._final if isinstance(key, tree.Variable)]
        return Item("", [], keys, None, keys=[frozenset(key.name for key in keys)])

    def translate(self) -> tuple[Conditions, list[tree.Formula]]:
        """What translates the SELECT list, and the body of the rule so far: groups, aggregates and HAVING."""
        before = Conditions(self._scope, self._queries)
        group, having = self._select.args.get("group"), self._having()
        key_nodes = self._key_nodes(group) if group is not None else []
        self._keys = [(inner(node), before.value(node)) for node in key_nodes]
        calls = [self._call(node) for node in self._aggregate_nodes(having)]
        rows = self._rows(before.formulas, calls)
        body, keys = self._group_body(rows) if group is not None else ([], [])
        self._final = keys
        known: list[tuple[exp.Expr, tree.Term]] = [
            (node, key) for (node, _), key in zip(self._keys, keys, strict=True) if not isinstance(node, exp.Column)
        ]
        for call in calls:
            if call.op == "collect":
                result, formulas = self._joined(call, rows, keys, grouped=group is not None)
                body += formulas
            elif call.may_be_empty:
                result, formulas = self._maybe_empty(call, rows, keys, grouped=group is not None)
                body += formulas
            else:
                result, aggregate = self._aggregate(call, rows, keys)
                body.append(tree.Constraint("=", result, aggregate, span_of(call.node)))
            known.append((call.node, result))
        self._scope.grouped = None if self._broken else self._usable(keys)
        after = Conditions(self._scope, self._queries, known)
        if having is not None:
            body.append(after.condition(having))
        return after, body

    def _having(self) -> exp.Expr | None:
        """The condition on groups, with what aliases of the SELECT list stand for."""
        having = self._select.args.get("having")
        if having is None:
            return None
        condition: exp.Expr = having.this
        return condition.transform(lambda node: self._aliased(node) if not node.find_ancestor(exp.Query) else node)

    # -- keys

    def _key_nodes(self, group: exp.Expr) -> list[exp.Expr]:
        nodes: list[exp.Expr] = []
        for clause in ("all", "rollup", "cube", "grouping_sets", "totals"):
            if group.args.get(clause):
                self._refuse(group, f"GROUP BY {clause.replace('_', ' ').upper()}")
        for node in group.expressions:
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
                self._refuse(node, type(node).__name__.replace("gS", "g S").upper())
            else:
                nodes.append(self._key_node(node))
        return nodes

    def _refuse(self, node: exp.Expr, feature: str) -> None:
        self._broken = True
        advice = "write one query for each grouping, and UNION them"
        self._scope.found.append(SqlUnsupported(span_of(node), feature=feature, advice=advice))

    def _key_node(self, node: exp.Expr) -> exp.Expr:
        """The expression that a key means: `1` is the first column, and a name may be an alias of the SELECT list."""
        node = inner(node)
        if isinstance(node, exp.Literal) and node.is_int:
            position = int(node.name) if len(node.name) < 6 else 0
            if 1 <= position <= len(self._items) and self._items[position - 1].variable is None:
                return self._items[position - 1].node
            problem = f"GROUP BY {node.name} names no column of the SELECT list"
            self._scope.found.append(SqlShape(span_of(node), problem=problem, advice="write the column itself"))
            self._broken = True
        return self._aliased(node)

    def _aliased(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.args.get("table") is None and not self._is_column(node.name):
            for item in self._items:
                if item.variable is None and item.name.lower() == node.name.lower():
                    return item.node
        return node

    def _is_column(self, name: str) -> bool:
        return any(item.find(name) is not None for item in self._scope.items)

    def _usable(self, keys: list[tree.Term]) -> dict[str, tree.Variable]:
        """The variables that have one value in each group: the keys, and what the query equates with them."""
        usable = {key.name: key for key in keys if isinstance(key, tree.Variable)}
        for (_, term), key in zip(self._keys, keys, strict=True):
            if isinstance(term, tree.Variable) and isinstance(key, tree.Variable):
                usable[term.name] = key
        grown = True
        while grown:
            grown = False
            for formula in self._body:
                pair = equation(formula)
                for one, other in (pair, pair[::-1]) if pair is not None else ():
                    if one.name in usable and other.name not in usable:
                        usable[other.name] = usable[one.name]
                        grown = True
        return usable

    # -- rows

    def _rows(self, key_formulas: list[tree.Formula], calls: list[Call]) -> list[tree.Formula]:
        """The formulas that hold for each row: those of the query itself, or the atom of a helper."""
        atoms = [formula for formula in self._body if isinstance(formula, tree.Atom)]
        filters = tree.Constraint | tree.Not | tree.Truth
        plain = len(atoms) == 1 and all(isinstance(formula, tree.Atom | filters) for formula in self._body)
        # A key that is computed becomes a column, so that the rows of a group are found by it.
        computed = any(isinstance(term, tree.Call | tree.Cast) for _, term in self._keys)
        if plain and not key_formulas and not computed:
            return self._body
        columns = [variable for item in self._scope.items for variable in item.all_variables]
        needed = set(variables(tuple(term for _, term in self._keys)))
        needed.update(name for call in calls for name in variables((*call.args, *call.formulas)))
        # Where duplicates cannot change an aggregate, the helper need not tell rows apart.
        if self._scope.is_bag:
            own = [variable for variable in columns if variable.name in needed]
            needed.update(each.name for each in hidden_variables(own, self._body, self._scope.items))
        columns = [variable for variable in columns if variable.name in needed]
        body = [*self._body, *key_formulas]
        for at, (node, term) in enumerate(self._keys):
            if isinstance(term, tree.Variable):
                key = term
            else:
                key = self._scope.fresh(f"key{at + 1}", nullable=isinstance(term, tree.Nil))
                body.append(tree.Constraint("=", key, term, span_of(node)))
                self._keys[at] = (node, key)
            if key.name not in {variable.name for variable in columns} and key.name not in self._outer:
                columns.append(key)
        return [self._helper("rows", columns, body).atom(columns, span_of(self._select))]

    @property
    def _outer(self) -> dict[str, tuple[tree.Formula, ...]]:
        return self._scope.relation.outer

    def _helper(self, purpose: str, columns: list[tree.Variable], body: list[tree.Formula]) -> Relation:
        """A helper with these columns, and the outer variables that its body uses."""
        relation: Relation = self._queries.catalog.helper(
            self._scope.relation, purpose, [variable.name for variable in columns]
        )
        relation.inlinable = True
        relation.nullable = [self._scope.may_be_nil(variable.name) for variable in columns]
        self._rule(relation, tuple(columns), body)
        return relation

    def _rule(self, relation: Relation, values: tuple[tree.Term, ...], body: list[tree.Formula]) -> None:
        used = set(variables((*body, *values)))
        relation.outer.update((name, atoms) for name, atoms in self._outer.items() if name in used)
        nullables, tested = self._scope.every_nullable(), frozenset(self._scope.tested)
        self._queries.catalog.drafts.append(Draft(relation, values, body, span_of(self._select), nullables, tested))

    def _group_body(self, rows: list[tree.Formula]) -> tuple[list[tree.Formula], list[tree.Term]]:
        """The rows that make the groups. Their names are given up, so that those in the aggregates can stay plain."""
        names = self._scope.names
        plain = [term.name for _, term in self._keys if isinstance(term, tree.Variable)]
        copy = {
            name: names.fresh(name)
            for name in dict.fromkeys(variables((*rows, *(term for _, term in self._keys))))
            if name not in plain and name not in self._outer
        }
        body, keys = [rename(formula, copy) for formula in rows], []
        for at, (node, term) in enumerate(self._keys):
            key = term
            if not isinstance(term, tree.Variable):
                key = self._scope.fresh(f"key{at + 1}", nullable=isinstance(term, tree.Nil))
                body.append(tree.Constraint("=", key, rename(term, copy), span_of(node)))
            keys.append(key)
        return body, keys

    # -- aggregates

    def _aggregate_nodes(self, having: exp.Expr | None) -> list[exp.Expr]:
        roots = [item.node for item in self._items if item.variable is None]
        if having is not None:
            roots.append(having)
        nodes: list[exp.Expr] = []
        for root in roots:
            nodes.extend(node for node in aggregates_in(root, self._queries.functions) if node not in nodes)
        return nodes

    def _call(self, node: exp.Expr) -> Call:
        call = node.this if isinstance(node, exp.Filter) else node
        conditions = Conditions(self._scope, self._queries)
        written = arguments_of(call)
        args, distinct = written.nodes, written.distinct
        op = AGGREGATES[call.name.upper()]
        if op == "collect":
            return self._call_of_texts(node, call, written, conditions)
        if written.order:
            advice = "only STRING_AGG depends on the order of the rows: leave it out"
            self._scope.found.append(SqlUnsupported(span_of(call), feature=f"{call.name} with ORDER BY", advice=advice))
        counts_rows = op == "count" and (not args or isinstance(args[0], exp.Star))
        if len(args) != 1 and not (op == "count" and (distinct or not args)):
            problem = f"the aggregate {call.name} takes 1 argument, not {len(args)}"
            advice = (
                "LEAST and GREATEST compare several values"
                if call.name.upper() in ("MIN", "MAX")
                else "aggregate one expression"
            )
            self._scope.found.append(SqlShape(span_of(call), problem=problem, advice=advice))
        may_be_empty = op != "count" and (
            self._select.args.get("group") is None
            or isinstance(node, exp.Filter)
            or any(map(conditions.may_be_null, args))
        )
        terms: list[tree.Term] = []
        for arg in [] if counts_rows else args:
            term = conditions.term(arg)
            terms.append(term)
            if self._scope.is_nullable(term):
                conditions.formulas.append(is_not_nil(term))
            if call.name.upper() in TRUTHS and not is_predicate(inner(arg)):
                # Every truth value is so, and the checks of the program refuse anything else.
                conditions.formulas.append(tree.Constraint(">=", term, tree.Bool(value=False), span_of(arg)))
        if isinstance(node, exp.Filter):
            conditions.formulas.append(conditions.condition(node.expression.this))
        return Call(node, op, terms, conditions.formulas, distinct and op not in _SET_LIKE, may_be_empty)

    def _call_of_texts(self, node: exp.Expr, call: exp.Expr, written: Arguments, conditions: Conditions) -> Call:
        """STRING_AGG(text, separator ORDER BY …)."""
        problem, advice = "", ""
        separator = inner(written.nodes[1]) if len(written.nodes) > 1 else exp.Literal.string(",")
        if len(written.nodes) not in (1, 2):
            problem = f"the aggregate {call.name} takes 1 or 2 arguments, not {len(written.nodes)}"
            advice = "give the text and the separator"
        elif not (isinstance(separator, exp.Literal) and separator.is_string):
            problem, advice = f"the separator of {call.name} is not a string", "write one, such as ', '"
        elif written.distinct and any(inner(each.this) != inner(written.nodes[0]) for each in written.order):
            problem = f"{call.name} with DISTINCT is ordered by something else than its text"
            advice = "order by the text itself: equal texts have several values of anything else"
        if problem:
            self._scope.found.append(SqlShape(span_of(call), problem=problem, advice=advice))
            return Call(node, "collect", [tree.String("")])
        term = conditions.term(written.nodes[0])
        if self._scope.is_nullable(term):
            conditions.formulas.append(is_not_nil(term))
        terms: list[tree.Term] = [tree.Call("to_string", (term,), span=span_of(written.nodes[0]))]
        for each in written.order:
            # A variable of its own, also for a column of a query around this one.
            terms.append(self._scope.fresh("order", nullable=conditions.may_be_null(each.this)))
            conditions.formulas.append(tree.Constraint("=", terms[-1], conditions.variable(each.this), span_of(each)))
        if isinstance(node, exp.Filter):
            conditions.formulas.append(conditions.condition(node.expression.this))
        may_be_empty = (
            self._select.args.get("group") is None
            or isinstance(node, exp.Filter)
            or conditions.may_be_null(written.nodes[0])
        )
        orders = tuple(Order(bool(each.args.get("desc")), bool(each.args.get("nulls_first"))) for each in written.order)
        distinct = written.distinct
        return Call(node, "collect", terms, conditions.formulas, distinct, may_be_empty, orders, separator.name)

    def _joined(
        self, call: Call, rows: list[tree.Formula], keys: list[tree.Term], *, grouped: bool
    ) -> tuple[tree.Variable, list[tree.Formula]]:
        """The variable for the texts of each group, and the formulas that bind it.

        The rows of a group are collected, by the order columns, then by their texts.
        """
        scope, catalog, span = self._scope, self._queries.catalog, span_of(call.node)
        source, columns, inner_keys, args = self._own_rows(call, rows, [term for _, term in self._keys])
        atom = source.atom(columns, span)
        text, order = args[0], args[1:]
        entry = [*order, text, *(column for column in columns if column not in (*args, *inner_keys))]
        name = f"joined_{len(catalog.listings) + 1}"
        places = [columns.index(each) for each in entry]
        catalog.listings[name] = Listing(name, source, places, "symbol", argument=len(order), takes_row=False)
        catalog.made_functions[name] = Joined(call.orders, len(order), call.separator)
        # A rule that lists the rows of each group that has some.
        all_rows = scope.fresh("rows")
        names = [key.name for key in inner_keys]
        lists = catalog.helper(scope.relation, "texts", [*names, all_rows.name])
        lists.lists = name
        lists.nullable = [*(scope.may_be_nil(each) for each in names), False]
        copy = {each.name: scope.names.fresh(each.name) for each in columns}
        same = [
            tree.Constraint("=", copy[key], tree.Variable(key), span) for key in dict.fromkeys(names) if key in copy
        ]
        body = conjunction([rename(atom, copy), *same])
        collected = tree.Aggregate("collect", tree.Bracket(tuple(rename(each, copy) for each in entry)), body, span)
        some = source.atom([each if each in inner_keys else tree.Wildcard() for each in columns], span)
        self._rule(lists, (*inner_keys, all_rows), [some, tree.Constraint("=", all_rows, collected, span)])
        result = scope.fresh(_name(call).lower(), span=span)
        joined = tree.Constraint("=", result, tree.Call(name, (all_rows,), registered=True, span=span), span)
        if not call.may_be_empty or (scope.relation.partial and not grouped):
            return result, [lists.atom([*keys, all_rows], span), joined]
        relation = catalog.helper(scope.relation, "joined", [*names, result.name])
        relation.nullable = [*(scope.may_be_nil(each) for each in names), True]
        self._rule(relation, (*inner_keys, result), [lists.atom([*inner_keys, all_rows], span), joined])
        groups, group_keys = self._group_body(rows) if grouped else ([], [])
        nothing = lists.atom([*group_keys, tree.Wildcard()], span)
        outer = [formula for atoms in self._outer.values() for formula in atoms]
        self._rule(relation, (*group_keys, tree.Nil()), [*outer, *groups, tree.Not(nothing, span)])
        relation.keys = [frozenset(range(len(names)))]
        scope.nullables.add(result.name)
        return result, [relation.atom([*keys, result], span)]

    def _aggregate(
        self, call: Call, rows: list[tree.Formula], keys: list[tree.Term]
    ) -> tuple[tree.Variable, tree.Aggregate]:
        """The variable for the result, and the aggregate over a copy of the rows that agree with the keys."""
        names = self._scope.names
        args = call.args
        inner_keys = [term for _, term in self._keys]
        if call.distinct or call.formulas:
            source, columns, own_keys, own_args = self._own_rows(call, rows, inner_keys)
            rows, inner_keys, args = [source.atom(columns, span_of(self._select))], [*own_keys], [*own_args]
        pairs = list(zip(keys, inner_keys, strict=True))
        kept = {key.name for key, own in pairs if key == own and isinstance(key, tree.Variable)}
        copied = [name for name in dict.fromkeys(variables((*rows, *args, *inner_keys))) if name not in kept]
        copy: dict[str, tree.Variable] = {}
        if not self._originals_free:
            copy = {name: names.fresh(name) for name in copied if name not in self._outer}
        self._originals_free = False
        body = [rename(formula, copy) for formula in rows]
        for key, own in pairs:
            if not (isinstance(own, tree.Variable) and own.name in kept):
                body.append(tree.Constraint("=", rename(own, copy), key))
        if call.op == "count":
            # Rows for which the argument has no value do not count.
            body += [
                tree.Constraint("=", names.fresh("value"), rename(arg, copy), arg.span)
                for arg in args
                if isinstance(arg, tree.Call | tree.Cast)
            ]
        target = rename(args[0], copy) if args and call.op != "count" else None
        if target is not None and any(name in kept or name in self._outer for name in variables(target)):
            # The variables of a target are the aggregate's own, whatever they are outside.
            value = names.fresh("value")
            body.append(tree.Constraint("=", value, target, target.span))
            target = value
        if target is None and call.op != "count":
            target = tree.Number(0)
        sources = [term.name for term in call.args if isinstance(term, tree.Variable)]
        result = names.fresh(
            "_".join([_name(call).lower(), *(sources[:1] or ["value" if call.args else "rows"])]),
            span=span_of(call.node),
        )
        # A body that cannot hold keeps its atoms, which say of which type the values would be.
        whole = [_NEVER if part == tree.Truth(value=False) else part for part in conjuncts(conjunction(body))]
        return result, tree.Aggregate(call.op, target, conjunction(whole), span_of(call.node))

    def _maybe_empty(
        self, call: Call, rows: list[tree.Formula], keys: list[tree.Term], *, grouped: bool
    ) -> tuple[tree.Variable, list[tree.Formula]]:
        """The variable for an aggregate that is null for a group without values, and the formulas that bind it.

        Where the query is a value itself, a null is no row.
        """
        scope = self._scope
        names = [key.name if isinstance(key, tree.Variable) else "key" for key in keys]
        fixed = [key if isinstance(key, tree.Variable) else scope.fresh("key") for key in keys]
        result, aggregate = self._aggregate(call, rows, keys)
        # Rows that have a value to be aggregated, under names of their own.
        own = [*rows, *call.formulas]
        inner_keys = [term for _, term in self._keys]
        kept = {each.name for each in fixed} & set(variables(tuple(inner_keys)))
        values = set(variables(tuple(call.args))) - set(variables(tuple(rows)))  # that there is one is enough
        again = {
            name: scope.names.fresh(f"_{name}" if name in values else name)
            for name in dict.fromkeys(variables((*own, *call.args, *inner_keys)))
            if name not in kept and name not in self._outer
        }
        having = [rename(formula, again) for formula in own]
        having += [
            tree.Constraint("=", key, rename(term, again))
            for key, term in zip(fixed, inner_keys, strict=True)
            if key != term
        ]
        having += [
            tree.Constraint("=", scope.names.fresh("_value"), rename(arg, again), arg.span)
            for arg in call.args
            if isinstance(arg, tree.Call | tree.Cast)
        ]
        outer = [tree.Variable(name) for name in self._outer]
        value = tree.Constraint("=", result, aggregate, span_of(call.node))
        if scope.relation.partial and not grouped:
            return result, [*having, value] if call.op == "sum" else [value]
        relation = self._queries.catalog.helper(scope.relation, call.op, [*names, result.name])
        relation.nullable = [*(scope.may_be_nil(name) for name in names), True]
        some = self._queries.catalog.helper(scope.relation, "some", names)
        some.inlinable = True
        some.nullable = relation.nullable[:-1]
        self._rule(some, tuple(fixed), having)
        exists = some.atom(fixed, span_of(call.node))
        self._rule(relation, (*fixed, result), [exists, value])
        groups, group_keys = self._group_body(rows) if grouped else ([], [])
        empty = [*groups, tree.Not(some.atom(group_keys, span_of(call.node)), span_of(call.node))]
        if outer:
            empty = [*(formula for atoms in self._outer.values() for formula in atoms), *empty]
        self._rule(relation, (*group_keys, tree.Nil()), empty)
        relation.keys = [frozenset(range(len(names)))]
        scope.nullables.add(result.name)
        return result, [relation.atom([*keys, result], span_of(call.node))]

    def _own_rows(
        self, call: Call, rows: list[tree.Formula], keys: list[tree.Term]
    ) -> tuple[Relation, list[tree.Variable], list[tree.Variable], list[tree.Variable]]:
        """Rows that hold the values of the arguments: with the columns of all rows, or DISTINCT with the keys alone.

        Their relation and its columns, and the keys and arguments among them.
        """
        names = self._scope.names
        body = [*rows, *call.formulas]
        fixed: list[tree.Variable] = []
        for term in (*keys, *call.args):
            if isinstance(term, tree.Variable):
                fixed.append(term)
            else:
                fixed.append(names.fresh("value"))
                body.append(tree.Constraint("=", fixed[-1], term, term.span))
        all_rows = [] if call.distinct else variables(tuple(rows))
        columns = dict.fromkeys([*all_rows, *(variable.name for variable in fixed)])
        own = [tree.Variable(name) for name in columns if name not in self._outer]
        return self._helper(call.op, own, body), own, fixed[: len(keys)], fixed[len(keys) :]


def _name(call: Call) -> str:
    node = call.node.this if isinstance(call.node, exp.Filter) else call.node
    return node.name.upper()
