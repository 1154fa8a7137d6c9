"""What a rule's body means: the assignments to its variables that satisfy every literal.

`solutions` goes through a body from left to right, extending an environment (variable name to value) by each literal in
every possible way. A functor without a value (`Undefined`) makes the literal it stands in fail.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from whence.lang.aggregates import combine
from whence.lang.calls import FunctionError, checked_call
from whence.lang.functors import Undefined, cast, holds, implementation, solutions_of_range
from whence.lang.order import names_in
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
from whence.lang.types import AdtKind, Kind, Tuple, Value, Variant
from whence.reference.tables import Table

Environment = Mapping[str, Value]


class EvaluationWarning(UserWarning):
    """Something a rule asked for has no value, and what it would have derived is left out."""


@dataclass(frozen=True, slots=True)
class Access:
    """How an atom is matched, the same at every visit since bodies are in a fixed order.

    `columns` hold values known before, those of `key`; `variables` are bound here; `patterns` are taken apart, functors last.
    """

    columns: tuple[int, ...]
    key: tuple[Term, ...]
    variables: tuple[tuple[str, int], ...]
    patterns: tuple[tuple[Term, int], ...]

    @classmethod
    def of(cls, atom: Atom, environment: Environment) -> Access:
        known = [at for at, arg in enumerate(atom.args) if is_known(arg, environment)]
        variables: dict[str, int] = {}
        patterns: list[tuple[Term, int]] = []
        for at, arg in enumerate(atom.args):
            if at in known or isinstance(arg, Anything):
                continue
            if isinstance(arg, Var) and arg.name not in variables:
                variables[arg.name] = at
            else:
                patterns.append((arg, at))
        patterns.sort(key=lambda pattern: isinstance(pattern[0], Apply))
        return cls(tuple(known), tuple(atom.args[at] for at in known), tuple(variables.items()), tuple(patterns))


@dataclass
class Solver:
    """`tables` is the current state; `rule` is the rule being evaluated, for messages and counters."""

    program: Program
    tables: dict[str, Table]
    rule: Rule | Subsumption | None = None
    counters: dict[object, int] = field(default_factory=dict)
    warned: set[tuple[str, str]] = field(default_factory=set)
    accesses: dict[tuple[int, int], Access] = field(default_factory=dict)
    non_negative_sums: bool = False
    # One atom of the rule may be made to see new rows only.
    new_atom: Atom | None = None
    new_rows: Table = field(default_factory=Table)
    # Called now and then, to stop a search that takes too long.
    on_steps: Callable[[], None] = lambda: None
    steps: int = 0

    def heads(self, rule: Rule) -> Iterator[Tuple]:
        """Every head tuple that the rule derives from the current state, possibly several times."""
        self.rule = rule
        for environment in self.solutions(rule.body, {}):
            try:
                yield tuple(self.value(arg, environment) for arg in rule.head.args)
            except Undefined as reason:
                self._warn(reason)

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
                case Comparison():
                    if (extended := self._compare(literal, environment)) is not None:
                        yield extended
                case Generator(target=target, args=args):
                    bounds = [self.value(arg, environment) for arg in args]
                    for number in solutions_of_range(*bounds):  # type: ignore[arg-type]
                        self._step()
                        if (extended := self._match(target, number, environment)) is not None:
                            yield extended
                case Aggregation(target=target):
                    result = self._aggregate(literal, environment)
                    if result is not None and (extended := self._match(target, result, environment)) is not None:
                        yield extended
        except Undefined as reason:
            self._warn(reason)

    def _match_atom(self, atom: Atom, environment: Environment) -> Iterator[Environment]:
        place = (id(self.rule), id(atom))
        access = self.accesses.get(place)
        if access is None:
            access = self.accesses[place] = Access.of(atom, environment)
        key = tuple([self.value(arg, environment) for arg in access.key])
        table = self.new_rows if atom is self.new_atom else self.tables[atom.relation]
        rows = table.lookup(access.columns, key)
        if not access.patterns:
            if not access.variables:
                if rows:
                    yield environment
                return
            for row in rows:
                extended = dict(environment)
                for name, column in access.variables:
                    extended[name] = row[column]
                yield extended
            return
        for row in rows:
            extended = {**environment, **{name: row[column] for name, column in access.variables}}
            try:
                matched = self._match_all([(term, row[column]) for term, column in access.patterns], extended)
            except Undefined as reason:  # the other rows may well have a value
                self._warn(reason)
                continue
            if matched is not None:
                yield matched

    def _match_all(self, pairs: Iterable[tuple[Term, Value]], environment: Environment) -> Environment | None:
        extended: Environment | None = environment
        for term, value in pairs:
            if extended is None:
                break
            extended = self._match(term, value, extended)
        return extended

    def _match(self, term: Term, value: Value, environment: Environment) -> Environment | None:
        """The environment with the term's unbound variables set so that it equals the value; None if it cannot."""
        match term:
            case Var(name=name):
                if name not in environment:
                    return {**environment, name: value}
                return environment if environment[name] == value else None
            case Anything():
                return environment
            case Make(args=args, kind=AdtKind(), branch=branch):
                if isinstance(value, Variant) and value.branch == branch:
                    return self._match_all(zip(args, value.args, strict=True), environment)
                return None
            case Make(args=args):
                if isinstance(value, tuple) and len(value) == len(args):
                    return self._match_all(zip(args, value, strict=True), environment)
                return None
            case Cons(items=items, rest=rest):
                if isinstance(value, tuple) and len(value) >= len(items):
                    heads = zip(items, value, strict=False)
                    return self._match_all((*heads, (rest, value[len(items) :])), environment)
                return None
            case _:
                return environment if self.value(term, environment) == value else None

    def _compare(self, literal: Comparison, environment: Environment) -> Environment | None:
        if literal.op == "=":
            left_known = is_known(literal.left, environment)
            known, pattern = (literal.left, literal.right) if left_known else (literal.right, literal.left)
            return self._match(pattern, self.value(known, environment), environment)
        left, right = self.value(literal.left, environment), self.value(literal.right, environment)
        return environment if holds(literal.op, left, right) else None

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
        if self.non_negative_sums and literal.op == "sum" and any(value < 0 for value in values.values()):  # type: ignore[operator]
            raise FunctionError(
                f"{self._where()}: a sum inside recursion met a negative value; "
                "such a sum can fall as the recursion goes on and has no well-defined result"
            )
        return combine(literal.op, list(values.values()), literal.target.kind)

    # -- terms

    def value(self, term: Term, environment: Environment) -> Value:
        match term:
            case Var(name=name):
                return environment[name]
            case Const(value=value):
                return value
            case Make(args=args, branch=branch):
                parts = tuple(self.value(arg, environment) for arg in args)
                return parts if branch is None else Variant(branch, parts)
            case Cons(items=items, rest=rest):
                tail = self.value(rest, environment)
                assert isinstance(tail, tuple)
                return (*(self.value(item, environment) for item in items), *tail)
            case Apply(functor="autoinc"):
                return self._count(term, environment)
            case Apply(functor=functor, args=args, kind=kind):
                return self._apply(functor, args, [self.value(arg, environment) for arg in args], kind)
            case Anything():
                raise AssertionError("a wildcard has no value")

    def _apply(self, functor: str, args: tuple[Term, ...], values: list[Value], kind: Kind) -> Value:
        if functor in self.program.functions:
            return self._call(functor, values, kind)
        if functor == "as":
            reinterpret = cast(args[0].kind, kind)
            assert reinterpret is not None
            return reinterpret(values[0])
        return implementation(functor, args[0].kind if args else None, kind)(*values)

    def _call(self, name: str, values: list[Value], kind: Kind) -> Value:
        try:
            return checked_call(name, self.program.functions[name], values, kind)
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
        if (self.rule.name, str(reason)) not in self.warned:
            self.warned.add((self.rule.name, str(reason)))
            warnings.warn(f"{self._where()}: {reason}; nothing is derived there", EvaluationWarning, stacklevel=2)

    def _where(self) -> str:
        assert self.rule is not None
        place = self.program.source.place(self.rule.span)
        return f"{place.file.name}:{place.line}: rule {self.rule.name}"


def is_known(term: Term, environment: Environment) -> bool:
    """Whether the term has a value: no wildcard in it, and every variable bound."""
    if isinstance(term, Var):
        return term.name in environment
    return not _has_wildcard(term) and all(name in environment for name in names_in(term))


def _has_wildcard(term: Term) -> bool:
    match term:
        case Anything():
            return True
        case Apply(args=args) | Make(args=args):
            return any(_has_wildcard(arg) for arg in args)
        case Cons(items=items, rest=rest):
            return any(_has_wildcard(part) for part in (*items, rest))
        case _:
            return False
