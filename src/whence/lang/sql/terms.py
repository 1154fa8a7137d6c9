"""Value expressions of SQL as terms.

What a term cannot say on its own, such as the branches of a CASE or a subquery, becomes formulas that stand beside it.
Where an expression is null, its term has no value, or the formulas beside it do not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Protocol

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import BadLiteral, SqlShape, SqlUnsupported
from whence.lang.sql.constants import negated, written
from whence.lang.sql.date_terms import BY_UNIT, by_unit, extracted, is_interval, shifted, written_moment
from whence.lang.sql.formulas import conjunction, counted, disjunction
from whence.lang.sql.functions import AGGREGATES, BUILTINS, TYPES, advice_on_moving, declare, find_registered, type_of
from whence.lang.sql.kinds import MOMENTS, is_decimal
from whence.lang.sql.library import FUNCTIONS
from whence.lang.sql.logic import Want
from whence.lang.sql.nodes import Functions, case_branches, equality, inner, is_predicate, name_of
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
_CONVERSIONS = {
    "number": "to_number",
    "unsigned": "to_unsigned",
    "float": "to_float",
    "symbol": "to_string",
    "bool": "to_bool",
    "date": "to_date",
    "timestamp": "to_timestamp",
}
_PARTS = frozenset(
    "_type alias catalog db default expression expressions field high ifs is_string length low negate position query safe start"
    " substr table this to typed unnest with_".split()
)
NOTHING = tree.Number(0)


class Subqueries(Protocol):
    """What expressions need of the translation of queries."""

    catalog: Catalog
    functions: Functions

    def subquery(self, node: exp.Expr, scope: Scope, purpose: str, *, existential: bool = False) -> Relation: ...

    def scalar(self, node: exp.Expr, scope: Scope) -> Relation: ...

    def any_row(self, query: exp.Expr, scope: Scope, compared: exp.Expr, want: Want, node: exp.Expr) -> Relation: ...


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

    def condition(self, node: exp.Expr, want: Want = Want.TRUE) -> tree.Formula:
        raise NotImplementedError

    def may_be_null(self, node: exp.Expr) -> bool:
        raise NotImplementedError

    def null(self, node: exp.Expr) -> tree.Formula:
        raise NotImplementedError

    def known_term(self, node: exp.Expr) -> tree.Term | None:
        return next((term for known, term in self.known if known == node), None)

    @contextmanager
    def aside(self) -> Iterator[list[tree.Formula]]:
        """Collects the formulas of one branch."""
        outside, self.formulas = self.formulas, []
        try:
            yield self.formulas
        finally:
            self.formulas = outside

    def refuse(self, node: exp.Expr, feature: str, advice: str = "") -> tree.Term:
        self.scope.found.append(SqlUnsupported(span_of(node), feature=feature, advice=advice))
        return NOTHING

    def term(self, node: exp.Expr) -> tree.Term:
        node = inner(node)
        known = self.known_term(node)
        if known is not None:
            return known
        if type(node) in self._TRANSLATIONS:
            self.check_parts(node)
            return self._TRANSLATIONS[type(node)](self, node)
        if is_predicate(node):
            return self._truth_value(node)
        return self.refuse(node, name_of(node))

    def check_parts(self, node: exp.Expr) -> None:
        """Refuses what sqlglot reads into a node that is translated without it."""
        for part, value in node.args.items():
            if value and part not in _PARTS:
                self.refuse(node, f"{node.key.upper()} with {part.strip('_').upper()}")

    def _column(self, node: exp.Expr) -> tree.Term:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return self.refuse(node, name_of(node))
        return self.scope.column(node)

    def _operation(self, node: exp.Expr) -> tree.Term:
        if isinstance(node, exp.Add | exp.Sub) and is_interval(node.expression):
            return shifted(self, node, node.this, node.expression)
        if isinstance(node, exp.Add) and is_interval(node.this):
            return shifted(self, node, node.expression, node.this)
        left, right = self.term(node.this), self.term(node.expression)
        return tree.Call(_OPERATORS[type(node)], (left, right), span=span_of(node))

    def _extract(self, node: exp.Expr) -> tree.Term:
        return extracted(self, node)

    def _literal(self, node: exp.Expr) -> tree.Term:
        span = span_of(node)
        if node.is_string:
            return tree.String(node.name, span)
        text = node.name.replace("_", "")
        if text.isdecimal():
            if len(text) > 20 or int(text) >= 1 << 64:
                self.bad_literal(span, node.name, "does not fit in 64 bits", "write it as a float or as text")
                return NOTHING
            return tree.Number(int(text), "", span)
        exact = written(text, span) if text.replace(".", "", 1).isdecimal() else None
        if exact is not None:
            return exact
        try:
            value = float(text)
        except ValueError:
            value = float("inf")
        if value == float("inf"):
            self.bad_literal(span, node.name, "is not a number that a float can hold", "write a smaller one")
            return NOTHING
        return tree.Number(value, ".", span)

    def bad_literal(self, span: tree.Span, literal: str, problem: str, advice: str) -> None:
        self.scope.found.append(BadLiteral(span, literal=literal, problem=problem, advice=advice))

    def _negative(self, node: exp.Expr) -> tree.Term:
        term = self.term(node.this)
        if isinstance(term, tree.Number) and isinstance(inner(node.this), exp.Literal):
            return tree.Number(-term.value, term.suffix, span_of(node))
        if isinstance(term, tree.Cast) and isinstance(inner(node.this), exp.Literal):
            return negated(term)
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
            return self.refuse(node, f"the type {node.args['to'].sql()}", TYPES)
        given = inner(node.this)
        if to in MOMENTS and isinstance(given, exp.Literal) and given.is_string:
            return written_moment(self, node, given, to)
        if is_decimal(to):
            return tree.Cast(self.term(given), tree.TypeRef(to), span_of(node))
        return tree.Call(_CONVERSIONS[to], (self.term(given),), span=span_of(node))

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
        if name in self._OVER_NULLS:
            return self._OVER_NULLS[name](self, node)
        if name in BY_UNIT:
            return by_unit(self, node)
        if name in BUILTINS:
            return self._builtin(node, name, node.expressions)
        if name in FUNCTIONS:
            return self._library(node, name, node.expressions)
        advice = advice_on_moving(name) or f"register a Python function of that name: functions={{'{node.name}': f}}"
        return self.refuse(node, f"the function {node.name}", advice)

    def _library(self, node: exp.Expr, name: str, args: list[exp.Expr]) -> tree.Term:
        function = FUNCTIONS[name]
        most = len(function.params)
        if not most - function.optional <= len(args) <= most:
            arity = (
                f"{most - function.optional} or {most} arguments" if function.optional else counted(most, "argument")
            )
            self.wrong_arity(node, name, arity, len(args))
            return NOTHING
        made = f"sql_{function.call.__name__}{len(args) if function.optional else ''}"
        self.queries.catalog.provide(made, function.call, function.params[: len(args)], function.result)
        return tree.Call(made, tuple(map(self.term, args)), registered=True, span=span_of(node))

    def _trim(self, node: exp.Expr) -> tree.Term:
        side = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position") or "").upper(), "TRIM")
        characters = node.args.get("expression")
        return self._library(node, side, [node.this, *([characters] if characters is not None else [])])

    def _position(self, node: exp.Expr) -> tree.Term:
        return self._library(node, "STRPOS", [node.this, node.args["substr"]])

    def _builtin(self, node: exp.Expr, name: str, args: list[exp.Expr]) -> tree.Term:
        builtin = BUILTINS[name]
        terms = tuple(self.term(arg) for arg in args)
        if not builtin.takes(len(terms)):
            self.wrong_arity(node, name, builtin.arity, len(terms))
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
                    advice="annotate each of them with int, float, str, bool, date or datetime",
                )
            )
            return NOTHING
        expected = len(declaration.params)
        if expected != len(node.expressions):
            self.wrong_arity(node, name, counted(expected, "argument"), len(node.expressions))
        self.queries.catalog.functors[name] = declaration
        args = tuple(self.term(arg) for arg in node.expressions)
        return tree.Call(name, args, registered=True, span=span_of(node))

    def wrong_arity(self, node: exp.Expr, name: str, arity: str, found: int) -> None:
        self.scope.found.append(
            SqlShape(span_of(node), problem=f"the function {name} takes {arity}, not {found}", advice="check the call")
        )

    def _case(self, node: exp.Expr) -> tree.Term:
        result = self.scope.fresh("case_value")
        branches: list[tree.Formula] = []
        before: list[exp.Expr] = []
        for test, value in case_branches(node):
            if value is not None and not isinstance(value, exp.Null):
                with self.aside() as formulas:
                    formulas.extend(self.condition(each, Want.NOT_TRUE) for each in before)
                    formulas.extend([] if test is None else [self.condition(test)])
                    self._bind(result, value)
                branches.append(conjunction(formulas))
            if test is not None:
                before.append(test)
        self.formulas.append(disjunction(branches))
        return result

    def _bind(self, result: tree.Variable, node: exp.Expr) -> None:
        """Gives a variable the value of an expression, where that is not null."""
        term = self.term(node)
        self.formulas.append(tree.Constraint("=", result, term, span_of(node)))
        if self.scope.is_nullable(term):
            self.formulas.append(tree.Constraint("!=", term, tree.Nil(), span_of(node)))

    def _truth_value(self, node: exp.Expr) -> tree.Term:
        """A condition as a value, which it has not where it is unknown."""
        if isinstance(node, exp.Boolean):
            return tree.Bool(bool(node.this), span_of(node))
        result, span = self.scope.fresh("truth"), span_of(node)
        cases: list[tree.Formula] = []
        for want, value in ((Want.TRUE, True), (Want.FALSE, False)):
            is_so = tree.Constraint("=", result, tree.Bool(value, span), span)
            condition = self.condition(node, want)
            if not (isinstance(condition, tree.Truth) and not condition.value):
                cases.append(conjunction([condition, is_so]))
        self.formulas.append(disjunction(cases))
        return result

    def _first_of(self, node: exp.Expr) -> tree.Term:
        """COALESCE: the first that is not null."""
        args = node.expressions
        if not args:
            self.wrong_arity(node, node.name, "1 or more arguments", 0)
            return NOTHING
        if len(args) == 1:
            return self.term(args[0])
        # Those behind one that is never null have no say in the value, but in its type.
        result = self.scope.fresh("first")
        cases: list[tree.Formula] = []
        for at, arg in enumerate(args):
            if isinstance(inner(arg), exp.Null):
                continue
            with self.aside() as formulas:
                formulas.extend(self.null(other) for other in args[:at])
                self._bind(result, arg)
            cases.append(conjunction(formulas))
        self.formulas.append(disjunction(cases))
        return result

    def _null_if(self, node: exp.Expr) -> tree.Term:
        if len(node.expressions) != 2:
            self.wrong_arity(node, node.name, "2 arguments", len(node.expressions))
            return NOTHING
        one, other = node.expressions
        self.formulas.append(self.condition(equality(one, other), Want.NOT_TRUE))
        return self.term(one)

    def _joined_text(self, node: exp.Expr) -> tree.Term:
        """CONCAT: nulls count as empty."""
        args = [_or_empty(arg) if self.may_be_null(arg) else arg for arg in node.expressions]
        return self._builtin(node, "CONCAT", args)

    def _extreme(self, node: exp.Expr) -> tree.Term:
        """GREATEST and LEAST: nulls do not count."""
        args = list(node.expressions)
        if not any(map(self.may_be_null, args)):
            return self._builtin(node, node.name.upper(), args)
        folded = args[0]
        for arg in args[1:]:
            folded = _extreme_of_two(folded, arg, exp.LTE if node.name.upper() == "LEAST" else exp.GTE)
        return self.term(folded)

    def scalar_atom(self, node: exp.Expr, value: tree.Term | None = None) -> tree.Atom:
        """The atom of a subquery that is used as a value; it has no row where the value is null."""
        relation = self.queries.scalar(node, self.scope)
        return relation.atom([tree.Wildcard() if value is None else value], span_of(node))

    def _scalar(self, node: exp.Expr) -> tree.Term:
        relation = self.queries.scalar(node, self.scope)
        value = self.scope.fresh(*(relation.columns or ["value"])[:1])
        self.formulas.append(relation.atom([value], span_of(node)))
        return value

    _OVER_NULLS: ClassVar[Mapping[str, Callable[[Terms, exp.Expr], tree.Term]]] = {
        **dict.fromkeys(("COALESCE", "IFNULL", "NVL"), _first_of),
        "NULLIF": _null_if,
        "CONCAT": _joined_text,
        **dict.fromkeys(("GREATEST", "LEAST"), _extreme),
    }

    def _no_value(self, node: exp.Expr) -> tree.Term:
        """NULL: whatever it stands in does not hold."""
        self.formulas.append(tree.Truth(value=False, span=span_of(node)))
        return tree.Nil(span_of(node))

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
        exp.Trim: _trim,
        exp.Extract: _extract,
        exp.StrPosition: _position,
        exp.Null: _no_value,
        exp.Subquery: _scalar,
    }


def _or_empty(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="COALESCE", expressions=[node.copy(), exp.Literal.string("")])


def _extreme_of_two(one: exp.Expr, other: exp.Expr, comparison: type[exp.Expr]) -> exp.Expr:
    def null(node: exp.Expr) -> exp.Expr:
        return exp.Is(this=node.copy(), expression=exp.Null())

    branches = [
        exp.If(this=null(one), true=other.copy()),
        exp.If(this=null(other), true=one.copy()),
        exp.If(this=comparison(this=one.copy(), expression=other.copy()), true=one.copy()),
    ]
    return exp.Case(ifs=branches, default=other.copy())
