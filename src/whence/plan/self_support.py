"""Whether the values of aggregates inside a recursion can come to rest on themselves.

Values are kept only as long as they follow from other values that are kept. That finds the least solution if each best value
follows from best values without going in a circle. It does not if better values come only by way of worse ones: with

    controls(x, y) :- t = sum s : { share(x, z, y, s) }, t > 50.      share(x, z, y, s) :- controls(x, z), owns(z, y, s).

the first shares found make x control y, which may bring more shares of y; the final sum then follows from itself alone. Such
strata are evaluated anew. Maintained are those where going round a circle never improves a value, or improves it for ever:

- the aggregates are all `min` or all `max`, and each rule takes a value on into the value of its head, nowhere else;
- on the way it is added to, or subtracted from: a circle that improves it has no end; or
- it is only made worse: a non-negative number is added to what a `min` is taken of or subtracted from what a `max` is, a
  `max` is limited by `min(v, e)` and a `min` by `max(v, e)`, a `max` of non-negative values is multiplied by a factor known
  to be between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from whence.lang.order import names_in, names_met
from whence.lang.program import Apply, Atom, Comparison, Const, Literal, Rule, Term, Var
from whence.lang.types import UNSIGNED
from whence.plan.extract_aggregates import AggregateSpec

Column = tuple[str, int]


class _MayRest(Exception):
    """A value may come to rest on itself; the text says where."""


def why_values_may_rest(rules: Sequence[Rule], specs: Sequence[AggregateSpec]) -> str:
    """Why the stratum with these rules and recursive aggregates cannot be maintained; empty if it can."""
    operations = {spec.op for spec in specs}
    if not operations <= {"min", "max"} or len(operations) > 1:
        return f"recursion through {' and '.join(sorted(operations))}, whose values may come to rest on themselves"
    try:
        _Values(rules, specs, operations.pop()).check()
    except _MayRest as reason:
        return f"aggregates inside recursion, and {reason}"
    return ""


class _Values:
    def __init__(self, rules: Sequence[Rule], specs: Sequence[AggregateSpec], op: str) -> None:
        self.rules = [(rule, _definitions(rule)) for rule in rules]
        self.specs = specs
        self.op = op
        self.carrying: set[Column] = {(spec.output, spec.output_value) for spec in specs}
        self.only_worse = True
        self.only_shifts = True

    def check(self) -> None:
        self._find_columns()
        for spec in self.specs:
            stray = [column for relation, column in self.carrying if relation == spec.rows]
            if any(column != spec.value_column for column in stray):
                raise _MayRest(f"the {spec.op} in rule {spec.rule} does not take on a value that improves")
        for rule, definitions in self.rules:
            self._rule(rule, definitions)
        if not (self.only_worse or self.only_shifts):
            raise _MayRest("values are both shifted and limited")

    def _find_columns(self) -> None:
        """The columns that hold values of aggregates, or what is computed from them."""
        before = -1
        while before != len(self.carrying):
            before = len(self.carrying)
            for spec in self.specs:
                if any(relation == spec.rows for relation, _ in self.carrying) and spec.value_column is not None:
                    self.carrying.add((spec.output, spec.output_value))
            for rule, definitions in self.rules:
                values = self._values(rule)
                for column, arg in enumerate(rule.head.args):
                    if values & set(names_in(_expanded(arg, definitions))):
                        self.carrying.add((rule.head.relation, column))

    def _values(self, rule: Rule) -> set[str]:
        return {
            name
            for atom in _atoms(rule)
            for column, arg in enumerate(atom.args)
            if (atom.relation, column) in self.carrying
            for name in names_in(arg)
        }

    def _rule(self, rule: Rule, definitions: dict[str, Term]) -> None:
        values = self._values(rule)
        for atom in _atoms(rule):
            for column, arg in enumerate(atom.args):
                if (atom.relation, column) in self.carrying and not isinstance(arg, Var):
                    raise _MayRest(f"rule {rule.name} does not take on the value of {atom.relation}")
        used = [name for arg in rule.head.args for name in names_in(_expanded(arg, definitions)) if name in values]
        met = [
            name
            for literal in rule.body
            if not _defines(literal, definitions)
            for name in names_met(literal)
            if name in values
        ]
        if set(used) != values or len(met) != len(set(met)) or len(used) != len(set(used)):
            raise _MayRest(f"rule {rule.name} uses a value other than for its head's")
        bounds = _Bounds(rule.body)
        for column, arg in enumerate(rule.head.args):
            if (rule.head.relation, column) in self.carrying:
                self._term(_expanded(arg, definitions), values, bounds, rule)

    def _term(self, term: Term, values: set[str], bounds: _Bounds, rule: Rule) -> None:
        """Notes what happens to values on their way through a term."""
        names = values & set(names_in(term))
        if not names:
            # Where values come from: factors make them worse only if they are not negative.
            self.only_worse &= bounds.is_non_negative(term) or not self._has_factors()
            return
        match term:
            case Var():
                return
            case Apply(functor="+" | "-" as functor, args=(left, right)):
                moved = [arg for arg in (left, right) if values & set(names_in(arg))]
                other = right if moved[0] is left else left
                upwards = functor == "+"
                is_worse = (
                    len(moved) == 1
                    and bounds.is_non_negative(other)
                    and upwards == (self.op == "min")
                    and (upwards or moved[0] is left)
                )
                self.only_worse &= is_worse
                for arg in moved:
                    self._term(arg, values, bounds, rule)
            case Apply(functor="min" | "max" as functor, args=args) if functor != self.op:
                moved = [arg for arg in args if values & set(names_in(arg))]
                self.only_shifts = False
                for arg in moved:
                    self._term(arg, values, bounds, rule)
            case Apply(functor="*", args=(left, right)) if self.op == "max":
                moved = [arg for arg in (left, right) if values & set(names_in(arg))]
                other = right if moved[0] is left else left
                self.only_shifts = False
                self.only_worse &= len(moved) == 1 and bounds.is_share(other)
                for arg in moved:
                    self._term(arg, values, bounds, rule)
            case _:
                raise _MayRest(f"rule {rule.name} computes with a value in a way that may improve it and then stop")

    def _has_factors(self) -> bool:
        return any(
            isinstance(part, Apply) and part.functor == "*"
            for rule, definitions in self.rules
            for column, arg in enumerate(rule.head.args)
            if (rule.head.relation, column) in self.carrying
            for part in _parts(_expanded(arg, definitions))
        )


class _Bounds:
    """What comparisons with constants in a body say of its variables."""

    def __init__(self, body: tuple[Literal, ...]) -> None:
        self.at_least: dict[str, float] = {}
        self.at_most: dict[str, float] = {}
        for literal in body:
            match literal:
                case Comparison(op=">=" | ">", left=Var(name=name), right=Const(value=int() | float() as bound)):
                    self.at_least[name] = max(bound, self.at_least.get(name, bound))
                case Comparison(op="<=" | "<", left=Var(name=name), right=Const(value=int() | float() as bound)):
                    self.at_most[name] = min(bound, self.at_most.get(name, bound))

    def is_non_negative(self, term: Term) -> bool:
        if isinstance(term, Const):
            return isinstance(term.value, int | float) and term.value >= 0
        return term.kind == UNSIGNED or (isinstance(term, Var) and self.at_least.get(term.name, -1) >= 0)

    def is_share(self, term: Term) -> bool:
        if isinstance(term, Const):
            return isinstance(term.value, int | float) and 0 <= term.value <= 1
        return self.is_non_negative(term) and isinstance(term, Var) and self.at_most.get(term.name, 2) <= 1


def _atoms(rule: Rule) -> Iterator[Atom]:
    return (literal for literal in rule.body if isinstance(literal, Atom))


def _definitions(rule: Rule) -> dict[str, Term]:
    """Variables that the body sets equal to a term, and that occur in no atom."""
    bound = {name for atom in _atoms(rule) for name in names_met(atom)}
    definitions: dict[str, Term] = {}
    for literal in rule.body:
        match literal:
            case Comparison(op="=", left=Var(name=name), right=term) if name not in bound | set(definitions):
                definitions[name] = term
            case Comparison(op="=", left=term, right=Var(name=name)) if name not in bound | set(definitions):
                definitions[name] = term
    return definitions


def _defines(literal: Literal, definitions: dict[str, Term]) -> bool:
    return isinstance(literal, Comparison) and any(
        literal.left is term or literal.right is term for term in definitions.values()
    )


def _expanded(term: Term, definitions: dict[str, Term]) -> Term:
    match term:
        case Var(name=name) if name in definitions:
            rest = {each: definition for each, definition in definitions.items() if each != name}
            return _expanded(definitions[name], rest)
        case Apply(args=args):
            return replace(term, args=tuple(_expanded(arg, definitions) for arg in args))
        case _:
            return term


def _parts(term: Term) -> Iterator[Term]:
    yield term
    if isinstance(term, Apply):
        for arg in term.args:
            yield from _parts(arg)
