"""Conditions of SQL as formulas.

A condition is true, false or unknown. What is asked of it is pushed down to the comparisons: a comparison with a null
does not hold and neither does its opposite, so that only what is asked to be *not true* or *not false* has to look
for nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import SqlShape
from whence.lang.sql.formulas import conjunction, counted, disjunction
from whence.lang.sql.logic import Want
from whence.lang.sql.nodes import equality, inner
from whence.lang.sql.nulls import Nulls, is_not_nil
from whence.lang.sql.parse import span_of
from whence.lang.sql.patterns import regex_of
from whence.lang.sql.relations import Relation

# Each comparison with its negation.
_COMPARISONS: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "!="),
    exp.NEQ: ("!=", "="),
    exp.LT: ("<", ">="),
    exp.LTE: ("<=", ">"),
    exp.GT: (">", "<="),
    exp.GTE: (">=", "<"),
}
_NOWHERE = tree.Truth(value=True)
# What may be a truth value, as the types of columns and functions will tell.
_VALUES = (exp.Column, exp.Anonymous, exp.Case, exp.Cast, exp.Subquery, exp.Window)


class Conditions(Nulls):
    def condition(self, node: exp.Expr, want: Want = Want.TRUE) -> tree.Formula:
        """The formula that holds where the condition is what is wanted of it."""
        with self.aside() as formulas:
            formula = self._translate(inner(node), want)
        return conjunction([*formulas, formula])

    def _translate(self, node: exp.Expr, want: Want) -> tree.Formula:
        if self.known_term(node) is not None:
            return self._of_value(node, want)
        if isinstance(node, exp.Not):
            return self.condition(node.this, want.of_negation)
        if isinstance(node, exp.And | exp.Or):
            parts = [self.condition(part, want) for part in node.flatten()]
            return conjunction(parts) if isinstance(node, exp.And) is want.is_positive else disjunction(parts)
        if isinstance(node, exp.Boolean):
            return tree.Truth(bool(node.this) is want.is_positive, span_of(node))
        if isinstance(node, exp.Null):
            return tree.Truth(want.takes_unknown, span_of(node))
        if type(node) in _COMPARISONS:
            self.check_parts(node)
            return self._comparison(node, want)
        if type(node) in self._TESTS:
            self.check_parts(node)
            return self._TESTS[type(node)](self, node, want)
        if isinstance(node, _VALUES):
            return self._of_value(node, want)
        return self._refused(node)

    def _of_value(self, node: exp.Expr, want: Want) -> tree.Formula:
        """A truth value as a condition."""
        span = span_of(node)
        with self.aside() as formulas:
            formulas.append(tree.Constraint("=", self.term(node), tree.Bool(want.is_positive, span), span))
        return self._or_unknown(conjunction(formulas), want, node)

    def _or_unknown(self, formula: tree.Formula, want: Want, *nodes: exp.Expr) -> tree.Formula:
        """The formula, or if unknown will do, that one of the operands is null."""
        unknown = [self.null(node) for node in nodes if self.may_be_null(node)] if want.takes_unknown else []
        return disjunction([formula, *unknown])

    def _comparison(self, node: exp.Expr, want: Want) -> tree.Formula:
        left, right = inner(node.this), inner(node.expression)
        if isinstance(right, exp.Any | exp.All):
            return self._quantified(node, left, right, want)
        if isinstance(left, exp.Any | exp.All):
            self.refuse(node, f"{left.key.upper()} on the left of a comparison", "write it on the right")
            return _NOWHERE
        if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
            if isinstance(node, exp.EQ | exp.NEQ):
                return self._row_comparison(node, left, right, want if isinstance(node, exp.EQ) else want.of_negation)
            self.refuse(node, "an order between rows", "compare their columns one by one")
            return _NOWHERE
        return self._compared(node, left, right, want)

    def _compared(self, node: exp.Expr, left: exp.Expr, right: exp.Expr, want: Want) -> tree.Formula:
        op = _COMPARISONS[type(node)][0 if want.is_positive else 1]
        with self.aside() as formulas:
            one, other = self.term(left), self.term(right)
            formulas.append(tree.Constraint(op, one, other, span_of(node)))
            # Order and functors leave nulls out, and so does an equation with what is not null.
            nullable = [term for term in (one, other) if self.scope.is_nullable(term)]
            if op == "!=" or (op == "=" and len(nullable) == 2):
                formulas.extend(is_not_nil(term) for term in nullable[: 1 if op == "=" else 2])
        return self._or_unknown(conjunction(formulas), want, left, right)

    def _row_comparison(self, node: exp.Expr, left: exp.Expr, right: exp.Expr, want: Want) -> tree.Formula:
        one, other = (side.expressions if isinstance(side, exp.Tuple) else [side] for side in (left, right))
        if len(one) != len(other):
            problem = f"a row of {counted(len(one), 'value')} is compared with one of {len(other)}"
            self.scope.found.append(SqlShape(span_of(node), problem=problem, advice="give both sides as many"))
            return _NOWHERE
        parts = [self.condition(_placed(equality(*pair), node), want) for pair in zip(one, other, strict=True)]
        return conjunction(parts) if want.is_positive else disjunction(parts)

    def _between(self, node: exp.Expr, want: Want) -> tree.Formula:
        low = exp.LTE(this=node.args["low"].copy(), expression=node.this.copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        parts = [self.condition(_placed(part, node), want) for part in (low, high)]
        return conjunction(parts) if want.is_positive else disjunction(parts)

    # -- subqueries

    def _in(self, node: exp.Expr, want: Want) -> tree.Formula:
        query = node.args.get("query")
        if query is not None:
            return self._in_query(node, query, want)
        if node.args.get("unnest") is not None or node.args.get("field") is not None:
            self.refuse(node, "IN without a list or subquery")
            return _NOWHERE
        cases = [self.condition(_placed(equality(node.this, part), node), want) for part in node.expressions]
        return disjunction(cases) if want.is_positive else conjunction(cases)

    def _in_query(self, node: exp.Expr, query: exp.Expr, want: Want) -> tree.Formula:
        left = inner(node.this)
        parts = left.expressions if isinstance(left, exp.Tuple) else [left]
        relation = self.queries.subquery(query, self.scope, "among")
        if relation.columns is not None and len(relation.columns) != len(parts):
            columns = counted(len(relation.columns), "column")
            problem = f"{counted(len(parts), 'value')} cannot be looked up in a subquery of {columns}"
            self.scope.found.append(SqlShape(span_of(node), problem=problem, advice="select as many columns as values"))
            return _NOWHERE
        nullable = [self.may_be_null(part) for part in parts]
        empty = list(relation.nullable or [False] * len(parts))
        if not any(nullable) and not any(empty):
            atom = relation.atom([self.term(part) for part in parts], span_of(node))
            return atom if want.is_positive else tree.Not(atom, atom.span)
        if len(parts) == 1:
            return self._in_column(node, parts[0], relation, want)
        pairs = [equality(part, exp.column(f"value{at + 1}", table="quantified")) for at, part in enumerate(parts)]
        compared = _placed(exp.and_(*pairs), node)
        if not want.is_positive:  # no row is equal, and for false none could be
            want = Want.TRUE if want is Want.NOT_TRUE else Want.NOT_FALSE
            atom = self.queries.any_row(query, self.scope, compared, want, node).atom((), span_of(node))
            return tree.Not(atom, atom.span)
        return self.queries.any_row(query, self.scope, compared, want, node).atom((), span_of(node))

    def _in_column(self, node: exp.Expr, part: exp.Expr, relation: Relation, want: Want) -> tree.Formula:
        span = span_of(node)
        with self.aside() as formulas:
            value = self.term(part)
            if not isinstance(value, tree.Variable):
                named = self.scope.fresh("value")
                formulas.append(tree.Constraint("=", named, value, span_of(part)))
                value = named
            elif self.scope.is_nullable(value):
                formulas.append(is_not_nil(value))
        found, null_row = relation.atom([value], span), relation.atom([tree.Nil()], span)
        any_row = relation.atom([tree.Wildcard()], span)
        has_nulls = any(relation.nullable or ())
        nullable = self.may_be_null(part)
        missing = conjunction([*formulas, tree.Not(found, span)])
        cases: list[tree.Formula]
        match want:
            case Want.TRUE:
                cases = [conjunction([*formulas, found])]
            case Want.FALSE:
                cases = [conjunction([missing, *([tree.Not(null_row, span)] if has_nulls else [])])]
                cases += [tree.Not(any_row, span)] if nullable else []
            case Want.NOT_TRUE:
                cases = [missing, *([self.null(part)] if nullable else [])]
            case Want.NOT_FALSE:
                cases = [conjunction([*formulas, found]), *([null_row] if has_nulls else [])]
                cases += [conjunction([self.null(part), any_row])] if nullable else []
        return disjunction(cases)

    def _quantified(self, node: exp.Expr, left: exp.Expr, right: exp.Expr, want: Want) -> tree.Formula:
        """A comparison with ANY or ALL rows of a subquery, as EXISTS or NOT EXISTS of a row for which it is so."""
        query = right.this
        if not isinstance(inner(query), exp.Query):
            self.refuse(node, f"{right.key.upper()} without a subquery", "write IN (…) or a subquery")
            return _NOWHERE
        is_any = isinstance(right, exp.Any)
        column = exp.column("value1", table="quantified")
        compared = _placed(type(node)(this=left.copy(), expression=column), node)
        # ANY is true if one row is, false if no row is not false; ALL is true if no row is not true, false if one is.
        asked = {
            (True, Want.TRUE): (True, Want.TRUE),
            (True, Want.NOT_FALSE): (True, Want.NOT_FALSE),
            (True, Want.FALSE): (False, Want.NOT_FALSE),
            (True, Want.NOT_TRUE): (False, Want.TRUE),
            (False, Want.TRUE): (False, Want.NOT_TRUE),
            (False, Want.NOT_FALSE): (False, Want.FALSE),
            (False, Want.FALSE): (True, Want.FALSE),
            (False, Want.NOT_TRUE): (True, Want.NOT_TRUE),
        }
        positive, of_row = asked[is_any, want]
        relation = self.queries.any_row(query, self.scope, compared, of_row, node)
        atom = relation.atom((), span_of(node))
        return atom if positive else tree.Not(atom, atom.span)

    def _exists(self, node: exp.Expr, want: Want) -> tree.Formula:
        relation = self.queries.subquery(node.this, self.scope, "exists", existential=True)
        atom = relation.atom((), span_of(node))
        return atom if want.is_positive else tree.Not(atom, atom.span)

    # -- text

    def _like(self, node: exp.Expr, want: Want) -> tree.Formula:
        escape = ""
        like = node
        if isinstance(node, exp.Escape):
            like, escape = node.this, node.expression.name
        if bool(like.args.get("negate")):
            want = want.of_negation
        pattern = inner(like.expression)
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            self.refuse(node, "LIKE with a pattern that is not a string", "write the pattern as a string: LIKE 'a%'")
            return _NOWHERE
        regex = regex_of(pattern.name, escape, ignore_case=isinstance(like, exp.ILike))
        with self.aside() as formulas:
            text = self.variable_or_term(like.this)
            match = tree.Constraint("match", tree.String(regex, span_of(pattern)), text, span_of(node))
            sure = [is_not_nil(text)] if self.scope.is_nullable(text) else []
            formulas += [*sure, match if want.is_positive else tree.Not(match, match.span)]
        return self._or_unknown(conjunction(formulas), want, like.this)

    def variable_or_term(self, node: exp.Expr) -> tree.Term:
        """The term, as a variable of its own if it may have no value: a negated test would hold there."""
        term = self.term(node)
        if isinstance(term, tree.Variable | tree.String):
            return term
        result = self.scope.fresh("text")
        self.formulas.append(tree.Constraint("=", result, term, span_of(node)))
        return result

    # -- nulls and truth

    def _is(self, node: exp.Expr, want: Want) -> tree.Formula:
        test = inner(node.expression)
        if isinstance(test, exp.Null):
            if want.is_positive:
                return self.null(node.this)
            return self._not_null(node.this)
        if isinstance(test, exp.Boolean):
            asked = Want.TRUE if test.this else Want.FALSE
            other = Want.NOT_TRUE if test.this else Want.NOT_FALSE
            return self.condition(node.this, asked if want.is_positive else other)
        self.refuse(node, "IS", "IS NULL, IS TRUE and IS FALSE are")
        return _NOWHERE

    def _not_null(self, node: exp.Expr) -> tree.Formula:
        if not self.may_be_null(node):
            return tree.Truth(value=True, span=span_of(node))
        with self.aside() as formulas:
            term = self.term(node)
            if self.scope.is_nullable(term):
                formulas.append(is_not_nil(term))
            elif not isinstance(term, tree.Variable):
                formulas.append(tree.Constraint("=", self.scope.fresh("value"), term, span_of(node)))
        return conjunction(formulas)

    def _distinct(self, node: exp.Expr, want: Want) -> tree.Formula:
        """IS [NOT] DISTINCT FROM: nulls are equal to each other."""
        equal = isinstance(node, exp.NullSafeEQ) is want.is_positive
        left, right = inner(node.this), inner(node.expression)
        compared = _placed((exp.EQ if equal else exp.NEQ)(this=left.copy(), expression=right.copy()), node)
        cases = [self.condition(compared)]
        nullable = [self.may_be_null(left), self.may_be_null(right)]
        if equal and all(nullable):
            cases.append(conjunction([self.null(left), self.null(right)]))
        if not equal and nullable[0]:
            cases.append(conjunction([self.null(left), self._not_null(right)]))
        if not equal and nullable[1]:
            cases.append(conjunction([self._not_null(left), self.null(right)]))
        return disjunction(cases)

    def _refused(self, node: exp.Expr) -> tree.Formula:
        if isinstance(node, exp.Predicate | exp.Binary):
            self.refuse(node, f"the condition {node.key.upper()}", "comparisons, BETWEEN, IN, EXISTS and LIKE are")
        else:
            self.refuse(node, "a value as a condition", "compare it, as in x = 1")
        return _NOWHERE

    _TESTS: ClassVar[Mapping[type[exp.Expr], Callable[[Conditions, exp.Expr, Want], tree.Formula]]] = {
        exp.Between: _between,
        exp.In: _in,
        exp.Exists: _exists,
        exp.Like: _like,
        exp.ILike: _like,
        exp.Escape: _like,
        exp.Is: _is,
        exp.NullSafeEQ: _distinct,
        exp.NullSafeNEQ: _distinct,
    }


def _placed(made: exp.Expr, node: exp.Expr) -> exp.Expr:
    """The condition at the place of the one that it was made of."""
    span = span_of(node)
    made.meta.update(start=span.start, end=span.end - 1)
    return made
