"""Questions about the expressions that sqlglot makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from whence.lang.sql.functions import AGGREGATES, find_registered

Functions = Mapping[str, Callable[..., object]]


def inner(node: exp.Expr) -> exp.Expr:
    """The expression without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def equality(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.EQ(this=left.copy(), expression=right.copy())


def is_predicate(node: exp.Expr) -> bool:
    """Whether the expression is true, false or unknown by its form."""
    return isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Boolean)


def case_branches(node: exp.Expr) -> list[tuple[exp.Expr | None, exp.Expr | None]]:
    """The conditions and values of a CASE, also of `CASE x WHEN 1`; the last one has no condition, and maybe no value."""
    branches: list[tuple[exp.Expr | None, exp.Expr | None]] = []
    for branch in node.args["ifs"]:
        test = branch.this if node.this is None else equality(node.this, branch.this)
        branches.append((test, branch.args["true"]))
    return [*branches, (None, node.args.get("default"))]


def is_aggregate(node: exp.Expr, functions: Functions) -> bool:
    if not isinstance(node, exp.Anonymous) or node.name.upper() not in AGGREGATES:
        return False
    return find_registered(node.name, functions) is None


def aggregates_in(node: exp.Expr, functions: Functions) -> list[exp.Expr]:
    """The aggregates of the query itself, each with its FILTER, without those of its subqueries."""
    found: list[exp.Expr] = []
    for part in node.walk(prune=lambda part: isinstance(part, exp.Query | exp.Window) or is_aggregate(part, functions)):
        if is_aggregate(part, functions):
            found.append(part.parent if isinstance(part.parent, exp.Filter) else part)
    return found


def has_aggregates(select: exp.Expr, functions: Functions) -> bool:
    return any(aggregates_in(item, functions) for item in select.expressions)


def is_count(query: exp.Expr, functions: Functions) -> bool:
    """Whether the query counts, without groups: then it has a row, and that is not null."""
    select = query.unnest()
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return False
    if any(select.args.get(clause) for clause in ("group", "having", "limit", "offset", "qualify")):
        return False
    item = select.expressions[0].unalias()
    node = item.this if isinstance(item, exp.Filter) else item
    return is_aggregate(node, functions) and node.name.upper() == "COUNT"


def name_of(node: exp.Expr) -> str:
    """What to call an expression that is refused."""
    names: Mapping[type[exp.Expr], str] = {
        exp.Null: "NULL",
        exp.Window: "a window function (OVER)",
        exp.Star: "* inside an expression",
        exp.Column: "* inside an expression",
        exp.Placeholder: "a parameter",
        exp.Parameter: "a parameter",
        exp.Interval: "INTERVAL",
        exp.Filter: "FILTER on something that is not an aggregate",
        exp.Tuple: "a row of several values as one value",
        exp.Bracket: "[…] after a value",
        exp.Any: "ANY",
        exp.All: "ALL",
    }
    if isinstance(node, exp.Func) and type(node) not in names:
        return f"the function {node.sql_name()}"
    return names.get(type(node), node.key.upper())
