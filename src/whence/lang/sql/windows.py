"""Window functions, DISTINCT ON, and ORDER BY with LIMIT.

The rows of a partition are collected into a list, and a Python function (`over`) tells of each row what the window gives it.
LIMIT is a window too: the rows whose number is within it. So what an epoch costs follows the partitions that it changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlShape, SqlUnsupported
from whence.lang.sql.conditions import Conditions
from whence.lang.sql.formulas import conjunction, variables
from whence.lang.sql.identity import hidden_variables
from whence.lang.sql.nodes import Functions, inner, is_aggregate
from whence.lang.sql.over import Order, Over
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Catalog, Draft, Listing, Relation
from whence.lang.sql.scope import Item, Scope
from whence.lang.sql.select_list import Column

# Each function with the kind of its result, None for that of its first argument, and how many arguments it takes.
_FUNCTIONS: Mapping[str, tuple[str | None, int, int]] = {
    "ROW_NUMBER": ("number", 0, 0),
    "RANK": ("number", 0, 0),
    "DENSE_RANK": ("number", 0, 0),
    "PERCENT_RANK": ("float", 0, 0),
    "CUME_DIST": ("float", 0, 0),
    "NTILE": ("number", 1, 1),
    "LAG": (None, 1, 3),
    "LEAD": (None, 1, 3),
    "FIRST_VALUE": (None, 1, 1),
    "LAST_VALUE": (None, 1, 1),
    "NTH_VALUE": (None, 2, 2),
    "SUM": (None, 1, 1),
    "AVG": ("float", 1, 1),
    "MIN": (None, 1, 1),
    "MAX": (None, 1, 1),
    "COUNT": ("number", 0, 1),
    "BOOL_AND": (None, 1, 1),
    "BOOL_OR": (None, 1, 1),
    "EVERY": (None, 1, 1),
}
_NEVER_NULL = frozenset("ROW_NUMBER RANK DENSE_RANK PERCENT_RANK CUME_DIST NTILE COUNT".split())
_NULL_OF_NULLS = frozenset("SUM AVG MIN MAX BOOL_AND BOOL_OR EVERY FIRST_VALUE LAST_VALUE".split())


def windows_in(nodes: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The window functions of a query itself, without those of its subqueries."""
    found: list[exp.Expr] = []
    for node in nodes:
        for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(part, exp.Window) and part not in found and not isinstance(part.this, exp.Identifier):
                found.append(part)
    return found


@dataclass(frozen=True)
class Specification:
    """What stands behind OVER, as terms."""

    partition: list[tree.Variable]
    order: list[tree.Variable]
    orders: tuple[Order, ...]
    frame: tuple[int | None, int | None] | None


@dataclass
class Rows:
    """The rows of a SELECT before its windows: `identity` tells them apart."""

    select: exp.Expr
    scope: Scope
    body: list[tree.Formula]
    conditions: Conditions
    identity: Sequence[Item]
    items: list[Column]


class Windows:
    """The windows of one SELECT."""

    def __init__(self, catalog: Catalog, functions: Functions, rows: Rows) -> None:
        self._catalog = catalog
        self._functions = functions
        self._rows = rows
        self._scope = rows.scope
        self._conditions = rows.conditions
        self._items = rows.items
        self._named = {each.this.name.lower(): each for each in rows.select.args.get("windows") or ()}
        # What the rows depend on: not on the windows that come before in the SELECT list.
        self._shared = list(rows.conditions.formulas)
        self._begin = len(rows.conditions.formulas)

    def add(self, node: exp.Expr) -> tree.Term | None:
        """The variable for a window function; what binds it goes into the formulas of the conditions."""
        self._begin = len(self._conditions.formulas)
        call = node.this
        if isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            self._refuse(node, f"{type(call).__name__.upper()} in a window")
            return None
        name = call.name.upper() if isinstance(call, exp.Anonymous) else call.key.upper()
        if name not in _FUNCTIONS or (isinstance(call, exp.Anonymous) and not self._is_known(call)):
            self._refuse(node, f"the window function {name}")
            return None
        specification = self._specification(node)
        if specification is None:
            return None
        kind, least, most = _FUNCTIONS[name]
        args = [arg for arg in call.expressions if not isinstance(arg, exp.Star)]
        if any(isinstance(arg, exp.Distinct) for arg in args):
            self._refuse(node, "DISTINCT in a window")
            return None
        if not least <= len(args) <= most:
            problem = f"the window function {name} does not take {len(args)} arguments"
            self._scope.found.append(SqlShape(span_of(node), problem=problem, advice="check the call"))
            return None
        terms = [self._conditions.variable(arg) for arg in args]
        nullable = name not in _NEVER_NULL and (
            name not in _NULL_OF_NULLS
            or specification.frame is not None
            or any(self._scope.is_nullable(term) for term in terms)
        )
        function = "COUNT_ROWS" if name == "COUNT" and not args else name
        return self._bound(node, specification, function, terms, kind=kind, nullable=nullable)

    def number(self, node: exp.Expr, partition: list[exp.Expr], order: Sequence[exp.Expr], *, ties: bool) -> tree.Term:
        """The number of a row in an order, or with `ties` its rank."""
        self._begin = len(self._conditions.formulas)
        keys = [self._conditions.variable(part) for part in partition]
        columns, orders = self._order(order)
        specification = Specification(keys, columns, orders, None)
        name = "RANK" if ties else "ROW_NUMBER"
        return self._bound(node, specification, name, [], kind="number", nullable=False)

    # -- what is collected

    def _bound(
        self,
        node: exp.Expr,
        specification: Specification,
        function: str,
        terms: list[tree.Variable],
        *,
        kind: str | None,
        nullable: bool,
    ) -> tree.Variable:
        """The variable for the result of a function of the rows of each partition."""
        scope, span, purpose = self._scope, span_of(node), function.lower()
        body = [*self._rows.body, *self._shared, *self._conditions.formulas[self._begin :]]
        partition = specification.partition
        identity = hidden_variables([*partition, *specification.order], body, self._rows.identity)
        entry = [*specification.order, *identity, *terms]
        columns = list(dict.fromkeys([*partition, *entry]))
        rows = self._helper(f"{purpose}_rows", columns)
        rows.inlinable = True
        self._rule(rows, tuple(columns), body)
        name = f"over_{len(self._catalog.listings) + 1}"
        begin = len(specification.order) + len(identity)
        nullable = nullable or kind is None
        places = [columns.index(each) for each in entry]
        self._catalog.listings[name] = Listing(
            name, rows, places, kind, nullable=nullable, argument=begin, is_sum=function == "SUM"
        )
        otherwise = {"number": 0, "float": 0.0}.get(kind or "")
        self._catalog.made_functions[name] = Over(function, specification.orders, begin, specification.frame, otherwise)
        all_rows = scope.fresh("rows")
        partitions = self._helper(f"{purpose}_partitions", [*partition, all_rows])
        partitions.lists = name
        self._rule(partitions, (*partition, all_rows), self._collected(rows, columns, partition, entry, all_rows))
        result = scope.fresh(purpose, nullable=nullable, span=span)
        call = tree.Call(name, (all_rows, tree.Bracket(tuple(entry))), registered=True, span=span)
        self._conditions.formulas += [
            partitions.atom([*partition, all_rows], span),
            tree.Constraint("=", result, call, span),
        ]
        return result

    def _collected(
        self,
        rows: Relation,
        columns: list[tree.Variable],
        partition: list[tree.Variable],
        entry: list[tree.Variable],
        all_rows: tree.Variable,
    ) -> list[tree.Formula]:
        """The body of the rule that collects the rows of each partition."""
        span = rows.span
        copy = {each.name: self._scope.names.fresh(each.name) for each in columns}
        same = [tree.Constraint("=", copy[each.name], each, span) for each in partition]
        atom = rows.atom([copy[each.name] for each in columns], span)
        record = tree.Bracket(tuple(copy[each.name] for each in entry))
        collected = tree.Aggregate("collect", record, conjunction([atom, *same]), span)
        some = rows.atom([each if each in partition else tree.Wildcard() for each in columns], span)
        return [some, tree.Constraint("=", all_rows, collected, span)]

    def _helper(self, purpose: str, columns: list[tree.Variable]) -> Relation:
        relation = self._catalog.helper(self._scope.relation, purpose, [variable.name for variable in columns])
        relation.nullable = [self._scope.may_be_nil(variable.name) for variable in columns]
        return relation

    def _rule(self, relation: Relation, values: tuple[tree.Term, ...], body: list[tree.Formula]) -> None:
        used = set(variables((*body, *values)))
        outer = self._scope.relation.outer
        relation.outer.update((name, atoms) for name, atoms in outer.items() if name in used)
        span = span_of(self._rows.select)
        self._catalog.drafts.append(
            Draft(relation, values, body, span, self._scope.every_nullable(), frozenset(self._scope.tested))
        )

    # -- what stands behind OVER

    def _specification(self, node: exp.Expr) -> Specification | None:
        named = node.args.get("alias") or node.args.get("first")
        partition, order, frame = (node.args.get(part) for part in ("partition_by", "order", "spec"))
        if isinstance(named, exp.Identifier):
            known = self._named.get(named.name.lower())
            if known is None:
                problem = f"there is no window {named.name}"
                self._scope.found.append(SqlShape(span_of(node), problem=problem, advice="write WINDOW name AS (…)"))
                return None
            partition = partition or known.args.get("partition_by")
            order, frame = order or known.args.get("order"), frame or known.args.get("spec")
        keys = list(dict.fromkeys(self._conditions.variable(part) for part in partition or ()))
        columns, orders = self._order(order.expressions if order is not None else [])
        bounds = self._frame(node, frame, ordered=bool(columns))
        return Specification(keys, columns, orders, bounds) if bounds != "refused" else None  # type: ignore[arg-type]

    def _order(self, nodes: Sequence[exp.Expr]) -> tuple[list[tree.Variable], tuple[Order, ...]]:
        columns: list[tree.Variable] = []
        orders: list[Order] = []
        for node in nodes:
            meant = self._meant(node.this)
            column = self._conditions.variable(meant)
            self._conditions.known.append((inner(meant), column))  # the SELECT list says it once more
            columns.append(column)
            orders.append(Order(bool(node.args.get("desc")), bool(node.args.get("nulls_first"))))
        return columns, tuple(orders)

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """What ORDER BY means: a position or a name of the SELECT list, or an expression."""
        node = inner(node)
        if isinstance(node, exp.Literal) and node.is_int and 1 <= int(node.name) <= len(self._items):
            item = self._items[int(node.name) - 1]
            return exp.column(item.name) if item.variable is not None else item.node
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            for item in self._items:
                if item.variable is None and item.name.lower() == node.name.lower():
                    return item.node
        return node

    def _frame(
        self, node: exp.Expr, frame: exp.Expr | None, *, ordered: bool
    ) -> tuple[int | None, int | None] | str | None:
        if frame is None:
            return None if ordered else (None, None)
        kind = str(frame.args.get("kind") or "ROWS").upper()
        bounds: list[int | None] = []
        for side, default in (("start", -1), ("end", 1)):
            bound, towards = frame.args.get(side), str(frame.args.get(f"{side}_side") or "").upper()
            sign = {"PRECEDING": -1, "FOLLOWING": 1}.get(towards, default)
            if bound is None or str(bound).upper() == "CURRENT ROW":
                bounds.append(0)
            elif str(bound).upper() == "UNBOUNDED":
                bounds.append(None)
            elif isinstance(bound, exp.Literal) and bound.is_int:
                bounds.append(sign * int(bound.name))
            else:
                self._refuse(node, "a frame whose bounds are not numbers")
                return "refused"
        first, last = bounds
        if kind == "ROWS" or (first is None and last is None):
            return first, last
        if first is None and last == 0:
            return None if ordered else (None, None)
        self._refuse(node, f"a frame of {kind}", "ROWS BETWEEN … is, and RANGE from UNBOUNDED PRECEDING to CURRENT ROW")
        return "refused"

    def _is_known(self, call: exp.Expr) -> bool:
        return is_aggregate(call, self._functions) or call.name.upper() not in self._functions

    def _refuse(self, node: exp.Expr, feature: str, advice: str = "") -> None:
        self._scope.found.append(SqlUnsupported(span_of(node), feature=feature, advice=advice))
