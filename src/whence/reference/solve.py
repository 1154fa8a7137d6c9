"""What a rule's body means: the assignments to its variables that satisfy every literal.

`solutions` goes through a body from left to right, extending an environment (variable name to value) by each literal in
every possible way. A functor without a value (`Undefined`) makes the literal it stands in fail.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat

from whence.lang.aggregates import combine
from whence.lang.calls import FunctionError, checked_call
from whence.lang.deep import compound
from whence.lang.functors import holds, implementation, solutions_of_range
from whence.lang.order import is_bound
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
    Program,
    Rule,
    Subsumption,
    Term,
    Var,
)
from whence.lang.sizes import check_structure
from whence.lang.tree import walk
from whence.lang.types import Kind, Nullable, Tuple, Value, Variant, base
from whence.lang.undefined import NilArgument, Undefined
from whence.reference.tables import TupleSet

Environment = dict[str, Value]


class EvaluationWarning(UserWarning):
    """Something a rule asked for has no value, and what it would have derived is left out."""


@dataclass
class Solver:
    """`tables` is the current state; `rule` is the rule being evaluated, for messages and counters."""

    program: Program
    tables: dict[str, TupleSet]
    rule: Rule | Subsumption | None = None
    counters: dict[object, int] = field(default_factory=dict)
    warned: set[tuple[str, str]] = field(default_factory=set)
    # The relations of a recursion that converges: sums over them may only rise.
    converging: frozenset[str] = frozenset()
    # The round of the recursion, as `recursive_iteration_cnt()` has it.
    round: int = 0
    # One atom of the rule may be made to see new rows only.
    new_atom: Atom | None = None
    new: Mapping[str, TupleSet] = field(default_factory=dict)
    # Called now and then, to stop a search that takes too long.
    on_steps: Callable[[], None] = lambda: None
    seconds_left: Callable[[], float | None] = lambda: None
    steps: int = 0

    def heads(self, rule: Rule, new: Mapping[str, TupleSet] | None = None) -> Iterator[Tuple]:
        """Every head tuple that the rule derives, possibly several times; given what is new, only from combinations with it."""
        self.rule = rule
        self.new = new or {}
        atoms = (
            [None] if new is None else [each for each in rule.body if isinstance(each, Atom) and each.relation in new]
        )
        for self.new_atom in atoms:
            for environment in self.solutions(rule.body, {}):
                try:
                    yield tuple(self.value(arg, environment) for arg in rule.head.args)
                except Undefined as reason:
                    self._warn(reason)
        self.new_atom = None

    # -- literals

    def solutions(self, body: tuple[Literal, ...], environment: Environment) -> Iterator[Environment]:
        if not body:
            yield environment
            return
        # One iterator for each literal up to the current one: bodies may be longer than Python can recurse.
        ways = [self._satisfy(body[0], environment)]
        while ways:
            self._step()
            extended = next(ways[-1], None)
            if extended is None:
                ways.pop()
            elif len(ways) == len(body):
                yield extended
            else:
                ways.append(self._satisfy(body[len(ways)], extended))

    def _step(self) -> None:
        self.steps += 1
        if self.steps % 1024 == 0:
            self.on_steps()

    def _satisfy(self, literal: Literal, environment: Environment) -> Iterator[Environment]:
        """The ways to extend an environment so that the literal holds."""
        try:
            match literal:
                case Atom():
                    yield from self._match_atom(literal, environment)
                case Negation(atom=atom):
                    if next(self._match_atom(atom, environment), None) is None:
                        yield environment
                case Comparison(op="=", left=left, right=right):
                    known, pattern = (left, right) if is_known(left, environment) else (right, left)
                    yield from self._match(pattern, [self.value(known, environment)], environment)
                case Comparison(op=op, left=left, right=right):
                    if self._holds(op, self.value(left, environment), self.value(right, environment)):
                        yield environment
                case Generator(target=target, args=args):
                    bounds = [self._present(arg, environment) for arg in args]
                    yield from self._match(target, solutions_of_range(*bounds), environment)  # type: ignore[arg-type]
                case Aggregation(target=target):
                    result = self._aggregate(literal, environment)
                    yield from self._match(target, [] if result is None else [result], environment)
        except Undefined as reason:
            self._warn(reason)

    def _holds(self, op: str, left: Value, right: Value) -> bool:
        try:
            return holds(op, left, right, self.seconds_left())
        except TimeoutError:
            self.on_steps()
            raise

    def _match_atom(self, atom: Atom, environment: Environment) -> Iterator[Environment]:
        known, key, unknown = [], [], []
        for at, arg in enumerate(atom.args):
            if is_known(arg, environment):
                known.append(at)
                key.append(self.value(arg, environment))
            elif not isinstance(arg, Anything):
                unknown.append((arg, at))
        # A functor is compared once the variables in it are bound by the other arguments.
        unknown.sort(key=lambda place: isinstance(place[0], Apply))
        table = (self.new if atom is self.new_atom else self.tables)[atom.relation]
        rows = table.lookup(tuple(known), tuple(key))
        for row in rows if unknown else islice(rows, 1):
            extended = environment.copy()
            try:
                if all(self.fits(arg, row[at], extended) for arg, at in unknown):
                    yield extended
            except Undefined as reason:  # the other rows may well have a value
                self._warn(reason)

    def _match(self, pattern: Term, values: Iterable[Value], environment: Environment) -> Iterator[Environment]:
        for value in values:
            self._step()
            extended = environment.copy()
            if self.fits(pattern, value, extended):
                yield extended

    def fits(self, term: Term, value: Value, environment: Environment) -> bool:
        """Whether the term can equal the value; its unbound variables are then bound so that it does."""
        match term:
            case Var(name=name):
                return environment.setdefault(name, value) == value
            case Anything():
                return True
            case Make(args=args, branch=branch):
                parts = value.args if isinstance(value, Variant) and value.branch == branch else value
                return isinstance(parts, tuple) and self._all_fit(args, parts, environment)
            case Cons(items=items, rest=rest):
                if not isinstance(value, tuple):
                    return False
                split = len(items)
                return self._all_fit(items, value[:split], environment) and self.fits(rest, value[split:], environment)
            case _:
                return self.value(term, environment) == value

    def _all_fit(self, terms: Sequence[Term], values: Sequence[Value], environment: Environment) -> bool:
        return len(terms) == len(values) and all(map(self.fits, terms, values, repeat(environment)))

    def _aggregate(self, literal: Aggregation, environment: Environment) -> Value:
        """The aggregate's value, or None where there is none."""
        outer = {name: environment[name] for name in literal.outer}
        values: dict[Tuple, Value] = {}
        for body in literal.bodies:
            for solution in self.solutions(body, outer):
                row = tuple(solution[name] for name in literal.locals)
                if row not in values:
                    try:
                        values[row] = None if literal.value is None else self.value(literal.value, solution)
                    except Undefined as reason:
                        self._warn(reason)
        if self._has_to_rise(literal) and any(value < 0 for value in values.values()):  # type: ignore[operator]
            raise FunctionError(
                f"{self._where()}: a sum inside recursion met a negative value; "
                "such a sum can fall as the recursion goes on and has no well-defined result"
            )
        return combine(literal.op, list(values.values()), base(literal.target.kind))

    def _has_to_rise(self, literal: Aggregation) -> bool:
        if literal.op != "sum" or not self.converging:
            return False
        return any(isinstance(each, Atom) and each.relation in self.converging for each in walk(literal.bodies))

    # -- terms

    def value(self, term: Term, environment: Environment) -> Value:
        match term:
            case Var(name=name):
                return environment[name]
            case Const(value=value):
                return value
            case Make(args=args, branch=branch):
                parts = check_structure(compound(self.value(arg, environment) for arg in args))
                return parts if branch is None else Variant(branch, parts)
            case Cons(items=items, rest=rest):
                tail = self.value(rest, environment)
                assert isinstance(tail, tuple)
                return check_structure(compound((*(self.value(item, environment) for item in items), *tail)))
            case Apply(functor="recursive_iteration_cnt"):
                return self.round
            case Apply(functor="autoinc"):
                return self._count(term, environment)
            case Apply(functor=functor, args=args, kind=kind, takes_nil=takes_nil):
                value_of = self.value if takes_nil else self._present
                values = [value_of(arg, environment) for arg in args]
                if functor in self.program.functions:
                    return self._call(functor, values, kind)
                return implementation(functor, base(args[0].kind) if args else None, base(kind))(*values)
            case Anything():
                raise AssertionError("a wildcard has no value")

    def _present(self, term: Term, environment: Environment) -> Value:
        value = self.value(term, environment)
        if value is None and isinstance(term.kind, Nullable):
            raise NilArgument
        return value

    def _call(self, name: str, values: list[Value], kind: Kind) -> Value:
        try:
            return checked_call(name, self.program.functions[name], values, kind, self.program.types)
        except FunctionError as error:
            raise FunctionError(f"{self._where()}: {error}") from error.__cause__

    def _count(self, term: Apply, environment: Environment) -> int:
        """`autoinc()`: the same number whenever this rule meets these values, another for any others."""
        assert self.rule is not None
        instance = (self.rule.name, id(term), tuple(sorted(environment.items(), key=lambda item: item[0])))
        return self.counters.setdefault(instance, len(self.counters))

    # -- messages

    def _warn(self, reason: Undefined) -> None:
        assert self.rule is not None
        if not isinstance(reason, NilArgument) and (self.rule.name, str(reason)) not in self.warned:
            self.warned.add((self.rule.name, str(reason)))
            warnings.warn(f"{self._where()}: {reason}; nothing is derived there", EvaluationWarning, stacklevel=2)

    def _where(self) -> str:
        assert self.rule is not None
        place = self.program.source.place(self.rule.span)
        return f"{place.file.name}:{place.line}: rule {self.rule.name}"


def is_known(term: Term, environment: Environment) -> bool:
    """Whether the term has a value: no wildcard in it, and every variable bound."""
    return term.name in environment if isinstance(term, Var) else is_bound(term, environment.keys())
