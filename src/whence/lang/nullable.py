"""Where nil can be: the kinds of variables that may be nil, the columns that follow from them, and what must not be.

Kinds are inferred as if nothing were nil. Here a variable's kind becomes `T?` if any atom or equation can give it nil, whatever
tests stand beside it: evaluators apply those in an order of their own. What a test, a functor or a column without nil rules out
is looked at only to say whether nil could get where it must not be.

Numbers leave no word for nil (`RESERVED`). Wherever a number meets one that may be nil, a literal is added that refuses the
number that nil takes the place of: no evaluator can then mistake one for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from whence.lang.declare import Functor
from whence.lang.describe import plain
from whence.lang.diagnostics import BadLiteral, Diagnostic, MayBeNil
from whence.lang.functors import NIL_TAKING
from whence.lang.normalize import FlatRule
from whence.lang.program import (
    Aggregation,
    Anything,
    Apply,
    Atom,
    Comparison,
    Cons,
    Const,
    Generator,
    Literal,
    Make,
    Negation,
    Relation,
    Rule,
    Subsumption,
    Term,
    Var,
)
from whence.lang.rewrite import rebuild
from whence.lang.tree import Span, walk
from whence.lang.types import (
    RESERVED,
    AdtKind,
    Kind,
    ListKind,
    Nullable,
    Primitive,
    RecordKind,
    Types,
    base,
)

Checked = Rule | Subsumption
T = TypeVar("T")


@dataclass
class Nils:
    """What is known of a program whose rules have kinds without nil."""

    relations: dict[str, Relation]
    types: Types
    functors: Mapping[str, Functor]
    undeclared: set[str]
    found: list[Diagnostic]

    def is_needed(self, *, has_nil: bool) -> bool:
        """Whether there is anything that may be nil and is not a record."""
        if has_nil:
            return True
        kinds = [each.kind for relation in self.relations.values() for each in relation.fields]
        kinds += [each.kind for fields in self.types.records.values() for each in fields]
        kinds += [each.kind for branches in self.types.adts.values() for fields in branches.values() for each in fields]
        kinds += [kind for each in self.functors.values() for kind in (*each.params, each.result)]
        return any(map(_holds_nullable, kinds))

    def settle(self, rules: Sequence[tuple[Checked, FlatRule]]) -> list[Checked]:
        """The rules with kinds that say what may be nil; `relations` has the columns found on the way."""
        while any(self._widen(rule) for rule, _ in rules if isinstance(rule, Rule)):
            pass
        return [self._settled(rule, flat) for rule, flat in rules]

    def widened(self, rule: Rule) -> Rule:
        """A settled rule into which others have been written out: what is nil in those may be a variable of its own."""
        view = _View.of(rule, self)
        return replace(rule, head=view.rewritten(rule.head), body=view.rewritten(rule.body))

    def _widen(self, rule: Rule) -> bool:
        """Makes columns of undeclared relations nullable that the rule can give nil."""
        relation = self.relations[rule.head.relation]
        if relation.name not in self.undeclared or len(relation.fields) != len(rule.head.args):
            return False
        view = _View.of(rule, self)
        fields = tuple(
            replace(each, kind=Nullable(each.kind), type=f"{each.type}?")
            if isinstance(each.kind, Primitive) and view.may_be_nil(arg)
            else each
            for each, arg in zip(relation.fields, rule.head.args, strict=True)
        )
        if fields == relation.fields:
            return False
        self.relations[relation.name] = replace(relation, fields=fields)
        return True

    def _settled(self, rule: Checked, flat: FlatRule) -> Checked:
        view = _View.of(rule, self)
        if isinstance(rule, Rule):
            self._check_head(rule, flat, view)
            head, extra = view.stored(rule.head) if rule.body else (rule.head, [])
            body = view.literals(rule.body, extra)
            return replace(rule, head=view.rewritten(head), body=body)
        body = view.literals(rule.body, [])
        return replace(
            rule, dominated=view.rewritten(rule.dominated), dominating=view.rewritten(rule.dominating), body=body
        )

    def _check_head(self, rule: Rule, flat: FlatRule, view: _View) -> None:
        fields = self.relations[rule.head.relation].fields
        if len(fields) != len(rule.head.args):  # reported already
            return
        for arg, each, written in zip(rule.head.args, fields, flat.head.args, strict=True):
            where = f"attribute {each.name} of {rule.head.relation}"
            view.check_part(arg, each.kind, where, written.span)

    def fields_of(self, kind: Kind, branch: str | None, count: int) -> list[Kind]:
        """The kinds of the parts of a record, branch or list."""
        match kind:
            case ListKind(element):
                return [element] * count
            case RecordKind(name):
                return [each.kind for each in self.types.records.get(name, ())]
            case AdtKind(name) if branch is not None:
                return [each.kind for each in self.types.adts.get(name, {}).get(branch, ())]
        return []

    def takes_nil(self, term: Apply) -> bool:
        functor = self.functors.get(term.functor)
        if functor is None:
            return term.functor in NIL_TAKING
        return any(isinstance(each, Nullable) for each in functor.params)


def _holds_nullable(kind: Kind) -> bool:
    while isinstance(kind, ListKind):
        kind = kind.element
    return isinstance(kind, Nullable)


@dataclass
class _View:
    """One rule: which of its variables an atom or equation can make nil, and which something else keeps from being nil."""

    nils: Nils
    span: Span
    nullable: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    fresh: int = 0

    @classmethod
    def of(cls, rule: Checked, nils: Nils) -> _View:
        view = cls(nils, rule.span)
        before = -1
        while before < (before := len(view.nullable)):
            view._gather(rule.body)
        view.present = view._kept_present(rule.body, rule.head.args if isinstance(rule, Rule) else ())
        return view

    # -- what may be nil

    def _gather(self, body: Iterable[Literal]) -> None:
        for literal in body:
            match literal:
                case Atom(relation=relation, args=args):
                    for arg, kind in zip(args, self._columns(relation), strict=False):
                        self._given(arg, kind)
                case Comparison(op="=", left=left, right=right):
                    for one, other in ((left, right), (right, left)):
                        if self._is_nullable(one):
                            self._given(other, Nullable(base(other.kind)))  # type: ignore[arg-type]
                        elif isinstance(other, Make | Cons):
                            self._given(other, other.kind)
                case Aggregation(bodies=bodies):
                    for inner in bodies:
                        self._gather(inner)

    def _given(self, term: Term, kind: Kind) -> None:
        match term:
            case Var(name=name) if isinstance(kind, Nullable):
                self.nullable.add(name)
            case Make(args=args, branch=branch):
                for part, inner in zip(args, self.nils.fields_of(term.kind, branch, len(args)), strict=False):
                    self._given(part, inner)
            case Cons(items=items, rest=rest):
                for part, inner in zip(items, self.nils.fields_of(term.kind, None, len(items)), strict=False):
                    self._given(part, inner)
                self._given(rest, rest.kind)

    def _is_nullable(self, term: Term) -> bool:
        """Whether evaluators may meet nil here on their way."""
        match term:
            case Var(name=name):
                return name in self.nullable
            case Const(value=None):
                return isinstance(term.kind, Primitive | Nullable)
            case Apply(functor=functor, args=args):
                declared = self.nils.functors.get(functor)
                if declared is not None:
                    return isinstance(declared.result, Nullable)
                return functor in NIL_TAKING and NIL_TAKING[functor]([self._is_nullable(arg) for arg in args])
            case _:
                return False

    # -- what is kept from being nil

    def _kept_present(self, body: Sequence[Literal], head: Sequence[Term]) -> set[str]:
        present: set[str] = set()
        for literal in body:
            match literal:
                case Atom(relation=relation, args=args):
                    for arg, kind in zip(args, self._columns(relation), strict=False):
                        present |= set(self._held(arg, kind))
                case Comparison(op="!=", left=one, right=other):
                    present |= {
                        side.name
                        for side, test in ((one, other), (other, one))
                        if isinstance(side, Var) and isinstance(test, Const) and test.value is None
                    }
                case Comparison(op=op, left=left, right=right) if op != "=":
                    present |= {side.name for side in (left, right) if isinstance(side, Var)}
                case Generator(args=args):
                    present |= {arg.name for arg in args if isinstance(arg, Var)}
            if not isinstance(literal, Aggregation | Negation):
                present |= set(self._argued(literal))
        present |= {name for term in head for name in self._argued(term)}
        before = -1
        while before < (before := len(present)):
            for literal in body:
                if isinstance(literal, Comparison) and literal.op == "=":
                    for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                        if isinstance(one, Var) and not self._may_be_nil(other, present):
                            present.add(one.name)
        return present

    def _held(self, term: Term, kind: Kind) -> Iterator[str]:
        match term:
            case Var(name=name) if not isinstance(kind, Nullable):
                yield name
            case Make(args=args, branch=branch):
                for part, inner in zip(args, self.nils.fields_of(term.kind, branch, len(args)), strict=False):
                    yield from self._held(part, inner)
            case Cons(items=items):
                for part, inner in zip(items, self.nils.fields_of(term.kind, None, len(items)), strict=False):
                    yield from self._held(part, inner)

    def _argued(self, node: object) -> Iterator[str]:
        """The variables that functors need a value of."""
        for part in walk(node):
            if isinstance(part, Apply) and not self.nils.takes_nil(part):
                yield from (arg.name for arg in part.args if isinstance(arg, Var))

    def may_be_nil(self, term: Term) -> bool:
        return self._may_be_nil(term, self.present)

    def _may_be_nil(self, term: Term, present: set[str]) -> bool:
        match term:
            case Var(name=name):
                return name in self.nullable and name not in present
            case Apply(functor=functor, args=args) if functor not in self.nils.functors and functor in NIL_TAKING:
                return NIL_TAKING[functor]([self._may_be_nil(arg, present) for arg in args])
            case _:
                return self._is_nullable(term)

    # -- checks

    def check_part(self, term: Term, kind: Kind, where: str, span: Span) -> None:
        """Reports nil that would get into a place that holds none."""
        if isinstance(kind, Primitive) and self.may_be_nil(term):
            name = plain(term.name) if isinstance(term, Var) else ""
            test = f"test {name} != nil in the body, or " if name else ""
            advice = f"{test}declare it as {kind}?"
            self.nils.found.append(MayBeNil(span, what=_named(term), where=where, type=str(kind), advice=advice))
        elif isinstance(kind, Nullable) and isinstance(term, Const) and term.value == RESERVED.get(kind.of, ""):
            self._refuse_reserved(term, kind, span)
        self._check_inside(term, span)

    def _check_inside(self, term: Term, span: Span) -> None:
        match term:
            case Make(args=args, branch=branch, kind=kind):
                for part, inner in zip(args, self.nils.fields_of(kind, branch, len(args)), strict=False):
                    self.check_part(part, inner, f"a part of {kind}", span)
            case Cons(items=items, rest=rest, kind=kind):
                for part, inner in zip(items, self.nils.fields_of(kind, None, len(items)), strict=False):
                    self.check_part(part, inner, f"an item of {kind}", span)
                self._check_inside(rest, span)
            case Apply(functor=functor, args=args):
                declared = self.nils.functors.get(functor)
                kinds = declared.params if declared is not None and self.nils.takes_nil(term) else ()
                for part, inner in zip(args, kinds, strict=False):
                    self.check_part(part, inner, f"an argument of {functor}", span)
                if not kinds:
                    for part in args:
                        self._check_inside(part, span)

    def _refuse_reserved(self, term: Const, kind: Nullable, span: Span) -> None:
        problem = f"is out of range for {kind}"
        advice = f"it is the one {kind.of} that a column which may be nil cannot hold"
        self.nils.found.append(BadLiteral(span, literal=str(term.value), problem=problem, advice=advice))

    # -- rules with their kinds

    def literals(self, body: Sequence[Literal], extra: Sequence[Literal]) -> tuple[Literal, ...]:
        """A body with its kinds, and what else has to hold."""
        added: list[Literal] = list(extra)
        settled: list[Literal] = []
        for literal in body:
            if not isinstance(literal, Aggregation):
                added += self._guards_inside(literal, literal.span)
            match literal:
                case Atom(args=args, span=span):
                    self._check_atom(literal)
                    added += self._told_apart(literal)
                    added += [
                        _is_not_nil(arg, span)
                        for arg, kind in zip(args, self._columns(literal.relation), strict=False)
                        if isinstance(arg, Var) and arg.name in self.nullable and kind in RESERVED
                    ]
                case Negation(atom=atom):
                    added += self._told_apart(atom)
                case Comparison(op="=" | "!=", left=left, right=right, span=span):
                    for one, other in ((left, right), (right, left)):
                        self._check_inside(one, span)
                        if self._is_nullable(other):
                            added += self._guard(one, Nullable(base(one.kind)), span)  # type: ignore[arg-type]
            settled.append(self._aggregation(literal) if isinstance(literal, Aggregation) else self.rewritten(literal))
        return (*settled, *dict.fromkeys(map(self.rewritten, added)))

    def _check_atom(self, atom: Atom) -> None:
        for arg, kind in zip(atom.args, self._columns(atom.relation), strict=False):
            if isinstance(arg, Const) and arg.value is None and isinstance(kind, Primitive):
                where, advice = f"a column of {atom.relation}", "no row has it there: leave the atom out"
                self.nils.found.append(MayBeNil(atom.span, what="this is", where=where, type=str(kind), advice=advice))
            elif isinstance(arg, Const) and isinstance(kind, Nullable) and arg.value == RESERVED.get(kind.of, ""):
                self._refuse_reserved(arg, kind, atom.span)

    def _told_apart(self, atom: Atom) -> Iterator[Literal]:
        for arg, kind in zip(atom.args, self._columns(atom.relation), strict=False):
            yield from self._guard(arg, kind, atom.span)

    def _guard(self, term: Term, kind: Kind, span: Span) -> Iterator[Comparison]:
        """That a number which meets one that may be nil is not the number that nil takes the place of."""
        if not isinstance(kind, Nullable) or kind.of not in RESERVED:
            return
        if isinstance(term, Var | Apply) and not self._is_nullable(term):
            yield Comparison("!=", term, Const(RESERVED[kind.of], kind.of), span)

    def _guards_inside(self, node: object, span: Span) -> Iterator[Literal]:
        for part in walk(node):
            if isinstance(part, Apply) and isinstance(part.kind, Primitive) and self._is_nullable(part):
                for arg in part.args:
                    yield from self._guard(arg, Nullable(part.kind), span)

    def _aggregation(self, literal: Aggregation) -> Aggregation:
        """Aggregates skip nil."""
        value, extra = literal.value, []
        if value is not None and self._is_nullable(value):
            extra.append(_is_not_nil(value, literal.span))
        bodies = tuple(self.literals(body, extra) for body in literal.bodies)
        if value is not None:
            value = _with_kind(self.rewritten(value), base)
        return replace(literal, target=self.rewritten(literal.target), value=value, bodies=bodies)

    def stored(self, head: Atom) -> tuple[Atom, list[Literal]]:
        """The head, and that none of its numbers is taken for nil; expressions get a variable to be looked at."""
        args, extra = list(head.args), list[Literal](self._guards_inside(head, head.span))
        for at, (arg, kind) in enumerate(zip(head.args, self._columns(head.relation), strict=False)):
            for guard in self._guard(arg, kind, head.span):
                if isinstance(arg, Apply):
                    self.fresh += 1
                    args[at] = Var(f"value#n{self.fresh}", arg.kind)
                    extra.append(Comparison("=", args[at], arg, head.span))
                extra.append(replace(guard, left=args[at]))
        return replace(head, args=tuple(args)), extra

    def rewritten(self, node: T) -> T:
        return rebuild(node, self._change)

    def _change(self, part: object) -> object:
        match part:
            case Var(name=name, kind=kind) if name in self.nullable and isinstance(kind, Primitive):
                return Var(name, Nullable(kind))
            case Const(value=None, kind=kind) if isinstance(kind, Primitive):
                return Const(None, Nullable(kind))
            case Apply(kind=kind):
                settled = Nullable(kind) if isinstance(kind, Primitive) and self._is_nullable(part) else kind
                return replace(part, kind=settled, takes_nil=self.nils.takes_nil(part))
            case Atom(relation=relation, args=args):
                kinds = self._columns(relation)
                fitted = tuple(
                    Anything(kind) if isinstance(arg, Anything) else arg
                    for arg, kind in zip(args, kinds or [arg.kind for arg in args], strict=False)
                )
                return part if fitted == args else replace(part, args=fitted)
            case _:
                return part

    def _columns(self, relation: str) -> list[Kind]:
        known = self.nils.relations.get(relation)
        return [] if known is None else [each.kind for each in known.fields]


def _is_not_nil(term: Term, span: Span) -> Comparison:
    kind = base(term.kind)
    return Comparison("!=", term, Const(None, kind), span)


def _with_kind(term: Term, change: Callable[[Kind], Kind]) -> Term:
    return replace(term, kind=change(term.kind))


def _named(term: Term) -> str:
    match term:
        case Var(name=name):
            return f"{plain(name)} may be"
        case Apply(functor=functor):
            return f"{functor}(…) may be"
        case _:
            return "this is"
