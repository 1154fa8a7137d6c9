"""Conditions of SQL as formulas.

There are no nulls, so a condition is true or false, and NOT is pushed down to the comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlShape
from whence.lang.sql.formulas import conjunction, counted, disjunction
from whence.lang.sql.nodes import inner
from whence.lang.sql.parse import span_of
from whence.lang.sql.terms import Terms

# Each comparison with its negation.
_COMPARISONS: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "!="),
    exp.NEQ: ("!=", "="),
    exp.LT: ("<", ">="),
    exp.LTE: ("<=", ">"),
    exp.GT: (">", "<="),
    exp.GTE: (">=", "<"),
    exp.NullSafeEQ: ("=", "!="),
    exp.NullSafeNEQ: ("!=", "="),
}
_NOWHERE = tree.Truth(value=True)


class Conditions(Terms):
    def condition(self, node: exp.Expr, *, positive: bool = True, unknown: bool = False) -> tree.Formula:
        """The formula that holds where the condition is true, or with `positive=False` where it is false.

        With `unknown` it also holds where the condition is neither, since a subquery that it compares has no row.
        """
        with self.aside() as formulas, self.own_scalars() as scalars:
            formula = self._translate(inner(node), positive=positive, unknown=unknown)
            empty = [tree.Not(atom, atom.span) for atom in scalars] if unknown else []
        return disjunction([conjunction([*formulas, formula]), *empty])

    def _translate(self, node: exp.Expr, *, positive: bool, unknown: bool) -> tree.Formula:
        if isinstance(node, exp.Not):
            return self.condition(node.this, positive=not positive, unknown=unknown)
        if isinstance(node, exp.And | exp.Or):
            parts = [self.condition(part, positive=positive, unknown=unknown) for part in node.flatten()]
            return conjunction(parts) if isinstance(node, exp.And) is positive else disjunction(parts)
        if isinstance(node, exp.Boolean):
            return tree.Truth(bool(node.this) is positive, span_of(node))
        if type(node) in _COMPARISONS:
            self.check_parts(node)
            return self._comparison(node, positive=positive)
        if type(node) in self._TESTS:
            self.check_parts(node)
            return self._TESTS[type(node)](self, node, positive)
        return self._refused(node)

    def _comparison(self, node: exp.Expr, *, positive: bool) -> tree.Formula:
        for side in (inner(node.this), inner(node.expression)):
            if isinstance(side, exp.Any | exp.All):
                word = side.key.upper()
                self.refuse(node, f"a comparison with {word}", "write IN (SELECT …), or compare with a min or max")
                return _NOWHERE
        if isinstance(inner(node.this), exp.Tuple) and isinstance(node, exp.EQ | exp.NEQ):
            return self._row_comparison(node, positive=positive is isinstance(node, exp.EQ))
        op = _COMPARISONS[type(node)][0 if positive else 1]
        return tree.Constraint(op, self.term(node.this), self.term(node.expression), span_of(node))

    def _row_comparison(self, node: exp.Expr, *, positive: bool) -> tree.Formula:
        left, right = self._row(node.this), self._row(node.expression)
        return self._equal_rows(node, left, right, positive=positive)

    def _row(self, node: exp.Expr) -> list[tree.Term]:
        node = inner(node)
        return [self.term(part) for part in (node.expressions if isinstance(node, exp.Tuple) else [node])]

    def _equal_rows(
        self, node: exp.Expr, left: list[tree.Term], right: list[tree.Term], *, positive: bool
    ) -> tree.Formula:
        if len(left) != len(right):
            problem = f"a row of {counted(len(left), 'value')} is compared with one of {len(right)}"
            self.scope.found.append(SqlShape(span_of(node), problem=problem, advice="give both sides as many"))
            return _NOWHERE
        op, join = ("=", conjunction) if positive else ("!=", disjunction)
        return join(tree.Constraint(op, *pair, span_of(node)) for pair in zip(left, right, strict=True))

    def _between(self, node: exp.Expr, positive: bool) -> tree.Formula:
        value, low, high = (self.term(part) for part in (node.this, node.args["low"], node.args["high"]))
        span = span_of(node)
        if positive:
            return conjunction([tree.Constraint("<=", low, value, span), tree.Constraint("<=", value, high, span)])
        return disjunction([tree.Constraint("<", value, low, span), tree.Constraint(">", value, high, span)])

    def _in(self, node: exp.Expr, positive: bool) -> tree.Formula:
        left = self._row(node.this)
        query = node.args.get("query")
        if query is not None:
            return self._in_query(node, query, left, positive=positive)
        if node.args.get("unnest") is not None or node.args.get("field") is not None:
            self.refuse(node, "IN without a list or subquery")
            return _NOWHERE
        cases = [self._equal_rows(node, left, self._row(part), positive=positive) for part in node.expressions]
        return disjunction(cases) if positive else conjunction(cases)

    def _in_query(self, node: exp.Expr, query: exp.Expr, left: list[tree.Term], *, positive: bool) -> tree.Formula:
        relation = self.queries.subquery(query, self.scope, "among")
        if relation.columns is not None and len(relation.columns) != len(left):
            columns = counted(len(relation.columns), "column")
            problem = f"{counted(len(left), 'value')} cannot be looked up in a subquery of {columns}"
            self.scope.found.append(SqlShape(span_of(node), problem=problem, advice="select as many columns as values"))
        atom = relation.atom(left, span_of(node))
        return atom if positive else tree.Not(atom, atom.span)

    def _exists(self, node: exp.Expr, positive: bool) -> tree.Formula:
        relation = self.queries.subquery(node.this, self.scope, "exists", existential=True)
        atom = relation.atom((), span_of(node))
        return atom if positive else tree.Not(atom, atom.span)

    def _like(self, node: exp.Expr, positive: bool) -> tree.Formula:
        escape = ""
        like = node
        if isinstance(node, exp.Escape):
            like, escape = node.this, node.expression.name
        pattern = inner(like.expression)
        if not isinstance(like, exp.Like) or not isinstance(pattern, exp.Literal) or not pattern.is_string:
            self.refuse(node, "LIKE with a pattern that is not a string", "write the pattern as a string: LIKE 'a%'")
            return _NOWHERE
        regex = tree.String(_regex(pattern.name, escape), span_of(pattern))
        match = tree.Constraint("match", regex, self.term(like.this), span_of(node))
        return match if positive is not bool(like.args.get("negate")) else tree.Not(match, match.span)

    def _null_test(self, node: exp.Expr, positive: bool) -> tree.Formula:  # noqa: ARG002
        word = "IS NULL" if isinstance(node.expression, exp.Null) else "IS"
        self.refuse(node, word, "there are no nulls: leave the test out, or write TRUE or FALSE for it")
        return _NOWHERE

    def _refused(self, node: exp.Expr) -> tree.Formula:
        if isinstance(node, exp.Predicate | exp.Binary):
            self.refuse(node, f"the condition {node.key.upper()}", "comparisons, BETWEEN, IN, EXISTS and LIKE are")
        else:
            self.refuse(node, "a value as a condition", "compare it, as in x = 1")
        return _NOWHERE

    _TESTS: ClassVar[Mapping[type[exp.Expr], Callable[[Conditions, exp.Expr, bool], tree.Formula]]] = {
        exp.Between: _between,
        exp.In: _in,
        exp.Exists: _exists,
        exp.Like: _like,
        exp.Escape: _like,
        exp.Is: _null_test,
    }


def _regex(pattern: str, escape: str) -> str:
    """A LIKE pattern as a regular expression: % is any text, _ any character, also a line break."""
    parts: list[str] = []
    literal = False
    for char in pattern:
        if char == escape and not literal:
            literal = True
            continue
        wild = {"%": ".*", "_": "."}.get(char) if not literal else None
        parts.append(wild or re.escape(char))
        literal = False
    text = "".join(parts)
    return f"(?s){text}" if "%" in pattern or "_" in pattern else text
