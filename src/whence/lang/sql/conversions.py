"""The conversions that SQL leaves unsaid.

SQL compares and adds integers, decimals and floats freely, dates and timestamps too, and joins text with all of them; Whence
does not, so conversions are put in where the kinds are known, and those that were written but change nothing are taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whence.lang import tree
from whence.lang.declare import decimal_of
from whence.lang.diagnostics import BadLiteral, SqlUnsupported
from whence.lang.rewrite import rebuild
from whence.lang.sql.column_types import RESULTS, ColumnTypes, rounding_digits
from whence.lang.sql.constants import (
    MIRRORED,
    against_constant,
    beside,
    moment,
    moment_in,
    nearest,
    number_in,
    of_decimal,
)
from whence.lang.sql.formulas import conjunction, disjunction, variables
from whence.lang.sql.kinds import MOMENTS, NUMERIC, WHOLE, decimal, is_decimal, is_number, join, of_operation, scale_of
from whence.lang.sql.library import OF_DECIMALS, round_even, round_tens, timestamp_text
from whence.lang.sql.nulls import is_nil, is_not_nil
from whence.lang.sql.relations import Catalog, Draft, Names
from whence.lang.types import MOST_DIGITS

_CONVERSIONS = {
    "to_number": "number",
    "to_unsigned": "unsigned",
    "to_float": "float",
    "to_string": "symbol",
    "to_bool": "bool",
    "to_date": "date",
    "to_timestamp": "timestamp",
}
_WRITTEN = NUMERIC | {"bool", "date", "timestamp"}


def convert(draft: Draft, types: ColumnTypes, catalog: Catalog) -> Draft:
    """The draft with the conversions that its types ask for."""
    bound = {name for formula in draft.body for name in _bound(formula)} | set(draft.relation.outer)
    own = types.columns[draft.relation.name][len(draft.relation.outer) :]
    conversions = _Conversions(types, _settled(draft, types, own), catalog, frozenset(bound))
    body = [rebuild(rebuild(formula, conversions.guarded), conversions.change) for formula in draft.body]
    values = tuple(rebuild(value, conversions.change) for value in draft.values)
    if len(own) != len(values):
        return replace(draft, values=values, body=body)
    names = Names(variables((*draft.values, *draft.body)))
    stored: list[tree.Term] = []
    for value, kind in zip(values, own, strict=True):
        fitted = conversions.fit(value, kind, is_stored=True)
        if fitted is not value and isinstance(value, tree.Variable) and value.name in draft.nullables:
            # Nothing can be made of nil but nil.
            made = names.fresh(value.name, "converted")
            is_made = tree.Constraint("=", made, fitted, value.span)
            body.append(
                disjunction([conjunction([is_not_nil(value), is_made]), conjunction([is_nil(value), is_nil(made)])])
            )
            fitted = made
        stored.append(fitted)
    return replace(draft, values=tuple(stored), body=body)


def _bound(formula: tree.Formula) -> list[str]:
    """The variables that atoms bind where the formula holds, and inside of its aggregate."""
    if isinstance(formula, tree.Atom):
        return [arg.name for arg in formula.args if isinstance(arg, tree.Variable)]
    if isinstance(formula, tree.And):
        return [name for item in formula.items for name in _bound(item)]
    if isinstance(formula, tree.Constraint) and isinstance(formula.right, tree.Aggregate):
        return _bound(formula.right.body)
    return []


def _settled(draft: Draft, types: ColumnTypes, own: Sequence[str | None]) -> dict[str, str | None]:
    """The kinds of a rule's variables: what is computed for a column, or for a list of rows, is so at once in its kind."""
    env = types.variables(draft)
    nodes = [node for formula in draft.body for node in tree.walk(formula)]
    calls = [node for node in nodes if isinstance(node, tree.Call)]
    lists = [call for call in calls if call.registered and call.name in types.listings]
    wanted: dict[str, str | None] = {}
    for terms, kinds in (*(_entry(call, types) for call in lists), (draft.values, own)):
        for term, kind in zip(terms, kinds, strict=False):
            if isinstance(term, tree.Variable):
                wanted.setdefault(term.name, kind)
    used = (*(node for node in nodes if isinstance(node, tree.Atom)), *(call for call in calls if call not in lists))
    others = {*variables(used), *draft.relation.outer}
    for name, kind in wanted.items():
        if name not in others and join(env.get(name), kind) == kind:
            env[name] = kind
    return env


def _entry(call: tree.Call, types: ColumnTypes) -> tuple[Sequence[tree.Term], Sequence[str | None]]:
    """The row that a function of listed rows is asked for, and the kinds of its columns."""
    listing, row = types.listings[call.name], call.args[-1]
    columns = types.columns[listing.rows.name][len(listing.rows.outer) :]
    return (row.items if isinstance(row, tree.Bracket) else ()), [columns[at] for at in listing.entry]


@dataclass(frozen=True)
class _Conversions:
    """`bound` are the variables that atoms give a value: what is beside them has their kind."""

    types: ColumnTypes
    env: dict[str, str | None]
    catalog: Catalog
    bound: frozenset[str]

    def guarded(self, node: object) -> object:
        """A conversion has no value for nil. One that changes nothing goes, and that stays: what is compared is not nil."""
        if isinstance(node, tree.And):
            return conjunction(node.items)
        if not isinstance(node, tree.Constraint):
            return node
        bare = [self._unconverted(side) for side in (node.left, node.right)]
        return conjunction([*(is_not_nil(side) for side in bare if side is not None), node])

    def _unconverted(self, term: tree.Term) -> tree.Variable | None:
        """The variable that a conversion is of, if it changes nothing."""
        found = term
        while True:
            if isinstance(found, tree.Call) and _CONVERSIONS.get(found.name) == self.kind(found.args[0]):
                found = found.args[0]
            elif isinstance(found, tree.Cast) and found.type.name == self.kind(found.term):
                found = found.term
            else:
                return found if found is not term and isinstance(found, tree.Variable) else None

    def kind(self, term: tree.Term) -> str | None:
        return self.types.of(term, self.env)

    def change(self, node: object) -> object:
        if isinstance(node, tree.Call):
            return self._call(node)
        if isinstance(node, tree.Cast):
            return self._cast(node)
        if isinstance(node, tree.Constraint) and node.op == "zero":
            return self._no_quotient(node)
        if isinstance(node, tree.Constraint) and node.op not in ("match", "contains"):
            return self._comparison(node)
        if isinstance(node, tree.Atom):
            args = self._fit_all(node.args, self.types.columns.get(node.relation, ()))
            return replace(node, args=tuple(map(_plain, args)))
        return node

    def _no_quotient(self, node: tree.Constraint) -> tree.Formula:
        """That a quotient has no value, since what it is divided by is zero: only a float can be divided by it."""
        assert isinstance(node.left, tree.Call)
        divisor = node.left.args[-1]
        if self.kind(divisor) == "float":
            return tree.Truth(value=False, span=node.span)
        return replace(node, op="=", left=divisor)

    # -- comparisons

    def _comparison(self, node: tree.Constraint) -> tree.Formula:
        left, right = self.kind(node.left), self.kind(node.right)
        if isinstance(node.left, tree.Nil) or isinstance(node.right, tree.Nil) or left == right:
            return node
        if "float" in (left, right) or not (_is_exact(left) and _is_exact(right)):
            wanted = self.types.common((node.left, node.right), self.env)
            return replace(node, left=self.fit(node.left, wanted), right=self.fit(node.right, wanted))
        for term, kind, other, op in (
            (node.left, left, node.right, node.op),
            (node.right, right, node.left, MIRRORED.get(node.op, "")),
        ):
            if self._is_settled(term, kind) and _is_constant(other) and not _is_constant(term) and op:
                found = against_constant(op, term, str(kind), other, node.span)
                if found is not None:
                    return found
        if node.op == "=" or not is_number(left):
            finer = self._finer(node, left, right)
            equal = replace(node, left=self.fit(node.left, finer), right=self.fit(node.right, finer))
            return conjunction([*self._within(node, finer), equal])
        if not (is_decimal(left) or is_decimal(right)):
            return node
        return self._compared(node, left, right)

    def _is_settled(self, term: tree.Term, kind: str | None) -> bool:
        """Whether the term tells the kind of a literal beside it."""
        return (not isinstance(term, tree.Variable) or term.name in self.bound) and kind != "integer"

    def _finer(self, node: tree.Constraint, left: str | None, right: str | None) -> str | None:
        """What has a value of the finer kind and none of the coarser cannot be equal: so this kind is enough."""
        if not (is_decimal(left) or is_decimal(right)):
            return self.types.common((node.left, node.right), self.env)
        for one, other in ((left, right), (right, left)):
            # A literal, and a variable that is about to get its value, are of no kind of their own.
            if one == "integer" or (one in WHOLE and is_decimal(other)):
                return other
        scales = scale_of(left) or 0, scale_of(right) or 0
        if scales[0] != scales[1]:
            return left if scales[0] > scales[1] else right
        return max(left or "", right or "", key=_digits)

    def _within(self, node: tree.Constraint, finer: str | None) -> list[tree.Formula]:
        """That a number is small enough to be one of a kind with fewer digits before the point: others are not equal."""
        exact = decimal_of(finer or "")
        sides = [(node.left, self.kind(node.left)), (node.right, self.kind(node.right))]
        if exact is None or not all(self._is_settled(*side) for side in sides):
            return []
        most = 10 ** (exact.precision - exact.scale)
        return [
            tree.Constraint(op, term, tree.Number(bound, "", node.span), node.span)
            for term, kind in sides
            if kind != finer and _whole_digits(kind) > exact.precision - exact.scale
            for op, bound in (("<", most), (">", -most))
        ]

    def _compared(self, node: tree.Constraint, left: str | None, right: str | None) -> tree.Formula:
        """Decimals of different scales, exactly."""
        one, other, op = node.left, node.right, node.op
        if not is_decimal(left):
            one, other, left, right, op = other, one, right, left, MIRRORED[op]
        other = self.fit(other, decimal(0)) if right == "unsigned" else other
        return tree.Constraint(op, tree.Call("compare", (one, other), span=node.span), tree.Number(0), node.span)

    # -- calls

    def _call(self, node: tree.Call) -> tree.Term:
        if node.registered and node.name in self.types.listings:
            return node
        if node.registered and node.name in OF_DECIMALS and is_decimal(self.kind(node.args[0])):
            return self._of_decimals(node)
        if node.registered:
            params = [param.name for param in self.types.functors[node.name].params]
            return replace(node, args=self._fit_all(node.args, params))
        if node.name in _CONVERSIONS:
            return self._conversion(node)
        if node.name == "cat":
            return replace(node, args=tuple(map(self._text, node.args)))
        if node.name in RESULTS or node.name in ("date_trunc", "date_add"):
            return node
        kinds = [self.kind(arg) for arg in node.args]
        if node.name in ("+", "-") and len(kinds) == 2 and not MOMENTS.isdisjoint(kinds):
            return self._with_moments(node, kinds)
        wanted = self.types.common(node.args, self.env)
        if node.name in ("floor", "ceil"):
            return replace(node, args=(self.fit(node.args[0], wanted if is_decimal(wanted) else "float"),))
        if is_decimal(wanted) and node.name in ("*", "/"):
            kinds = [decimal(0) if kind in ("number", "unsigned") else kind for kind in kinds]
            self._check_digits(node, kinds)
            return replace(node, args=self._fit_all(node.args, kinds))
        wanted = of_operation(node.name, kinds) if is_decimal(wanted) else wanted
        args = tuple(self.fit(arg, wanted) for arg in node.args)
        return replace(node, args=args if all(map(_is_constant, args)) else tuple(map(_whole, args)))

    def _check_digits(self, node: tree.Call, kinds: list[str | None]) -> None:
        digits = sum(scale_of(kind) or 0 for kind in kinds)
        if node.name == "*" and digits > MOST_DIGITS:
            feature = f"a product with {digits} digits behind the point"
            advice = f"there can be {MOST_DIGITS}: round what is multiplied first, as in CAST(x AS DECIMAL(18,4))"
            self.catalog.found.append(SqlUnsupported(node.span, feature=feature, advice=advice))

    def _with_moments(self, node: tree.Call, kinds: list[str | None]) -> tree.Term:
        """Days are added to dates, and dates are so many days apart."""
        left, right = node.args
        if kinds == ["date", "date"]:
            return replace(node, name="days_between", args=(right, left))
        if set(kinds) <= MOMENTS and node.name == "-":
            advice = "write DATE_DIFF('second', a, b), or EXTRACT(EPOCH FROM b - a)"
            self.catalog.found.append(
                SqlUnsupported(node.span, feature="an INTERVAL, the difference of two timestamps,", advice=advice)
            )
            return node
        if kinds[0] == "date" and kinds[1] in WHOLE:
            count = right if node.name == "+" else _negated(right)
            return replace(node, name="date_add", args=(left, count))
        if kinds[1] == "date" and kinds[0] in WHOLE and node.name == "+":
            return replace(node, name="date_add", args=(right, left))
        return node

    def _of_decimals(self, node: tree.Call) -> tree.Term:
        """ROUND, TRUNC and SIGN of a decimal."""
        value, name, kind = node.args[0], OF_DECIMALS[node.name], str(self.kind(node.args[0]))
        if name == "SIGN":
            return tree.Call("compare", (value, tree.Number(0)), span=node.span)
        if name == "TRUNC":
            return self.fit(tree.Call("to_number", (value,), span=node.span), decimal(0))
        digits = rounding_digits(node)
        if digits is None:
            return replace(node, args=(self.fit(value, "float"), *node.args[1:]))
        if digits >= 0:
            return tree.Cast(value, tree.TypeRef(decimal(min(digits, scale_of(kind) or 0))), node.span)
        name = f"sql_round_tens_{kind.translate(str.maketrans('(,', '__', ')'))}"
        self.catalog.provide(name, round_tens, (kind, "number"), decimal(0))
        return tree.Call(name, (value, tree.Number(digits)), registered=True, span=node.span)

    # -- conversions

    def _conversion(self, node: tree.Call) -> tree.Term:
        value = node.args[0]
        kind, wanted = self.kind(value), _CONVERSIONS[node.name]
        if kind == wanted:
            return value
        if node.name in ("to_date", "to_timestamp"):
            return node
        if node.name == "to_string":
            return self._text(value)
        if node.name == "to_number" and kind == "float":
            self.catalog.provide("sql_round_even", round_even, ("float",), "float")
            rounded = tree.Call("sql_round_even", (value,), registered=True, span=node.span)
            return replace(node, args=(rounded,))
        if is_decimal(kind) and node.name in ("to_number", "to_unsigned"):
            whole = tree.Call("to_number", (self.fit(value, decimal(0), is_stored=True),), span=node.span)
            return whole if node.name == "to_number" else replace(node, args=(whole,))
        return self.fit(value, "float") if node.name == "to_float" and is_number(kind) else node

    def _cast(self, node: tree.Cast) -> tree.Term:
        if _is_constant(node):
            return node
        kind = self.kind(node.term)
        if kind == node.type.name:
            return node.term
        if kind == "bool":
            return replace(node, term=tree.Call("to_number", (node.term,), span=node.span))
        return node

    def _text(self, term: tree.Term) -> tree.Term:
        kind = self.kind(term)
        if kind == "timestamp":
            self.catalog.provide("sql_timestamp_text", timestamp_text, ("timestamp",), "symbol")
            return tree.Call("sql_timestamp_text", (term,), registered=True, span=term.span)
        # to_string cuts a float off after six digits.
        name = "to_text" if kind == "float" else "to_string"
        return tree.Call(name, (term,), span=term.span) if kind in _WRITTEN or is_decimal(kind) else term

    def fit(self, term: tree.Term, wanted: str | None, *, is_stored: bool = False) -> tree.Term:
        """The term as one of the kind that is wanted. What is stored is rounded; elsewhere a literal stays what it is."""
        kind = self.kind(term)
        if kind is None or kind == wanted or isinstance(term, tree.Nil):
            return term
        if wanted == "float":
            number = number_in(term)
            if number is not None:
                return tree.Number(float(number), ".", term.span)
            return tree.Call("to_float", (term,), span=term.span) if is_number(kind) else term
        if is_decimal(wanted) and (is_number(kind) or isinstance(term, tree.String)):
            return self._fit_decimal(term, str(wanted), is_stored=is_stored)
        if isinstance(term, tree.String) and wanted in MOMENTS:
            return moment(term.value, str(wanted), term.span) or self._bad(term, str(wanted))
        if kind in MOMENTS and wanted in MOMENTS:
            return tree.Call(f"to_{wanted}", (term,), span=term.span)
        if wanted == "number" and is_decimal(kind):
            return self._conversion(tree.Call("to_number", (term,), span=term.span))
        return term

    def _fit_decimal(self, term: tree.Term, wanted: str, *, is_stored: bool) -> tree.Term:
        exact = decimal_of(wanted)
        assert exact is not None
        if not (_is_constant(term) or isinstance(term, tree.String)):
            return tree.Cast(term, tree.TypeRef(wanted), term.span)
        near = nearest(term, exact)
        if near is None:
            return self._bad(term, wanted)
        if is_stored or near == number_in(term):
            return beside(near, exact, term.span) if is_stored else of_decimal(near, exact, term.span)
        return term

    def _bad(self, term: tree.Term, wanted: str) -> tree.Term:
        number = number_in(term)
        literal = term.value if isinstance(term, tree.String) else str(number)
        advice = {"date": "write one as in 1995-03-15", "timestamp": "write one as in 1995-03-15 12:30:00"}.get(wanted)
        problem = (
            f"is not a {wanted}" if advice or isinstance(term, tree.String) else f"has too many digits for {wanted}"
        )
        advice = advice or f"write a number that fits {wanted}"
        self.catalog.found.append(BadLiteral(term.span, literal=literal, problem=problem, advice=advice))
        return term

    def _fit_all(self, terms: tuple[tree.Term, ...], wanted: Sequence[str | None]) -> tuple[tree.Term, ...]:
        if len(terms) != len(wanted):
            return terms
        return tuple(self.fit(term, kind) for term, kind in zip(terms, wanted, strict=True))


def _is_exact(kind: str | None) -> bool:
    """Whether values of the kind are compared without being made floats or text."""
    return kind in WHOLE or is_decimal(kind) or kind in MOMENTS


def _is_constant(term: tree.Term) -> bool:
    return number_in(term) is not None or moment_in(term) is not None


def _plain(term: tree.Term) -> tree.Term:
    """The literal of a decimal where something else tells its kind."""
    value = number_in(term) if isinstance(term, tree.Cast) else None
    exact = decimal_of(term.type.name) if isinstance(term, tree.Cast) else None
    return term if value is None or exact is None else beside(value, exact, term.span)


def _whole(term: tree.Term) -> tree.Term:
    """The literal of a decimal without digits behind the point as an integer, which takes the kind of what it meets."""
    plain = _plain(term)
    return plain if isinstance(plain, tree.Number) and isinstance(plain.value, int) else term


def _negated(term: tree.Term) -> tree.Term:
    if isinstance(term, tree.Number):
        return tree.Number(-term.value, term.suffix, term.span)
    return tree.Call("-", (term,), span=term.span)


def _whole_digits(kind: str | None) -> int:
    """How many digits there can be before the point; an unsigned number is not compared with a negative one."""
    exact = decimal_of(kind or "")
    return exact.precision - exact.scale if exact is not None else 19 if kind == "number" else 0


def _digits(kind: str) -> int:
    exact = decimal_of(kind)
    return exact.precision if exact is not None else 0
