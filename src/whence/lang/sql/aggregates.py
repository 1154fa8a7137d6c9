"""Aggregates as they are written, and as rules need them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from whence.lang import tree
from whence.lang.sql.over import Order


@dataclass
class Call:
    """An aggregate: `formulas` stand beside its arguments, and hold for the rows that it counts.

    Of `collect`, the arguments are the text and what orders it.
    """

    node: exp.Expr
    op: str
    args: list[tree.Term]
    formulas: list[tree.Formula] = field(default_factory=list)
    distinct: bool = False
    may_be_empty: bool = False
    orders: tuple[Order, ...] = ()
    separator: str = ","


@dataclass(frozen=True)
class Arguments:
    """What stands in the parentheses of an aggregate."""

    nodes: list[exp.Expr]
    distinct: bool
    order: list[exp.Expr]


def arguments_of(call: exp.Expr) -> Arguments:
    nodes, order = list(call.expressions), []
    if nodes and isinstance(nodes[-1], exp.Order):
        order = nodes[-1].expressions
        nodes[-1] = nodes[-1].this
    distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
    return Arguments(nodes[0].expressions if distinct else nodes, distinct, order)
