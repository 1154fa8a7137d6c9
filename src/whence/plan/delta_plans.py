"""Delta plans: per rule and per changed literal, the order of joins and tests that finds what follows from the change.

The changed literal comes first; the rest in the order that a `JoinOrder` picks. Positions in the
body tell the engine which rows the other literals must see, so that every derivation is found exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from whence.lang.order import Candidate, is_bound, order_body
from whence.lang.program import (
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
    Rule,
    Term,
    Var,
)
from whence.lang.types import Kind, ListKind, Nullable, base
from whence.plan.join_order import JoinOrder, most_bound
from whence.plan.steps import (
    Build,
    Check,
    Compare,
    Compute,
    Constant,
    DeltaPlan,
    Generate,
    Join,
    Operand,
    Scan,
    Slot,
    Step,
    TakeApart,
)


def delta_plans(
    rule: Rule,
    stratum: frozenset[str],
    sizes: Mapping[str, int] | None = None,
    join_order: JoinOrder = most_bound,
) -> Iterator[DeltaPlan]:
    """One plan for each atom and negation of the rule; if no atom is positive, also one for what holds from the start.

    `sizes` tells how many rows relations have, as far as that is known.
    """
    if not any(isinstance(literal, Atom) for literal in rule.body):
        yield _Builder(rule, stratum, sizes, join_order).build(None)
    for position, literal in enumerate(rule.body):
        if isinstance(literal, Atom | Negation):
            yield _Builder(rule, stratum, sizes, join_order).build(position)


def rederivation(rule: Rule, stratum: frozenset[str]) -> DeltaPlan:
    """The plan that finds which rows of the head's relation, given as if they had changed, the rule derives."""
    return _Builder(replace(rule, body=(rule.head, *rule.body)), stratum).build(0)


class _Builder:
    def __init__(
        self,
        rule: Rule,
        stratum: frozenset[str],
        sizes: Mapping[str, int] | None = None,
        join_order: JoinOrder = most_bound,
    ) -> None:
        self.rule = rule
        self.sizes = sizes or {}
        self.join_order = join_order
        self.stratum = stratum
        self.slots: dict[str, int] = {}
        self.count = 0
        self.steps: list[Step] = []
        # Equalities between columns of the changed rows and terms that may need other literals first.
        self.pending: list[Literal] = []

    def build(self, position: int | None) -> DeltaPlan:
        rule = self.rule
        scan, negated = None, False
        if position is not None:
            driver = rule.body[position]
            negated = isinstance(driver, Negation)
            atom = driver.atom if isinstance(driver, Negation) else driver
            assert isinstance(atom, Atom)
            scan = self._scan(atom)
        rest: list[Literal] = [literal for at, literal in enumerate(rule.body) if at != position]
        ordered, _ = order_body(self.pending + rest, set(self.slots), self._pick)
        places = {id(literal): at for at, literal in enumerate(rule.body)}
        for literal in ordered:
            self._literal(literal, places.get(id(literal), -1))
        head = tuple(self._operand(arg) for arg in rule.head.args)
        return DeltaPlan(rule, -1 if position is None else position, negated, scan, tuple(self.steps), head, self.count)

    def _pick(self, candidates: Sequence[Candidate]) -> int:
        return self.join_order(candidates, self.sizes)

    # -- literals

    def _scan(self, atom: Atom) -> Scan:
        binds: list[tuple[int, int]] = []
        equals: list[tuple[int, Constant]] = []
        same: list[tuple[int, int]] = []
        columns: dict[str, int] = {}
        for column, arg in enumerate(atom.args):
            match arg:
                case Anything():
                    pass
                case Var(name=name) if name in columns:
                    same.append((columns[name], column))
                case Var(name=name):
                    columns[name] = column
                    binds.append((column, self._new(name)))
                case Const(value=value, kind=kind):
                    equals.append((column, Constant(value, kind)))
                case _:
                    whole = Var(f"#{column}", arg.kind)
                    binds.append((column, self._new(whole.name)))
                    self.pending.append(Comparison("=", whole, arg, atom.span))
        return Scan(atom.relation, atom.relation in self.stratum, tuple(binds), tuple(equals), tuple(same))

    def _literal(self, literal: Literal, position: int) -> None:
        match literal:
            case Atom():
                self._join(literal, position)
            case Negation(atom=atom):
                args = tuple(self._operand(arg) for arg in atom.args)
                self.steps.append(Check(position, atom.relation, False, args, present=False))
            case Generator(target=target, args=bounds):
                operands, values = tuple(self._present(arg) for arg in bounds), self._fresh()
                self.steps.append(Generate(values, operands, target.kind))
                self._match(target, Slot(values))
            case Comparison(op="=", left=left, right=right):
                known, pattern = (left, right) if self._is_bound(left) else (right, left)
                self._match(pattern, self._operand(known))
            case Comparison(op="!=", left=left, right=right):
                self.steps.append(Compare("!=", self._operand(left), self._operand(right), _either(left, right)))
            case Comparison(op=op, left=left, right=right):
                self.steps.append(Compare(op, self._present(left), self._present(right), base(left.kind)))
            case _:
                raise AssertionError(literal)

    def _join(self, atom: Atom, position: int) -> None:
        recursive = atom.relation in self.stratum
        key: list[tuple[int, Operand]] = []
        binds: list[tuple[int, int]] = []
        same: list[tuple[int, int]] = []
        columns: dict[str, int] = {}
        later: list[tuple[Term, int]] = []
        for column, arg in enumerate(atom.args):
            match arg:
                case Anything():
                    pass
                case Var(name=name) if name in columns:
                    same.append((columns[name], column))
                case _ if self._is_bound(arg):
                    key.append((column, self._operand(arg)))
                case Var(name=name):
                    columns[name] = column
                case _:
                    later.append((arg, column))
        if len(key) == len(atom.args):
            args = tuple(operand for _, operand in key)
            self.steps.append(Check(position, atom.relation, recursive, args, present=True))
            return
        binds = [(column, self._new(name)) for name, column in columns.items()]
        patterns = [(term, self._fresh(), column) for term, column in later]
        binds += [(column, slot) for _, slot, column in patterns]
        self.steps.append(Join(position, atom.relation, recursive, tuple(key), tuple(binds), tuple(same)))
        for term, slot, _ in patterns:
            self._match(term, Slot(slot))

    # -- terms

    def _new(self, name: str) -> int:
        self.slots[name] = self._fresh()
        return self.slots[name]

    def _fresh(self) -> int:
        self.count += 1
        return self.count - 1

    def _is_bound(self, term: Term) -> bool:
        return is_bound(term, self.slots.keys())

    def _operand(self, term: Term) -> Operand:
        """A bound term's value, computed by steps of its own where need be."""
        match term:
            case Var(name=name):
                return Slot(self.slots[name])
            case Const(value=value, kind=kind):
                return Constant(value, kind)
            case Apply(functor=functor, args=args, kind=kind, takes_nil=takes_nil):
                operands = tuple((self._operand if takes_nil else self._present)(arg) for arg in args)
                kinds = tuple(arg.kind if takes_nil else base(arg.kind) for arg in args)
                target = self._fresh()
                self.steps.append(Compute(target, functor, operands, kinds, kind))
                return Slot(target)
            case Make(args=args, kind=kind, branch=branch):
                parts, kinds = tuple(self._operand(arg) for arg in args), tuple(arg.kind for arg in args)
                target = self._fresh()
                self.steps.append(Build(target, parts, kinds, kind, branch))
                return Slot(target)
            case Cons(items=items, rest=rest, kind=kind):
                parts, kinds = tuple(self._operand(item) for item in items), tuple(item.kind for item in items)
                tail = self._operand(rest)
                target = self._fresh()
                self.steps.append(Build(target, parts, kinds, kind, rest=tail))
                return Slot(target)
            case Anything():
                raise AssertionError("a wildcard has no value")

    def _present(self, term: Term) -> Operand:
        """A bound term's value where it is not nil."""
        operand = self._operand(term)
        if isinstance(term.kind, Nullable):
            self.steps.append(Compare("!=", operand, Constant(None, term.kind), term.kind))
        return operand

    def _match(self, pattern: Term, value: Operand) -> None:
        """Steps that make a pattern equal to a value, binding its variables."""
        if self._is_bound(pattern):
            self.steps.append(Compare("=", self._operand(pattern), value, pattern.kind))
            return
        match pattern:
            case Anything():
                pass
            case Var(name=name):
                self.slots[name] = value.number if isinstance(value, Slot) else self._loaded(value, pattern.kind)
            case Make(args=args, kind=kind, branch=branch):
                slots = tuple(self._fresh() for _ in args)
                self.steps.append(TakeApart(value, kind, branch, slots, tuple(arg.kind for arg in args)))
                for arg, slot in zip(args, slots, strict=True):
                    self._match(arg, Slot(slot))
            case Cons(items=items, rest=rest, kind=kind):
                assert isinstance(kind, ListKind)
                slots, tail = tuple(self._fresh() for _ in items), self._fresh()
                kinds = tuple(kind.element for _ in items)
                self.steps.append(TakeApart(value, kind, None, slots, kinds, rest=tail, open_ended=True))
                for part, slot in zip((*items, rest), (*slots, tail), strict=True):
                    self._match(part, Slot(slot))
            case _:
                raise AssertionError(pattern)

    def _loaded(self, value: Operand, kind: Kind) -> int:
        """A constant put into a slot."""
        target = self._fresh()
        self.steps.append(Compute(target, "constant", (value,), (kind,), kind))
        return target


def _either(left: Term, right: Term) -> Kind:
    """The kind that two terms are compared in: one that has nil if either has."""
    return right.kind if isinstance(right.kind, Nullable) else left.kind
