"""The kinds of one rule: its variables, terms and literals, unified with the columns of relations."""

from __future__ import annotations

from collections.abc import Set
from difflib import get_close_matches

from whence.lang import tree
from whence.lang.aggregates import AGGREGATES
from whence.lang.declare import Functor, annotated, decimal_of, suggest
from whence.lang.describe import (
    Sides,
    Where,
    accepted,
    aggregate_form,
    conversion,
    counted,
    describe,
    listed,
    name_span,
    place,
    plain,
    written,
)
from whence.lang.diagnostics import (
    BadAggregate,
    Diagnostic,
    FunctionTerm,
    NotApplicable,
    TypeConflict,
    UnknownBranch,
    UnknownFunctor,
    UnknownType,
    UntypedVariable,
    WrongArity,
)
from whence.lang.functors import REPLACEABLE
from whence.lang.infer import Inference
from whence.lang.later import DIFFERENT, Later
from whence.lang.normalize import FlatAggregate, FlatLiteral, FlatRange, FlatRule
from whence.lang.signatures import ARITHMETIC, NUMERIC, ORDERED, SIGNATURES, Signature
from whence.lang.tree import Span
from whence.lang.types import (
    BOOL,
    DECIMAL,
    FLOAT,
    MOST_DIGITS,
    SYMBOL,
    UNSIGNED,
    AdtKind,
    Kind,
    ListKind,
    Primitive,
    base,
)
from whence.lang.unify import Inferred, ListShape, Mismatch, NilShape, Slot, TermShape, TupleShape

_FRACTIONAL = frozenset({FLOAT, DECIMAL})
# Functions that other languages have: never meant as function terms.
_ELSEWHERE = frozenset({"abs", "round", "log2", "log10", "pow", "atan2"})


class RuleInference:
    """The kinds within one rule. `kind_of` is for after all rules have been visited."""

    def __init__(self, program: Inference, rule: FlatRule) -> None:
        self.program = program
        self.rule = rule
        self.variables: dict[str, Inferred] = {}
        self.origins: dict[str, tuple[Span, Where]] = {}
        self.terms: dict[int, Inferred] = {}
        self.without_kind: list[tree.Term] = []
        # An atom that was reported binds nothing and types nothing: what follows from that is not reported again.
        self.unbinding = False
        self.untyping = False
        # Atoms first: most of them are declared, and what differs from a declaration is the mistake.
        for literal in rule.body:
            if isinstance(literal, tree.Atom):
                self._atom(literal)
        for literal in rule.body:
            if not isinstance(literal, tree.Atom):
                self._literal(literal)
        self._atom(rule.head)
        if self.unbinding or self.untyping:
            program.untyped.add(rule.head.relation)

    def kind_of(self, term: tree.Term) -> Kind:
        inferred = self.variables[term.name] if isinstance(term, tree.Variable) else self.terms[id(term)]
        kind = self.program.kinds.resolve(inferred)
        if kind is None:
            self.without_kind.append(term)
            self.program.kinds.assume(inferred, SYMBOL)
            return SYMBOL
        return kind

    def report_untyped(self, unbound: Set[str]) -> None:
        """Reports the terms without a kind, but for those that other errors account for."""
        if self.unbinding or self.untyping or self.program.declarations.lost:
            return
        for term in self.without_kind:
            name = plain(term.name) if isinstance(term, tree.Variable) else None
            if name is None or name not in unbound:
                what = "this term" if name is None else f"variable {name}"
                advice = "use it in an atom of a declared relation, or cast it: as(x, type)"
                self.program.found.append(UntypedVariable(term.span, what=what, advice=advice))

    # -- literals

    def _literal(self, literal: FlatLiteral) -> None:
        match literal:
            case tree.Atom():
                self._atom(literal)
            case tree.Not(item=tree.Atom() as atom):
                self._atom(atom)
            case tree.Constraint(op=op, left=left, right=right):
                self._constraint(literal, op, left, right)
            case FlatRange(target=target, args=args):
                if not 2 <= len(args) <= 3:
                    self._report_arity(literal.span, "range", SIGNATURES["range"], len(args))
                slot = Slot(NUMERIC)
                for term in (*args, target):
                    self._expect(term, slot, "an argument of range", "range")
            case FlatAggregate():
                self._aggregate(literal)

    def _atom(self, atom: tree.Atom) -> None:
        columns = self.program.columns.get(atom.relation)
        if columns is None:
            self.unbinding = True
            otherwise = f"declare it with .decl {atom.relation}(…), or give it facts"
            self.program.declarations.report_unknown(name_span(atom), atom.relation, self.program.found, otherwise)
            for arg in atom.args:
                self._visit(arg)
            return
        if len(columns) != len(atom.args):
            self.unbinding = True
            relation = self.program.declarations.relations[atom.relation]
            expected = counted(len(columns), "argument")
            attributes = ", ".join(f"{each.name}:{each.type}" for each in relation.fields if each.type != "?")
            self.program.found.append(
                WrongArity(
                    atom.span,
                    what=atom.relation,
                    expected=expected,
                    found=str(len(atom.args)),
                    advice=f"it is declared as {atom.relation}({attributes})"
                    if attributes
                    else "give every use the same number of arguments",
                    related=[(relation.span, "it is defined here")],
                )
            )
            for arg in atom.args:
                self._visit(arg)
            return
        variables = self.variables
        for at, (arg, column) in enumerate(zip(atom.args, columns, strict=True)):
            if type(arg) is tree.Variable:
                known = variables.get(arg.name)
                if known is None:
                    variables[arg.name] = column
                    self.origins[arg.name] = (arg.span, (at, atom.relation))
                    continue
                if known is column or known == column:
                    continue
            elif type(arg) is tree.String and column == SYMBOL:
                continue
            self._expect(arg, column, (at, atom.relation), atom.relation)

    def _constraint(self, literal: tree.Constraint, op: str, left: tree.Term, right: tree.Term) -> None:
        if op.lstrip("!") in ("match", "contains"):
            for term in (left, right):
                self._expect(term, SYMBOL, f"an argument of {op.lstrip('!')}", op)
            return
        one, other = self._visit(left), self._visit(right)
        try:
            self.program.kinds.unify(one, other)
        except Mismatch:
            sides = Sides.of(other, one)
            self._conflict(right, sides, describe(left), [(left.span, f"{describe(left)} is {sides.wanted}")])
            return
        if op not in ("=", "!="):
            self._limit(one, ORDERED, op, literal.span)

    def _aggregate(self, literal: FlatAggregate) -> None:
        for body in literal.bodies:
            for inner in body:
                self._literal(inner)
        if literal.op == "count":
            self._expect(literal.target, Slot(NUMERIC), "the result of count", "count")
            return
        assert literal.value is not None
        value = self._visit(literal.value)
        if literal.op == "collect":
            element = Slot()
            self.program.kinds.unify(element, value)
            self._expect(literal.target, Slot(kind=ListShape(element)), "the result of collect", "collect")
            return
        allowed = ORDERED if literal.op in ("min", "max") else ARITHMETIC
        is_fitting = self._limit(value, allowed, literal.op, literal.value.span)
        result: Inferred = FLOAT if literal.op == "mean" else value
        if literal.op == "sum" and is_fitting:
            result = Slot(ARITHMETIC)
            self.program.later(Later(self, "sum", literal.value, (literal.value,), (value,), result))
        self._expect(literal.target, result, f"the result of {literal.op}", literal.op)

    # -- terms

    def _visit(self, term: tree.Term) -> Inferred:
        match term:
            case tree.Variable(name=name):
                if name not in self.variables:
                    self.variables[name] = Slot()
                    self.origins[name] = (term.span, "")
                return self.variables[name]
            case tree.String():
                return SYMBOL
            case _:
                inferred = self._infer(term)
                self.terms[id(term)] = inferred
                return inferred

    def _infer(self, term: tree.Term) -> Inferred:
        match term:
            case tree.Number(suffix=suffix):
                return UNSIGNED if suffix == "u" else Slot(_FRACTIONAL if suffix == "." else ARITHMETIC)
            case tree.Wildcard():
                return Slot()
            case tree.Nil():
                return Slot(kind=NilShape())
            case tree.Bool():
                return BOOL
            case tree.Bracket(items=items, rest=None):
                return Slot(kind=TupleShape(tuple(self._visit(item) for item in items)))
            case tree.Bracket(items=items, rest=rest):
                element = Slot()
                for item in items:
                    self._expect(item, element, "another item of this list", "list")
                whole = Slot(kind=ListShape(element))
                assert rest is not None
                self._expect(rest, whole, "the list", "list")
                return whole
            case tree.Branch(name=name, args=args):
                return self._branch(term, name, args)
            case tree.Cast(term=inner, type=ref):
                self._visit(inner)
                return self._cast(ref)
            case tree.Call():
                return self._call(term)
            case _:
                raise AssertionError(term)

    def _cast(self, ref: tree.TypeRef) -> Kind:
        known = self.program.declarations.types.kinds
        name = ref.name.removesuffix("?")
        kind = known.get(ref.name, known.get(name, decimal_of(name))) if not ref.args else None
        if ref.name == "list" and len(ref.args) == 1:
            return ListKind(self._cast(ref.args[0]))
        if kind is None:
            advice = suggest(ref.name, known, f"declare it with .type {ref.name} <: symbol")
            self.program.found.append(UnknownType(ref.span, name=ref.name, advice=advice))
            self.untyping = True
            return SYMBOL
        return base(kind)

    def _branch(self, term: tree.Branch | tree.Call, name: str, args: tuple[tree.Term, ...]) -> Inferred:
        owners = self.program.declarations.branches.get(name, [])
        if len(owners) != 1:
            return Slot(kind=TermShape({name: tuple(self._visit(arg) for arg in args)}))
        fields = self.program.declarations.types.adts[owners[0]][name]
        if len(fields) != len(args):
            self.program.found.append(
                WrongArity(
                    term.span,
                    what=f"${name}",
                    expected=counted(len(fields), "argument"),
                    found=str(len(args)),
                    advice=f"its type declares {name} {{{', '.join(f'{each.name}:{each.type}' for each in fields)}}}",
                )
            )
            for arg in args:
                self._visit(arg)
        else:
            for arg, each in zip(args, fields, strict=True):
                self._expect(arg, each.kind, f"{each.name} of ${name}", name)
        return AdtKind(owners[0])

    def _call(self, call: tree.Call) -> Inferred:
        functor = self._registered(call)
        if functor is not None:
            if len(functor.params) != len(call.args):
                signature = Signature(tuple("any" for _ in functor.params), "any")
                self._report_arity(call.span, call.name, (signature,), len(call.args))
            for at, arg in enumerate(call.args):
                param = functor.params[at] if at < len(functor.params) else Slot()
                self._expect(arg, param, f"an argument of {call.name}", call.name)
            return base(functor.result)
        signatures = SIGNATURES.get(call.name)
        if call.name in REPLACEABLE and call.name in self.program.declarations.branches:
            return self._branch(call, call.name, call.args)  # a branch of the program's own
        fitting = next((each for each in signatures or () if each.fits(len(call.args))), None)
        if fitting is None and call.name in AGGREGATES and call.name not in self.program.declarations.branches:
            problem, advice = "is an aggregate, and has its own body", aggregate_form(call.name)
            self._refuse(call, BadAggregate(call.span, op=call.name, problem=problem, advice=advice))
            return Slot()
        if signatures is None:
            return self._function_term(call)
        if fitting is None:
            self._report_arity(call.span, call.name, signatures, len(call.args))
            for arg in call.args:
                self._visit(arg)
            result = signatures[0].result
            return result if isinstance(result, Primitive) else Slot()
        return self._apply(call, fitting)

    def _apply(self, call: tree.Call, signature: Signature) -> Inferred:
        shared: dict[frozenset[Primitive], Slot] = {}
        element = Slot()
        whole = Slot(kind=ListShape(element))

        def place(each: object) -> Inferred:
            if isinstance(each, frozenset):
                return shared.setdefault(each, Slot(each))
            if each in ("any", "list", "item"):
                return {"list": whole, "item": element}.get(str(each)) or Slot()
            assert isinstance(each, Primitive)
            return each

        if call.name in DIFFERENT:
            result = Slot(ARITHMETIC)
            self.program.later(Later(self, call.name, call, call.args, tuple(map(self._visit, call.args)), result))
            return result
        params = signature.params + signature.params[-1:] * (len(call.args) - len(signature.params))
        for arg, param in zip(call.args, params, strict=True):
            self._expect(arg, place(param), f"an argument of {call.name}", call.name)
        return place(signature.result)

    def _registered(self, call: tree.Call) -> Functor | None:
        declared = self.program.declarations.functors.get(call.name)
        function = self.program.functions.get(call.name)
        replaced = call.registered or (call.name in REPLACEABLE and function is not None)
        if declared is not None or (call.name in SIGNATURES and not replaced):
            return declared
        if function is None:
            return None
        functor = annotated(function)
        if functor is None:
            self.program.found.append(
                UnknownFunctor(
                    call.span, name=call.name, advice=f"declare its types: .functor {call.name}(number, …):number"
                )
            )
            functor = Functor((), SYMBOL)
        self.program.declarations.functors[call.name] = functor
        return functor

    def _function_term(self, call: tree.Call) -> Inferred:
        known = {**SIGNATURES, **self.program.declarations.functors}
        close = get_close_matches(call.name, known, 1, 0.75)
        advice = ""
        if call.name in self.program.columns:
            advice = f"{call.name} is a relation: give it a literal of its own, {call.name}(…)"
        elif close:
            advice = f"did you mean {close[0]}?"
        elif call.registered or call.name in _ELSEWHERE:
            advice = f"declare it with .functor {call.name}(…):number and register a Python function of that name"
        if not advice:
            self.program.found.append(FunctionTerm(call.span, name=call.name))
            return self._branch(call, call.name, call.args)
        self._refuse(call, UnknownFunctor(call.span, name=call.name, advice=advice))
        return Slot()

    def _refuse(self, call: tree.Call, problem: Diagnostic) -> None:
        self.program.found.append(problem)
        self.untyping = True
        for arg in call.args:
            self._visit(arg)

    # -- errors

    def _expect(self, term: tree.Term, expected: Inferred, where: Where, functor: str) -> None:
        if isinstance(term, tree.Variable) and term.name not in self.variables:
            self.variables[term.name] = expected
            self.origins[term.name] = (term.span, where)
            return
        self.agree(term, self._visit(term), expected, where, functor)

    def agree(self, term: tree.Term, actual: Inferred, expected: Inferred, where: Where, functor: str) -> None:
        """Makes two kinds one, or reports that they are not."""
        try:
            self.program.kinds.unify(actual, expected)
        except Mismatch:
            limits = expected.root().options if isinstance(expected, Slot) else None
            if limits is not None and functor in SIGNATURES and not isinstance(actual, Slot):
                limits = DIFFERENT.get(functor, frozenset()) | limits
                self.program.found.append(_not_applicable(term.span, functor, actual, limits))
                return
            related = []
            if not isinstance(where, str):
                related.append((self.program.declarations.relations[where[1]].span, f"{where[1]} is defined here"))
            self._conflict(term, Sides.of(actual, expected), where, related)

    def report_digits(self, term: tree.Term, scale: int) -> None:
        advice = "round what is multiplied first: as(x, decimal(18,4))"
        problem = f"{scale} digits behind the point, which is more than {MOST_DIGITS}"
        self.program.found.append(NotApplicable(term.span, functor="*", type=f"decimals with {problem}", advice=advice))

    def _limit(self, inferred: Inferred, allowed: frozenset[Primitive], functor: str, span: Span) -> bool:
        """Whether a kind is among some; that it is not is reported."""
        try:
            self.program.kinds.unify(inferred, Slot(allowed))
        except Mismatch:
            self.program.found.append(
                _not_applicable(span, functor, self.program.kinds.resolve(inferred) or "this", allowed)
            )
            return False
        return True

    def _conflict(self, term: tree.Term, sides: Sides, where: Where, related: list[tuple[Span, str]]) -> None:
        """Reports a term that is one thing where another is wanted."""
        branch = self._unknown_branch(term, sides.wanted_kind)
        if branch is not None:
            self.program.found.append(branch)
            return
        what = describe(term)
        if isinstance(term, tree.Variable):
            span, origin = self.origins[term.name]
            if span != term.span:
                first = f", as {place(origin)}" if origin else ""
                related = [(span, f"{what} is {sides.found} here{first}"), *related]
        types = self.program.declarations.types
        self.program.found.append(
            TypeConflict(
                term.span,
                what=what,
                left=sides.found,
                right=sides.wanted,
                where=place(where),
                advice=conversion(what, sides.found_kind, sides.wanted_kind, types),
                related=related,
            )
        )

    def _unknown_branch(self, term: tree.Term, kind: Kind | None) -> Diagnostic | None:
        if isinstance(term, tree.Branch) and isinstance(kind, AdtKind):
            declared = self.program.declarations.types.adts.get(kind.name, {})
            if term.name not in declared:
                names = ", ".join(f"${branch}" for branch in declared) or "none"
                return UnknownBranch(term.span, type=kind.name, name=term.name, branches=names)
        return None

    def _report_arity(self, span: Span, name: str, signatures: tuple[Signature, ...], count: int) -> None:
        self.untyping = True
        expected = listed(each.arity() for each in signatures)
        advice = f"write {listed(written(name, each) for each in signatures)}"
        self.program.found.append(WrongArity(span, what=name, expected=expected, found=str(count), advice=advice))


def _not_applicable(span: Span, functor: str, kind: object, allowed: frozenset[Primitive]) -> NotApplicable:
    return NotApplicable(span, functor=functor, type=str(kind), advice=f"it takes {listed(accepted(allowed))}")
