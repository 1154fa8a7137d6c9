"""Value expressions of SQL as terms.

What a term cannot say on its own, such as the branches of a CASE or a subquery, becomes formulas that stand beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Protocol

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import BadLiteral, SqlShape, SqlUnsupported
from whence.lang.sql.formulas import conjunction, counted, disjunction
from whence.lang.sql.functions import AGGREGATES, BUILTINS, declare, find_registered, type_of
from whence.lang.sql.nodes import Functions, has_aggregates, inner, name_of
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Catalog, Relation
from whence.lang.sql.scope import Scope

_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "/",
    exp.Mod: "%",
    exp.BitwiseAnd: "band",
    exp.BitwiseOr: "bor",
    exp.BitwiseXor: "bxor",
    exp.BitwiseLeftShift: "bshl",
    exp.BitwiseRightShift: "bshr",
}
_CONVERSIONS = {"number": "to_number", "unsigned": "to_unsigned", "float": "to_float", "symbol": "to_string"}
_PARTS = frozenset(
    "_type alias catalog db default expression expressions field high ifs is_string length low negate query safe start"
    " table this to typed unnest with_".split()
)
_NO_NULLS = "there are no nulls: every column of every row has a value"
_FOR_NULLS = frozenset({"COALESCE", "IFNULL", "NULLIF", "NVL"})
NOTHING = tree.Number(0)


class Subqueries(Protocol):
    """What expressions need of the translation of queries."""

    catalog: Catalog
    functions: Functions

    def subquery(self, node: exp.Expr, scope: Scope, purpose: str, *, existential: bool = False) -> Relation: ...


class Terms:
    """Translates the expressions of one SELECT. `formulas` are to stand in the rule beside the terms made so far.

    `known` are expressions that already have a term: the keys and aggregates of a grouped query.
    """

    def __init__(
        self, scope: Scope, queries: Subqueries, known: list[tuple[exp.Expr, tree.Term]] | None = None
    ) -> None:
        self.scope = scope
        self.queries = queries
        self.known = known or []
        self.formulas: list[tree.Formula] = []
        # The subqueries used as values in the condition that is being translated, as atoms that hold if one has a row.
        self.scalars: list[tree.Atom] = []

    def condition(self, node: exp.Expr, *, positive: bool = True, unknown: bool = False) -> tree.Formula:
        raise NotImplementedError

    @contextmanager
    def aside(self) -> Iterator[list[tree.Formula]]:
        """Collects the formulas of one branch."""
        outside, self.formulas = self.formulas, []
        try:
            yield self.formulas
        finally:
            self.formulas = outside

    @contextmanager
    def own_scalars(self) -> Iterator[list[tree.Atom]]:
        """Collects the subqueries that are values of one condition, or of one branch."""
        outside, self.scalars = self.scalars, []
        try:
            yield self.scalars
        finally:
            self.scalars = outside

    def refuse(self, node: exp.Expr, feature: str, advice: str = "") -> tree.Term:
        self.scope.found.append(SqlUnsupported(span_of(node), feature=feature, advice=advice))
        return NOTHING

    def term(self, node: exp.Expr) -> tree.Term:
        node = inner(node)
        for known, term in self.known:
            if known == node:
                return term
        if type(node) in self._TRANSLATIONS:
            self.check_parts(node)
            return self._TRANSLATIONS[type(node)](self, node)
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
            return self.refuse(node, "a truth value as a column", "write CASE WHEN … THEN 1 ELSE 0 END")
        return self.refuse(node, name_of(node), _NO_NULLS if isinstance(node, exp.Null) else "")

    def check_parts(self, node: exp.Expr) -> None:
        """Refuses what sqlglot reads into a node that is translated without it."""
        for part, value in node.args.items():
            if value and part not in _PARTS:
                self.refuse(node, f"{node.key.upper()} with {part.strip('_').upper()}")

    def optional_term(self, node: exp.Expr) -> tree.Term:
        """Like `term`, but where a CASE has no ELSE its formulas do not hold: an aggregate skips nulls."""
        node = inner(node)
        return self._case(node, optional=True) if isinstance(node, exp.Case) else self.term(node)

    def _column(self, node: exp.Expr) -> tree.Term:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return self.refuse(node, name_of(node))
        return self.scope.column(node)

    def _operation(self, node: exp.Expr) -> tree.Term:
        left, right = self.term(node.this), self.term(node.expression)
        return tree.Call(_OPERATORS[type(node)], (left, right), span=span_of(node))

    def _literal(self, node: exp.Expr) -> tree.Term:
        span = span_of(node)
        if node.is_string:
            return tree.String(node.name, span)
        text = node.name.replace("_", "")
        if text.isdecimal():
            if len(text) > 20 or int(text) >= 1 << 64:
                self._bad_literal(span, node.name, "does not fit in 64 bits", "write it as a float or as text")
                return NOTHING
            return tree.Number(int(text), "", span)
        try:
            value = float(text)
        except ValueError:
            value = float("inf")
        if value == float("inf"):
            self._bad_literal(span, node.name, "is not a number that a float can hold", "write a smaller one")
            return NOTHING
        return tree.Number(value, ".", span)

    def _bad_literal(self, span: tree.Span, literal: str, problem: str, advice: str) -> None:
        self.scope.found.append(BadLiteral(span, literal=literal, problem=problem, advice=advice))

    def _negative(self, node: exp.Expr) -> tree.Term:
        term = self.term(node.this)
        if isinstance(term, tree.Number) and isinstance(inner(node.this), exp.Literal):
            return tree.Number(-term.value, term.suffix, span_of(node))
        return tree.Call("-", (term,), span=span_of(node))

    def _bit_complement(self, node: exp.Expr) -> tree.Term:
        return tree.Call("bnot", (self.term(node.this),), span=span_of(node))

    def _concatenation(self, node: exp.Expr) -> tree.Term:
        parts: list[exp.Expr] = [node]
        while isinstance(inner(parts[0]), exp.DPipe):
            pipe = inner(parts[0])
            parts[:1] = [pipe.this, pipe.expression]
        return tree.Call("cat", tuple(self.term(part) for part in parts), span=span_of(node))

    def _conversion(self, node: exp.Expr) -> tree.Term:
        to = type_of(node.args.get("to"))
        if to is None:
            return self.refuse(node, f"the type {node.args['to'].sql()}", "the types are BIGINT, DOUBLE and TEXT")
        return tree.Call(_CONVERSIONS[to], (self.term(node.this),), span=span_of(node))

    def _substring(self, node: exp.Expr) -> tree.Term:
        args = [node.this, node.args.get("start"), node.args.get("length")]
        return self._builtin(node, "SUBSTRING", [arg for arg in args if arg is not None])

    def _call(self, node: exp.Expr) -> tree.Term:
        registered = find_registered(node.name, self.queries.functions)
        if registered is not None:
            return self._registered(node, registered)
        name = node.name.upper()
        if name in AGGREGATES:
            self.scope.found.append(
                SqlShape(
                    span_of(node),
                    problem=f"the aggregate {node.name} cannot stand here",
                    advice="aggregates stand in the SELECT list and in HAVING, not inside each other",
                )
            )
            return NOTHING
        if name in BUILTINS:
            return self._builtin(node, name, node.expressions)
        advice = f"register a Python function of that name: functions={{'{node.name}': f}}"
        return self.refuse(node, f"the function {node.name}", _NO_NULLS if name in _FOR_NULLS else advice)

    def _builtin(self, node: exp.Expr, name: str, args: list[exp.Expr]) -> tree.Term:
        builtin = BUILTINS[name]
        terms = tuple(self.term(arg) for arg in args)
        if not builtin.takes(len(terms)):
            self._wrong_arity(node, name, builtin.arity, len(terms))
            return NOTHING
        if name.startswith("SUBSTR") and isinstance(terms[1], tree.Number) and terms[1].value < 1:
            return self.refuse(args[1], f"{name} from a position below 1", "the first character is at position 1")
        made = builtin.make(terms)
        return tree.Call(made.name, made.args, span=span_of(node)) if isinstance(made, tree.Call) else made

    def _registered(self, node: exp.Expr, name: str) -> tree.Term:
        function = self.queries.functions[name]
        declaration = declare(name, function)
        if declaration is None:
            self.scope.found.append(
                SqlShape(
                    span_of(node),
                    problem=f"the function {name} does not say the types of its arguments and its result",
                    advice="annotate each of them with int, float or str",
                )
            )
            return NOTHING
        expected = len(declaration.params)
        if expected != len(node.expressions):
            self._wrong_arity(node, name, counted(expected, "argument"), len(node.expressions))
        self.queries.catalog.functors[name] = declaration
        args = tuple(self.term(arg) for arg in node.expressions)
        return tree.Call(name, args, registered=True, span=span_of(node))

    def _wrong_arity(self, node: exp.Expr, name: str, arity: str, found: int) -> None:
        self.scope.found.append(
            SqlShape(span_of(node), problem=f"the function {name} takes {arity}, not {found}", advice="check the call")
        )

    def _case(self, node: exp.Expr, *, optional: bool = False) -> tree.Term:
        default = node.args.get("default")
        if isinstance(default, exp.Null):
            default = None
        if default is None and not optional:
            return self.refuse(node, "CASE without ELSE", "there are no nulls: add an ELSE")
        tests = [_test(node, branch) for branch in node.args["ifs"]]
        values = [branch.args["true"] for branch in node.args["ifs"]]
        result = self.scope.names.fresh("case_value")
        branches: list[tree.Formula] = []
        for at, value in enumerate([*values, default]):
            if value is None or isinstance(value, exp.Null):
                continue
            with self.aside() as formulas, self.own_scalars():
                formulas.extend(self.condition(test, positive=False, unknown=True) for test in tests[:at])
                formulas.extend(self.condition(test) for test in tests[at : at + 1])
                term = self.term(value)
            branches.append(conjunction([*formulas, tree.Constraint("=", result, term, span_of(value))]))
        self.formulas.append(disjunction(branches))
        return result

    def _scalar(self, node: exp.Expr) -> tree.Term:
        query = node.unnest()
        is_one_group = isinstance(query, exp.Select) and query.args.get("group") is None
        if not is_one_group or not has_aggregates(query, self.queries.functions):
            return self.refuse(
                node, "a subquery that may have several rows as a value", "put it into FROM, or aggregate it"
            )
        relation = self.queries.subquery(node, self.scope, "value")
        value = self.scope.names.fresh(*(relation.columns or ["value"])[:1])
        if relation.columns is not None and len(relation.columns) != 1:
            problem = f"a subquery used as a value has 1 column, not {len(relation.columns)}"
            self.scope.found.append(SqlShape(span_of(node), problem=problem, advice="select one column"))
        self.formulas.append(relation.atom([value], span_of(node)))
        self.scalars.append(relation.atom([tree.Wildcard()], span_of(node)))
        return value

    _TRANSLATIONS: ClassVar[Mapping[type[exp.Expr], Callable[[Terms, exp.Expr], tree.Term]]] = {
        **dict.fromkeys(_OPERATORS, _operation),
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Neg: _negative,
        exp.BitwiseNot: _bit_complement,
        exp.DPipe: _concatenation,
        exp.Cast: _conversion,
        exp.Substring: _substring,
        exp.Anonymous: _call,
        exp.Case: _case,
        exp.Subquery: _scalar,
    }


def _test(case: exp.Expr, branch: exp.Expr) -> exp.Expr:
    """The condition of a branch, also of `CASE x WHEN 1`."""
    if case.this is None:
        return branch.this  # type: ignore[no-any-return]
    return exp.EQ(this=case.this.copy(), expression=branch.this.copy())
