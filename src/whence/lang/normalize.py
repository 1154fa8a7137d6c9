"""Rules to flat rules: one head, a conjunction of simple literals, aggregates and ranges as literals of their own.

Terms are still those of the tree; types come next. Disjunctions are distributed, negations pushed inwards, and the variables
of each aggregate are told apart:

- *outer*: bound by the rest of the rule (and not by the aggregate's own target expression);
- *witness*: named by the rest of the rule but bound only inside a `min` or `max`: the rule then also matches the
  aggregate's body at the extreme value;
- *local*: all others. Locals whose name is also used outside are renamed with a `#`, which no user's name holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, product
from math import prod
from typing import Any, TypeVar

from whence.lang import tree
from whence.lang.diagnostics import Diagnostic, TooManyAlternatives, UncountableWildcard
from whence.lang.rewrite import rebuild
from whence.lang.tree import Span

T = TypeVar("T")
MAX_ALTERNATIVES = 1000
_NEGATED = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "match": "!match",
    "contains": "!contains",
}


@dataclass(frozen=True, slots=True)
class FlatRange:
    target: tree.Term
    args: tuple[tree.Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FlatAggregate:
    target: tree.Term
    op: str
    value: tree.Term | None
    bodies: tuple[tuple[FlatLiteral, ...], ...]
    span: Span
    outer: frozenset[str] = frozenset()


FlatLiteral = tree.Atom | tree.Not | tree.Constraint | FlatRange | FlatAggregate


@dataclass(frozen=True, slots=True)
class FlatRule:
    """`dominating` is set for a subsumption, whose head is the dominated atom."""

    name: str
    head: tree.Atom
    body: tuple[FlatLiteral, ...]
    span: Span
    dominating: tree.Atom | None = None


def normalize(module: tree.Module, lost: set[str], found: list[Diagnostic]) -> list[FlatRule]:
    """The flat rules; `lost` takes the names of relations whose rules are too large."""
    names = _RuleNames()
    rules: list[FlatRule] = []
    for statement in module.statements:
        if isinstance(statement, tree.Rule):
            if statement.body is None and len(statement.heads) == 1 and _is_plain(statement.heads[0]):
                head = statement.heads[0]
                rules.append(FlatRule(names.fresh(statement.name, head.relation), head, (), statement.span))
            else:
                rules += _flatten(statement, None, names, lost, found)
        elif isinstance(statement, tree.Subsumption):
            dominated, dominating = _name_wildcards((statement.dominated, statement.dominating), "_#")
            body = (dominated, dominating, *((statement.body,) if statement.body else ()))
            whole = tree.Rule((dominated,), tree.And(body), statement.name, None, statement.span)
            rules += _flatten(whole, dominating, names, lost, found)
    return rules


@dataclass(slots=True)
class _RuleNames:
    counts: dict[str, int] = field(default_factory=dict)

    def fresh(self, given: str | None, relation: str) -> str:
        if given is not None:
            return given
        self.counts[relation] = self.counts.get(relation, 0) + 1
        return f"{relation}#{self.counts[relation]}"


def _flatten(
    rule: tree.Rule, dominating: tree.Atom | None, names: _RuleNames, lost: set[str], found: list[Diagnostic]
) -> Iterator[FlatRule]:
    fresh = _Fresh()
    try:
        formula = rule.body or tree.Truth(True)
        # A rule that never applies stays, for what it says of its relation.
        alternatives = _alternatives(formula, fresh) or _alternatives(rebuild(formula, _spelt_out), fresh)
    except _TooMany:
        found.append(TooManyAlternatives(rule.span, limit=MAX_ALTERNATIVES))
        lost.update(head.relation for head in rule.heads)
        return
    many = len(alternatives) * len(rule.heads) > 1
    name = rule.name
    number = 0
    for head in rule.heads:
        for literals in alternatives:
            body = list(literals)
            flat_head = _extract_atom(head, fresh, body)
            resolved = _Scopes(fresh).resolve(flat_head, body)
            number += 1
            chosen = f"{name}/{number}" if name is not None and many else names.fresh(name, head.relation)
            yield FlatRule(chosen, flat_head, tuple(resolved), rule.span, dominating)
    found += [UncountableWildcard(span) for span in dict.fromkeys(each.span for each in fresh.uncountable)]


def _spelt_out(part: object) -> object:
    if isinstance(part, tree.Truth) and not part.value:
        return tree.Constraint("!=", tree.Number(0), tree.Number(0), part.span)
    return part


class _Fresh:
    """Names that no user's variable has."""

    def __init__(self) -> None:
        self.count = 0
        # Wildcards of aggregates that would have to count, and cannot.
        self.uncountable: list[tree.Wildcard] = []

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base.partition('#')[0]}#{self.count}"


# -- formulas to alternatives of literals -----------------------------------------------------------------------------


class _TooMany(Exception):
    """A formula has more alternatives than rules should be made for."""


def _alternatives(formula: tree.Formula, fresh: _Fresh) -> list[tuple[FlatLiteral, ...]]:
    """The disjunctive normal form."""
    match formula:
        case tree.And(items=items):
            parts = [_alternatives(item, fresh) for item in items]
            if prod(len(part) for part in parts) > MAX_ALTERNATIVES:
                raise _TooMany
            return [tuple(literal for part in choice for literal in part) for choice in product(*parts)]
        case tree.Or(items=items):
            result = [alternative for item in items for alternative in _alternatives(item, fresh)]
            if len(result) > MAX_ALTERNATIVES:
                raise _TooMany
            return result
        case tree.Truth(value=value):
            return [()] if value else []
        case tree.Not(item=item) if not isinstance(item, tree.Atom):
            return _alternatives(_negate(item), fresh)
        case _:
            body: list[FlatLiteral] = []
            literal = _extract(formula, fresh, body)
            return [(*body, *literal)]


def _negate(formula: tree.Formula) -> tree.Formula:
    match formula:
        case tree.And(items=items):
            return tree.Or(tuple(_negate(item) for item in items), formula.span)
        case tree.Or(items=items):
            return tree.And(tuple(_negate(item) for item in items), formula.span)
        case tree.Truth(value=value):
            return tree.Truth(not value, formula.span)
        case tree.Not(item=item):
            return item
        case tree.Constraint(op=op):
            return replace(formula, op=_NEGATED[op])
        case _:
            return tree.Not(formula, formula.span)


# -- aggregates and ranges out of terms -------------------------------------------------------------------------------


def _is_plain(atom: tree.Atom) -> bool:
    return not any(_holds_literal(arg) for arg in atom.args)


def _holds_literal(term: tree.Term) -> bool:
    match term:
        case tree.Variable() | tree.Number() | tree.String() | tree.Bool() | tree.Wildcard() | tree.Nil():
            return False
        case tree.Aggregate():
            return True
        case tree.Call(name=name, args=args):
            return name == "range" or any(_holds_literal(arg) for arg in args)
        case tree.Bracket(items=items, rest=rest):
            return any(_holds_literal(item) for item in items) or (rest is not None and _holds_literal(rest))
        case tree.Branch(args=args):
            return any(_holds_literal(arg) for arg in args)
        case tree.Cast(term=inner):
            return _holds_literal(inner)


def _extract(literal: tree.Formula, fresh: _Fresh, body: list[FlatLiteral]) -> tuple[FlatLiteral, ...]:
    """The literal with aggregates and ranges inside its terms put before it as literals of their own."""
    match literal:
        case tree.Atom():
            return (_extract_atom(literal, fresh, body),)
        case tree.Not(item=tree.Atom() as atom):
            return (replace(literal, item=_extract_atom(atom, fresh, body)),)
        case tree.Constraint(op="=", left=left, right=tree.Aggregate() | tree.Call(name="range") as right):
            return (_literal_of(right, _extract_term(left, fresh, body), fresh, body, literal.span),)
        case tree.Constraint(op="=", left=tree.Aggregate() | tree.Call(name="range") as left, right=right):
            return (_literal_of(left, _extract_term(right, fresh, body), fresh, body, literal.span),)
        case tree.Constraint(left=left, right=right):
            return (replace(literal, left=_extract_term(left, fresh, body), right=_extract_term(right, fresh, body)),)
        case _:
            raise AssertionError(literal)


def _extract_atom(atom: tree.Atom, fresh: _Fresh, body: list[FlatLiteral]) -> tree.Atom:
    if _is_plain(atom):
        return atom
    return replace(atom, args=tuple(_extract_term(arg, fresh, body) for arg in atom.args))


def _extract_term(term: tree.Term, fresh: _Fresh, body: list[FlatLiteral]) -> tree.Term:
    if not _holds_literal(term):
        return term
    match term:
        case tree.Aggregate() | tree.Call(name="range"):
            target = tree.Variable(fresh.name(term.op if isinstance(term, tree.Aggregate) else "range"), term.span)
            body.append(_literal_of(term, target, fresh, body, term.span))
            return target
        case tree.Call(args=args) | tree.Branch(args=args):
            return replace(term, args=tuple(_extract_term(arg, fresh, body) for arg in args))
        case tree.Bracket(items=items, rest=rest):
            return replace(
                term,
                items=tuple(_extract_term(item, fresh, body) for item in items),
                rest=None if rest is None else _extract_term(rest, fresh, body),
            )
        case tree.Cast(term=inner):
            return replace(term, term=_extract_term(inner, fresh, body))
        case _:
            raise AssertionError(term)


def _literal_of(
    term: tree.Aggregate | tree.Call, target: tree.Term, fresh: _Fresh, body: list[FlatLiteral], span: Span
) -> FlatLiteral:
    if isinstance(target, tree.Wildcard):
        target = tree.Variable(fresh.name("result"), target.span)
    if isinstance(term, tree.Call):
        return FlatRange(target, tuple(_extract_term(arg, fresh, body) for arg in term.args), span)
    value = term.target
    bodies = []
    for literals in _alternatives(term.body, fresh):
        inner = list(literals)
        if value is not None and _holds_literal(value):
            value = _extract_term(value, fresh, inner)
        bodies.append(tuple(inner))
    return FlatAggregate(target, term.op, value, tuple(_count_rows(term.op, bodies, fresh)), span)


def _count_rows(op: str, bodies: list[tuple[FlatLiteral, ...]], fresh: _Fresh) -> list[tuple[FlatLiteral, ...]]:
    """An aggregate over one atom runs over its rows, so its wildcards count: they become variables."""
    atoms = [_only_atom(body) for body in bodies]
    wildcards = [part for part in tree.walk(tuple(atoms)) if isinstance(part, tree.Wildcard)]
    if all(atom == atoms[0] for atom in atoms):
        prefix = f"{fresh.name('_')}."
        return [
            tuple(_name_wildcards(literal, prefix) if literal is atom else literal for literal in body)
            for body, atom in zip(bodies, atoms, strict=True)
        ]
    if wildcards and op not in ("min", "max"):
        fresh.uncountable.append(wildcards[0])
    return bodies


def _only_atom(body: tuple[FlatLiteral, ...]) -> tree.Atom | None:
    atoms = [literal for literal in body if isinstance(literal, tree.Atom)]
    if len(atoms) != 1 or any(isinstance(literal, FlatAggregate | FlatRange) for literal in body):
        return None
    return atoms[0]


def _name_wildcards(node: T, prefix: str) -> T:
    """The node with a variable for each wildcard."""
    position = count(1)

    def name_wildcard(part: Any) -> Any:
        return tree.Variable(f"{prefix}{next(position)}", part.span) if isinstance(part, tree.Wildcard) else part

    return rebuild(node, name_wildcard)


# -- scopes of aggregates ---------------------------------------------------------------------------------------------


def variables(node: object) -> Iterator[str]:
    """The names of all variables in a node, nested aggregates included."""
    return (part.name for part in tree.walk(node) if isinstance(part, tree.Variable))


def pattern_variables(term: tree.Term | None) -> Iterator[str]:
    """The variables that matching a value against the term binds: those not inside a functor."""
    match term:
        case tree.Variable(name=name):
            yield name
        case tree.Bracket(items=items, rest=rest):
            for item in (*items, rest):
                yield from pattern_variables(item)
        case tree.Branch(args=args):
            for arg in args:
                yield from pattern_variables(arg)


def bound_by(literals: Iterable[FlatLiteral], ambient: frozenset[str] = frozenset()) -> set[str]:
    """The variables that a conjunction binds, aggregates being taken to bind their targets."""
    bound = set(ambient)
    pending = list(literals)
    progress = True
    while progress:
        progress = False
        for literal in list(pending):
            before = len(bound)
            match literal:
                case tree.Atom(args=args):
                    for arg in args:
                        bound.update(pattern_variables(arg))
                case tree.Constraint(op="=", left=left, right=right):
                    if bound.issuperset(variables(left)):
                        bound.update(pattern_variables(right))
                    if bound.issuperset(variables(right)):
                        bound.update(pattern_variables(left))
                case FlatRange(target=target, args=args):
                    if bound.issuperset(variables(args)):
                        bound.update(pattern_variables(target))
                case FlatAggregate(target=target):
                    bound.update(pattern_variables(target))
            progress = progress or len(bound) > before
    return bound


class _Scopes:
    def __init__(self, fresh: _Fresh) -> None:
        self.fresh = fresh

    def resolve(self, head: tree.Atom, body: list[FlatLiteral]) -> list[FlatLiteral]:
        if not any(isinstance(literal, FlatAggregate) for literal in body):
            return body
        named = set(variables(head)) | _plain_variables(body)
        body = self._bind_witnesses(body, named)
        return self._resolve(body, named | _plain_variables(body), frozenset())

    def _bind_witnesses(self, body: list[FlatLiteral], named: set[str]) -> list[FlatLiteral]:
        """The body with literals that bind each witness, which is then a local variable of its aggregate."""
        everything = bound_by(body)
        result: list[FlatLiteral] = []
        for index, literal in enumerate(body):
            if isinstance(literal, FlatAggregate):
                inner, outer = _inner_and_outer(literal, bound_by(body[:index] + body[index + 1 :]))
                witnesses = sorted((inner - outer) & named - everything)
                for witness in witnesses:
                    result += self._witness(literal, witness, outer)
                result.append(_rename_variables(literal, {name: self.fresh.name(name) for name in witnesses}))
            else:
                result.append(literal)
        return result

    def _resolve(self, body: list[FlatLiteral], named: set[str], ambient: frozenset[str]) -> list[FlatLiteral]:
        """The body with each aggregate's variables sorted out; `named` are the names used beside the aggregates."""
        result: list[FlatLiteral] = []
        for index, literal in enumerate(body):
            if not isinstance(literal, FlatAggregate):
                result.append(literal)
                continue
            others = body[:index] + body[index + 1 :]
            inner, outer = _inner_and_outer(literal, bound_by(others, ambient))
            elsewhere = named | ambient | set(variables(tuple(others)))
            renaming = {name: self.fresh.name(name) for name in sorted((inner - outer) & elsewhere)}
            renamed = _rename_variables(literal, renaming)
            bodies = []
            for each in renamed.bodies:
                around = set(variables(renamed.value)) | _plain_variables(each) | outer
                bodies.append(tuple(self._resolve(list(each), around, outer | frozenset(bound_by(each)))))
            result.append(replace(renamed, bodies=tuple(bodies), outer=outer))
        return result

    def _witness(self, aggregate: FlatAggregate, witness: str, outer: frozenset[str]) -> list[FlatLiteral]:
        """Literals that bind a variable to its values where the aggregate holding it reaches its extreme."""
        source = _find_witness(aggregate, witness)
        if source is None or source.value is None:
            return []
        inner = set(variables(source.bodies)) | set(variables(source.value))
        if source is not aggregate and inner & (outer | _plain_variables(aggregate.bodies[0])) - {witness}:
            return []  # it depends on the aggregate around it: left unbound, and reported as such
        result: list[FlatLiteral] = []
        extreme = aggregate.target
        if source is not aggregate:
            extreme = tree.Variable(self.fresh.name(source.op), source.span)
            copy = _rename_variables(source, {name: self.fresh.name(name) for name in sorted(inner)})
            result.append(replace(copy, target=extreme))
        keep = outer | {witness}
        at_extreme = _rename_variables(source, {name: self.fresh.name(name) for name in sorted(inner - keep)})
        assert at_extreme.value is not None
        return [*result, *at_extreme.bodies[0], tree.Constraint("=", at_extreme.value, extreme, source.span)]


def _inner_and_outer(aggregate: FlatAggregate, bound: set[str]) -> tuple[set[str], frozenset[str]]:
    """The names inside an aggregate, and those of them that mean the variables bound around it."""
    inner = {name for body in aggregate.bodies for name in variables(body)} | set(variables(aggregate.value))
    inside = {name for body in aggregate.bodies for name in bound_by(body)}
    shadowed = set(variables(aggregate.value)) & inside
    return inner, frozenset((inner & bound) - shadowed)


def _find_witness(aggregate: FlatAggregate, name: str) -> FlatAggregate | None:
    if aggregate.op in ("min", "max") and len(aggregate.bodies) == 1 and name in bound_by(aggregate.bodies[0]):
        return aggregate
    for body in aggregate.bodies:
        for literal in body:
            if isinstance(literal, FlatAggregate) and (source := _find_witness(literal, name)):
                return source
    return None


def _plain_variables(body: Iterable[FlatLiteral]) -> set[str]:
    """The names used in a body outside the bodies of its aggregates."""
    result: set[str] = set()
    for literal in body:
        result.update(variables(literal.target if isinstance(literal, FlatAggregate) else literal))
    return result


def _rename_variables(aggregate: FlatAggregate, names: dict[str, str]) -> FlatAggregate:
    """The aggregate with variables renamed inside it, its target left alone."""
    if not names:
        return aggregate

    def rename(part: Any) -> Any:
        if isinstance(part, tree.Variable) and part.name in names:
            return tree.Variable(names[part.name], part.span)
        return part

    return replace(rebuild(aggregate, rename), target=aggregate.target)
