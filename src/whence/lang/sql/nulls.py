"""Where expressions are null.

A term has no value where the expression is null: a comparison with it does not hold then, and an aggregate leaves it
out, which is what SQL asks for. Where null is a value to be kept, in a SELECT list or as a key of groups, `value` gives
a variable that is nil there. All that is needed is a formula for where an expression is null: `null`.
"""

from __future__ import annotations

from sqlglot import exp

from whence.lang import tree
from whence.lang.sql.formulas import conjunction, disjunction, variables
from whence.lang.sql.logic import Want
from whence.lang.sql.nodes import case_branches, equality, inner, is_count, is_predicate
from whence.lang.sql.parse import span_of
from whence.lang.sql.terms import Terms

# Of these, the result is null if all arguments are.
_ONE_IS_ENOUGH = frozenset({"COALESCE", "IFNULL", "NVL", "GREATEST", "LEAST"})
_DIVISIONS = (exp.Div, exp.IntDiv, exp.Mod)


def is_nil(term: tree.Term) -> tree.Formula:
    return tree.Constraint("=", term, tree.Nil(), term.span)


def is_not_nil(term: tree.Term) -> tree.Formula:
    return tree.Constraint("!=", term, tree.Nil(), term.span)


class Nulls(Terms):
    def may_be_null(self, node: exp.Expr) -> bool:
        node = inner(node)
        known = self.known_term(node)
        if known is not None:
            return isinstance(known, tree.Variable) and self.scope.may_be_nil(known.name)
        if isinstance(node, exp.Column):
            variable = self.scope.peek(node)
            return variable is not None and self.scope.may_be_nil(variable.name)
        if isinstance(node, exp.Subquery):
            return not is_count(node, self.queries.functions)
        if isinstance(node, exp.Null):
            return True
        if isinstance(node, exp.Literal | exp.Boolean | exp.Exists | exp.DataType):
            return False
        if isinstance(node, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ):
            return False
        if isinstance(node, exp.Case):
            values = [value for _, value in case_branches(node)]
            return any(value is None or self.may_be_null(value) for value in values)
        name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
        if name in _ONE_IS_ENOUGH:
            return all(map(self.may_be_null, node.expressions))
        if name == "CONCAT":
            return False
        if name == "NULLIF" or (isinstance(node, exp.In) and node.args.get("query") is not None):
            return True
        if isinstance(node, exp.Any | exp.All):
            return True
        if isinstance(node, _DIVISIONS) or name == "MOD":
            divisor = node.expressions[-1] if name else node.expression
            if not _is_not_zero(divisor):
                return True
        parts = (part for part in node.iter_expressions() if not isinstance(part, exp.Identifier | exp.DataType))
        return any(map(self.may_be_null, parts))

    def null(self, node: exp.Expr) -> tree.Formula:
        """The formula that holds where the expression is null."""
        with self.aside() as formulas:
            formula = self._null(inner(node))
        return conjunction([*formulas, formula])

    def _null(self, node: exp.Expr) -> tree.Formula:
        if not self.may_be_null(node):
            return tree.Truth(value=False)
        known = self.known_term(node)
        if known is not None:
            return is_nil(known)
        if isinstance(node, exp.Null):
            return tree.Truth(value=True)
        if isinstance(node, exp.Column):
            return is_nil(self.term(node))
        if isinstance(node, exp.Subquery):
            atom = self.scalar_atom(node)
            return tree.Not(atom, atom.span)
        if isinstance(node, exp.Case):
            return self._null_case(node)
        if is_predicate(node):
            return conjunction([self.condition(node, Want.NOT_TRUE), self.condition(node, Want.NOT_FALSE)])
        name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
        if name in _ONE_IS_ENOUGH:
            return conjunction(map(self.null, node.expressions))
        if name == "NULLIF":
            one, other = node.expressions
            return disjunction([self.null(one), self.condition(equality(one, other), Want.TRUE)])
        args = node.expressions if name else [part for part in node.iter_expressions() if not _is_a_name(part)]
        cases = [self.null(arg) for arg in args if self.may_be_null(arg)]
        if isinstance(node, _DIVISIONS) or name == "MOD":
            divisor = node.expressions[-1] if name else node.expression
            if not _is_not_zero(divisor):
                with self.aside() as formulas:
                    # Floats can be divided by zero: whether these are some is known once types are.
                    zero = tree.Constraint("zero", self.term(node), tree.Number(0), span_of(divisor))
                cases.append(conjunction([*formulas, zero]))
        return disjunction(cases)

    def _null_case(self, node: exp.Expr) -> tree.Formula:
        before: list[exp.Expr] = []
        cases: list[tree.Formula] = []
        for test, value in case_branches(node):
            if value is None or self.may_be_null(value):
                missed = [self.condition(each, Want.NOT_TRUE) for each in before]
                met = [] if test is None else [self.condition(test, Want.TRUE)]
                empty = [] if value is None else [self.null(value)]
                cases.append(conjunction([*missed, *met, *empty]))
            if test is not None:
                before.append(test)
        return disjunction(cases)

    def value(self, node: exp.Expr) -> tree.Term:
        """Like `term`, but nil where the expression is null."""
        node = inner(node)
        known = self.known_term(node)
        if known is not None:
            return known
        if isinstance(node, exp.Null):
            return tree.Nil(span_of(node))
        if isinstance(node, exp.Column) or not self.may_be_null(node):
            return self.term(node)
        result = self.scope.fresh("value", nullable=True)
        with self.aside() as formulas:
            formulas.append(tree.Constraint("=", result, self.term(node), span_of(node)))
        self.formulas.append(disjunction([conjunction(formulas), conjunction([self.null(node), is_nil(result)])]))
        return result

    def variable(self, node: exp.Expr) -> tree.Variable:
        """The value as a variable."""
        term = self.value(node)
        if isinstance(term, tree.Variable):
            return term
        result = self.scope.fresh("value", nullable=isinstance(term, tree.Nil))
        self.formulas.append(tree.Constraint("=", result, term, span_of(node)))
        return result


def never_nil(body: list[tree.Formula]) -> set[str]:
    """The variables that are not null where the body holds: order and functors do not hold for nulls."""
    sure: set[str] = set()
    for formula in body:
        if not isinstance(formula, tree.Constraint):
            continue
        sides = (formula.left, formula.right)
        if formula.op == "!=" and isinstance(formula.right, tree.Nil):
            sure.update(variables(formula.left))
        elif formula.op in ("<", "<=", ">", ">=", "match"):
            sure.update(variables(sides))
        elif formula.op in ("=", "!="):
            sure.update(name for side in sides if isinstance(side, tree.Call | tree.Cast) for name in variables(side))
            if formula.op == "=" and any(
                isinstance(side, tree.Number | tree.String | tree.Bool | tree.Call | tree.Cast) for side in sides
            ):
                sure.update(variables(sides))
    return sure


def _is_a_name(node: exp.Expr) -> bool:
    return isinstance(node, exp.Identifier | exp.DataType | exp.Var)


def _is_not_zero(node: exp.Expr) -> bool:
    node = inner(node)
    node = inner(node.this) if isinstance(node, exp.Neg) else node
    return isinstance(node, exp.Literal) and not node.is_string and float(node.name.replace("_", "")) != 0
