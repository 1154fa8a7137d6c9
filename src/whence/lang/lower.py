"""Flat, typed rules to the rules of a `Program`: kinds filled in, equalities of structures taken apart, bodies ordered."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TypeGuard

from whence.lang import program as core
from whence.lang import tree
from whence.lang.describe import conversion, plain
from whence.lang.diagnostics import (
    BadLiteral,
    Diagnostic,
    MisplacedWildcard,
    NotApplicable,
    NotASubtype,
    TypeConflict,
    UnboundVariable,
)
from whence.lang.functors import WORD, cast, implementation, to_signed, to_unsigned
from whence.lang.infer_rule import RuleInference
from whence.lang.normalize import FlatAggregate, FlatLiteral, FlatRange, FlatRule
from whence.lang.order import is_bound, is_ready, names_in, names_met, order_body
from whence.lang.scalars import rounded
from whence.lang.tree import Span
from whence.lang.types import BOOL, FLOAT, NUMBER, PRIMITIVES, SYMBOL, UNSIGNED, DecimalKind, Kind, ListKind, RecordKind
from whence.lang.undefined import Undefined


def lower_rule(inference: RuleInference, found: list[Diagnostic]) -> core.Rule | core.Subsumption:
    """The rule in evaluation order. Variables that nothing binds are reported."""
    flat = inference.rule
    if len(inference.program.declarations.types.members) > len(PRIMITIVES):
        _check_subtypes(inference, found)
    lowering = _Lowering(inference, found)
    head = lowering.head(flat.head)
    literals = [core_literal for literal in flat.body for core_literal in lowering.literal(literal)]
    body, _ = lowering.order(literals, frozenset(), *head.args)
    inference.report_untyped({plain(name) for name in lowering.unbound})
    if lowering.unbound or lowering.has_wildcards:
        inference.program.untyped.add(flat.head.relation)
    if flat.dominating is not None:
        dominating = lowering.head(flat.dominating)
        return core.Subsumption(flat.name, head, dominating, tuple(body), flat.span)
    return core.Rule(flat.name, head, tuple(body), flat.span)


def equate(left: core.Term, right: core.Term, span: Span) -> list[core.Literal]:
    """An equality; that of two structures becomes equalities of their parts."""
    if isinstance(left, core.Make) and isinstance(right, core.Make):
        if left.branch != right.branch or len(left.args) != len(right.args):
            return [core.Comparison("!=", core.Const(0, NUMBER), core.Const(0, NUMBER), span)]
        return [part for one, other in zip(left.args, right.args, strict=True) for part in equate(one, other, span)]
    if isinstance(left, core.Anything) or isinstance(right, core.Anything):
        return []
    return [core.Comparison("=", left, right, span)]


class _Lowering:
    def __init__(self, inference: RuleInference, found: list[Diagnostic]) -> None:
        self.inference = inference
        self.found = found
        self.unbound: set[str] = set()
        self.has_wildcards = False
        self.tested = 0

    def order(
        self, literals: list[core.Literal], outer: frozenset[str], *results: core.Term
    ) -> tuple[list[core.Literal], set[str]]:
        """The literals in evaluation order and the variables they bind. `results` are made of those."""
        ordered, bound = self._order(literals, outer)
        unbound = {name for term in results for name in names_in(term)} - bound
        if len(ordered) < len(literals):
            placed = {id(literal) for literal in ordered}
            for literal in literals:
                if id(literal) not in placed:
                    missing = set(names_met(literal)) - bound
                    unbound |= missing
                    if not missing:
                        self._refuse_wildcards(literal)
        if unbound:
            # Report what has to be bound, not what would follow from it.
            causes = {name for name in unbound if name not in order_body(literals, outer | (unbound - {name}))[1]}
            self.unbound |= unbound
            if not self.inference.unbinding:
                self.found.extend(_report_unbound(self.inference.rule, name) for name in sorted(causes or unbound))
        return ordered, bound

    def _order(self, literals: list[core.Literal], outer: frozenset[str]) -> tuple[list[core.Literal], set[str]]:
        """The literals in order. Where atoms wait for each other, expressions among their arguments become tests."""
        tried = list(literals)
        while True:
            ordered, bound = order_body(tried, outer)
            if len(ordered) == len(tried):
                return ordered, bound
            placed = {id(literal) for literal in ordered}
            waiting = [
                literal
                for literal in tried
                if isinstance(literal, core.Atom) and id(literal) not in placed and not is_ready(literal, bound)
            ]
            if not waiting:
                return order_body(
                    literals, outer
                )  # it is not for the expressions: say what is unbound as it is written
            chosen = max(waiting, key=lambda atom: sum(is_bound(arg, bound) for arg in atom.args))
            tests: list[core.Literal] = []
            args = tuple(self._without_expressions(arg, bound, chosen.span, tests) for arg in chosen.args)
            at = tried.index(chosen)
            tried[at : at + 1] = [core.Atom(chosen.relation, args, chosen.span), *tests]

    def _without_expressions(
        self, term: core.Term, bound: set[str], span: Span, tests: list[core.Literal]
    ) -> core.Term:
        """The term with a variable for each expression that has no value yet, and the tests that they are equal."""
        match term:
            case core.Apply() if not is_bound(term, bound):
                self.tested += 1
                value = core.Var(f"value#t{self.tested}", term.kind)
                tests.append(core.Comparison("=", value, term, span))
                return value
            case core.Make(args=args):
                return replace(term, args=tuple(self._without_expressions(arg, bound, span, tests) for arg in args))
            case core.Cons(items=items, rest=rest):
                parts = tuple(self._without_expressions(item, bound, span, tests) for item in items)
                return replace(term, items=parts, rest=self._without_expressions(rest, bound, span, tests))
            case _:
                return term

    def _refuse_wildcards(self, literal: core.Literal) -> None:
        """Reports a literal that cannot be evaluated although its variables are bound."""
        if not self.has_wildcards:
            self.found.append(
                MisplacedWildcard(literal.span, advice="neither side has a value: name what _ stands for")
            )

    # -- literals

    def head(self, atom: tree.Atom) -> core.Atom:
        return core.Atom(atom.relation, tuple(self.value(arg) for arg in atom.args), atom.span)

    def literal(self, literal: FlatLiteral) -> list[core.Literal]:
        match literal:
            case tree.Atom():
                return [self._atom(literal)]
            case tree.Not(item=tree.Atom() as atom):
                return [core.Negation(self._atom(atom), literal.span)]
            case tree.Constraint(op=op, left=left, right=right):
                if op == "=":  # one side is a pattern
                    return equate(self.term(left), self.term(right), literal.span)
                return [core.Comparison(op, self.value(left), self.value(right), literal.span)]
            case FlatRange(target=target, args=args):
                return [core.Generator(self.term(target), tuple(self.value(arg) for arg in args), literal.span)]
            case FlatAggregate():
                return [self._aggregate(literal)]
            case _:
                raise AssertionError(literal)

    def _atom(self, atom: tree.Atom) -> core.Atom:
        columns = self.inference.program.columns.get(atom.relation)
        if columns is None or len(columns) != len(atom.args):  # reported already
            return core.Atom(atom.relation, (), atom.span)
        args: list[core.Term] = []
        for arg, column in zip(atom.args, columns, strict=True):
            if isinstance(arg, tree.Wildcard):
                args.append(core.Anything(self.inference.program.kinds.resolve(column) or SYMBOL))
            else:
                args.append(self.term(arg))
        return core.Atom(atom.relation, tuple(args), atom.span)

    def _aggregate(self, literal: FlatAggregate) -> core.Aggregation:
        value = None if literal.value is None else self.value(literal.value)
        bodies = []
        bound: list[set[str]] = []
        for flat in literal.bodies:
            literals = [each for inner in flat for each in self.literal(inner)]
            body, inside = self.order(literals, literal.outer, *(() if value is None else (value,)))
            bodies.append(tuple(body))
            bound.append(inside)
        shared = set.intersection(*bound) - literal.outer if bound else set()
        return core.Aggregation(
            self.term(literal.target),
            literal.op,
            value,
            tuple(bodies),
            tuple(sorted(shared)),
            tuple(sorted(literal.outer)),
            literal.span,
        )

    # -- terms

    def value(self, term: tree.Term) -> core.Term:
        """A term that must have a value: no wildcard in it."""
        if isinstance(term, tree.Wildcard | tree.Bracket | tree.Branch):
            for part in tree.walk(term):
                if isinstance(part, tree.Wildcard):
                    self.found.append(MisplacedWildcard(part.span, advice="name the value, and bind it in the body"))
                    self.has_wildcards = True
        return self.term(term)

    def term(self, term: tree.Term) -> core.Term:
        match term:
            case tree.Variable(name=name):
                return core.Var(name, self.inference.kind_of(term))
            case tree.String(value=text):
                return core.Const(text, SYMBOL)
            case tree.Number():
                return self._number(term)
            case tree.Wildcard():
                kind = (
                    self.inference.program.kinds.resolve(self.inference.terms[id(term)])
                    if id(term) in self.inference.terms
                    else None
                )
                return core.Anything(kind or SYMBOL)
            case tree.Bool(value=value):
                return core.Const(value, BOOL)
            case tree.Nil():
                kind = self.inference.kind_of(term)
                self.inference.program.has_nil |= not isinstance(kind, RecordKind)
                return core.Const(None, kind)
            case tree.Bracket(items=items, rest=rest):
                kind = self.inference.kind_of(term)
                parts = tuple(self.term(item) for item in items)
                if rest is None:
                    return core.Make(parts, kind)
                return core.Cons(parts, self.term(rest), kind) if parts else self.term(rest)
            case tree.Branch(name=name, args=args):
                return core.Make(tuple(self.term(arg) for arg in args), self.inference.kind_of(term), name)
            case tree.Cast(term=inner):
                return self._cast(term, self.value(inner))
            case tree.Call(name=name, args=args):
                return self._call(term, name, args)
            case _:
                raise AssertionError(term)

    def _call(self, term: tree.Call, name: str, args: tuple[tree.Term, ...]) -> core.Term:
        kind = self.inference.kind_of(term)
        declarations = self.inference.program.declarations
        if (
            name not in declarations.functors
            and not isinstance(kind, type(NUMBER))
            and not isinstance(kind, ListKind | RecordKind)
        ):
            return core.Make(tuple(self.term(arg) for arg in args), kind, name)
        values = tuple(self.value(arg) for arg in args)
        folded = _folded(name, values, kind) if name not in declarations.functors else None
        return folded or core.Apply(name, values, kind)

    def _cast(self, term: tree.Cast, inner: core.Term) -> core.Term:
        target = self.inference.kind_of(term)
        if isinstance(inner, core.Const) and isinstance(inner.value, int) and target in (NUMBER, UNSIGNED):
            return core.Const(to_signed(inner.value) if target == NUMBER else to_unsigned(inner.value), target)
        if isinstance(term.term, tree.Number) and term.term.suffix == "" and target == FLOAT:
            return core.Const(float(term.term.value) + 0.0, FLOAT)
        convert = cast(inner.kind, target)
        if isinstance(target, DecimalKind) and isinstance(inner, core.Const) and convert is not None:
            try:
                return core.Const(convert(inner.value), target)
            except Undefined:  # said when the rule is evaluated
                return core.Apply("as", (inner,), target)
        if convert is None and not self.inference.untyping:
            advice = conversion("…", inner.kind, target, self.inference.program.declarations.types)
            self.found.append(NotApplicable(term.span, functor=f"as(…, {target})", type=str(inner.kind), advice=advice))
        return inner if inner.kind == target else core.Apply("as", (inner,), target)

    def _decimal(self, term: tree.Number, kind: DecimalKind) -> core.Const:
        """Digits are told exactly as far as a float has them, whose digits a literal with a point was read as."""
        written = Decimal(repr(term.value))
        value = rounded(written, kind) if written.is_finite() else None
        if value is None or value != written or (term.suffix == "." and len(written.as_tuple().digits) > _EXACT_DIGITS):
            self.found.append(
                BadLiteral(
                    term.span,
                    literal=str(term.value),
                    problem=f"is not a {kind}",
                    advice=f'as("{term.value}", {kind}) rounds, and reads any number of digits',
                )
            )
        return core.Const(value or Decimal(0), kind)

    def _number(self, term: tree.Number, kind: Kind | None = None) -> core.Const:
        kind = kind or self.inference.kind_of(term)
        if kind == FLOAT:
            return core.Const(float(term.value) + 0.0, FLOAT)
        if isinstance(kind, DecimalKind):
            return self._decimal(term, kind)
        low, high = (0, WORD) if kind == UNSIGNED else (-(WORD >> 1), WORD >> 1)
        if kind in (NUMBER, UNSIGNED) and not low <= term.value < high:
            self.found.append(
                BadLiteral(
                    term.span,
                    literal=str(term.value),
                    problem=f"is out of range for {kind}",
                    advice=f"its values lie between {low} and {high - 1}",
                )
            )
        return core.Const(term.value, kind)


_EXACT_DIGITS = 15  # that every float tells apart
# Functors with which programs write dates and the like down: what they make of constants is a constant.
_WRITING = frozenset({"to_bool", "to_date", "to_timestamp", "make_date", "date_add", "date_trunc"})


def _folded(name: str, args: tuple[core.Term, ...], kind: Kind) -> core.Const | None:
    if name not in _WRITING:
        return None
    values = [arg.value for arg in args if isinstance(arg, core.Const) and arg.value is not None]
    if len(values) < len(args):
        return None
    try:
        return core.Const(implementation(name, args[0].kind, kind)(*values), kind)
    except Undefined:  # said when the rule is evaluated, as of all that has no value
        return None


# -- binding ----------------------------------------------------------------------------------------------------------


def _report_unbound(flat: FlatRule, name: str) -> UnboundVariable:
    places = [part.span for part in tree.walk((flat.head, flat.body)) if _is_variable(part, name)]
    word = plain(name)
    if not flat.body:
        advice = f'a fact has no variables: write "{word}" for the symbol'
    elif len(word) >= 3 and word[0].isupper():
        advice = f'join {word} with a relation, or write "{word}" if the symbol is meant'
    elif any(_is_variable(part, name) for part in tree.walk(flat.head)):
        advice = f"join {word} with a relation in the body, or give it a value: {word} = …"
    else:
        advice = f"join {word} with a relation, or write _ if its value does not matter"
    return UnboundVariable(places[0] if places else flat.span, name=word, advice=advice)


def _is_variable(part: object, name: str) -> TypeGuard[tree.Variable]:
    return isinstance(part, tree.Variable) and part.name == name


# -- subtypes ---------------------------------------------------------------------------------------------------------


def _check_subtypes(inference: RuleInference, found: list[Diagnostic]) -> None:
    """Declared subtypes: a variable's types have a value in common, and the head's type includes them."""
    declarations = inference.program.declarations
    members = declarations.types.members
    flat = inference.rule
    possible: dict[str, tuple[frozenset[str], str, tree.Atom]] = {}
    for literal in flat.body:
        relation = declarations.relations.get(literal.relation) if isinstance(literal, tree.Atom) else None
        if relation is None or len(relation.fields) != len(literal.args):  # type: ignore[union-attr]
            continue
        assert isinstance(literal, tree.Atom)
        for arg, each in zip(literal.args, relation.fields, strict=True):
            type_of = each.type if each.type in members else each.type.removesuffix("?")
            if not isinstance(arg, tree.Variable) or type_of not in members:
                continue
            values = members[type_of]
            if arg.name in possible:
                before, type_name, atom = possible[arg.name]
                if not before & values:
                    found.append(
                        TypeConflict(
                            arg.span,
                            what=plain(arg.name),
                            left=f"a {type_name}",
                            right=f"a {each.type}",
                            where=f"attribute {each.name} of {relation.name}",
                            advice=f"no value is of both types; use as({plain(arg.name)}, {each.type}) to compare them",
                            related=[(atom.span, f"{plain(arg.name)} is a {type_name} here")],
                        )
                    )
                    continue
                values, each_type = before & values, each.type if len(values) <= len(before) else type_name
                possible[arg.name] = (values, each_type, literal)
            else:
                possible[arg.name] = (values, each.type, literal)
    relation = declarations.relations.get(flat.head.relation)
    if relation is None or len(relation.fields) != len(flat.head.args):
        return
    for arg, each in zip(flat.head.args, relation.fields, strict=True):
        type_of = each.type if each.type in members else each.type.removesuffix("?")
        if isinstance(arg, tree.Variable) and arg.name in possible and type_of in members:
            values, type_name, _ = possible[arg.name]
            if not values <= members[type_of]:
                found.append(
                    NotASubtype(
                        arg.span,
                        what=plain(arg.name),
                        found=type_name,
                        attribute=each.name,
                        relation=relation.name,
                        expected=each.type,
                    )
                )
