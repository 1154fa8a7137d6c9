"""Aggregates inside recursion: accepted where they are monotone.

As a recursive relation grows, a `max`, a `count` and a `sum` of non-negative values only rise and a `min` only falls. A column
that carries such a value is *directed*. Recursion converges to one least solution if directed values are used only in ways
that let better values derive at least as much: copied or added to in a head, compared against a bound in their direction,
or aggregated again the same way. Anything else (joining on the value, negating, comparing the other way) is refused.

The order on sets of tuples is: every tuple of the smaller set is matched in the larger by one that is equal in the
undirected columns and as good or better in the directed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from whence.lang.describe import plain
from whence.lang.order import names_in
from whence.lang.program import (
    Aggregation,
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
    Subsumption,
    Term,
    Var,
)
from whence.lang.tree import Span
from whence.lang.types import UNSIGNED


class Direction(Enum):
    FALLING = "falls"
    RISING = "rises"

    def flipped(self) -> Direction:
        return Direction.RISING if self is Direction.FALLING else Direction.FALLING


FALLING, RISING = Direction.FALLING, Direction.RISING
_OF_AGGREGATE = {"min": FALLING, "max": RISING, "count": RISING, "sum": RISING}


class NotMonotone(Exception):
    """Why an aggregate in recursion is refused, and where."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.span = span


def check_monotone(component: set[str], rules: list[Rule | Subsumption]) -> None:
    """Raises `NotMonotone` unless every aggregate over the component is used monotonically."""
    for rule in rules:
        if isinstance(rule, Subsumption):
            raise NotMonotone("subsumption and recursive aggregates do not go together", rule.span)
    directed: dict[tuple[str, int], Direction] = {}
    while True:
        found = dict(directed)
        for rule in rules:
            assert isinstance(rule, Rule)
            for column, direction in _RuleCheck(rule, component, directed).head_directions():
                place = (rule.head.relation, column)
                if found.setdefault(place, direction) is not direction:
                    raise NotMonotone(
                        f"column {column + 1} of {rule.head.relation} both rises and falls as the recursion goes on",
                        rule.span,
                    )
        if found == directed:
            return
        directed = found


class _RuleCheck:
    def __init__(self, rule: Rule, component: set[str], directed: dict[tuple[str, int], Direction]) -> None:
        self.rule = rule
        self.component = component
        self.directed = directed
        self.values: dict[str, Direction] = {}
        self.bounds = frozenset(name for literal in rule.body for name in _kept_non_negative(literal))
        self._body(rule.body)

    def head_directions(self) -> Iterator[tuple[int, Direction]]:
        for column, arg in enumerate(self.rule.head.args):
            direction = self._direction(arg, self.rule.head.span)
            if direction is not None:
                yield column, direction

    # -- literals, in evaluation order

    def _body(self, body: tuple[Literal, ...]) -> None:
        seen: set[str] = set()
        for literal in body:
            match literal:
                case Atom():
                    self._atom(literal, seen)
                case Negation(atom=atom):
                    for arg in atom.args:
                        self._refuse_directed(arg, "is looked up in a negation", literal.span)
                case Comparison():
                    self._comparison(literal, seen)
                case Generator(args=args):
                    for arg in args:
                        self._refuse_directed(arg, "is a bound of range", literal.span)
                case Aggregation():
                    self._aggregation(literal, seen)
            seen |= _names(literal)

    def _atom(self, atom: Atom, seen: set[str]) -> None:
        here: set[str] = set()
        for column, arg in enumerate(atom.args):
            direction = self.directed.get((atom.relation, column))
            if direction is None:
                self._refuse_directed(arg, f"is joined with {atom.relation}", atom.span)
            elif isinstance(arg, Var):
                if arg.name in seen or arg.name in here:
                    raise NotMonotone(
                        f"{plain(arg.name)}, which {direction.value} as the recursion goes on, is joined on", atom.span
                    )
                self.values[arg.name] = direction
            elif _term_names(arg) or isinstance(arg, Const | Apply | Make | Cons):
                raise NotMonotone(
                    f"column {column + 1} of {atom.relation} {direction.value} as the recursion goes on "
                    "and is matched with a fixed value",
                    atom.span,
                )
            here |= _term_names(arg)

    def _comparison(self, literal: Comparison, seen: set[str]) -> None:
        left, right = self._direction(literal.left, literal.span), self._direction(literal.right, literal.span)
        if left is None and right is None:
            return
        if literal.op == "=":
            for target, direction in ((literal.left, right), (literal.right, left)):
                if isinstance(target, Var) and target.name not in seen and direction is not None:
                    self.values[target.name] = direction
                    return
        wanted = {"<": FALLING, "<=": FALLING, ">": RISING, ">=": RISING}.get(literal.op)
        if wanted is None:
            raise NotMonotone(
                f"a value that changes as the recursion goes on is compared with {literal.op}", literal.span
            )
        if left not in (None, wanted) or right not in (None, wanted.flipped()):
            name = next(iter(_term_names(literal.left) | _term_names(literal.right)), "it")
            raise NotMonotone(
                f"the test {literal.op} on {plain(name)} can turn false again as the recursion goes on", literal.span
            )

    def _aggregation(self, literal: Aggregation, seen: set[str]) -> None:
        recursive = any(
            isinstance(inner, Atom) and inner.relation in self.component
            for inner in _all_literals(sum(literal.bodies, ()))
        )
        for name in literal.outer:
            if name in self.values:
                raise NotMonotone(
                    f"{plain(name)}, which changes as the recursion goes on, groups an aggregate", literal.span
                )
        values, bounds = self.values, self.bounds
        changing: set[str] = set()
        directions: list[Direction] = []
        for body in literal.bodies:  # alternatives know nothing of each other
            self.values = dict(values)
            self.bounds = bounds.union(name for inner in body for name in _kept_non_negative(inner))
            self._body(body)
            changing |= self.values.keys()
            inner = None if literal.value is None else self._direction(literal.value, literal.span)
            directions += [] if inner is None else [inner]
        self.values, self.bounds = values, bounds
        if not recursive:
            return
        if literal.op not in _OF_AGGREGATE:
            raise NotMonotone(
                f"{literal.op} can rise and fall as the recursion goes on; min, max, count and sum can be used",
                literal.span,
            )
        direction = _OF_AGGREGATE[literal.op]
        if literal.op in ("count", "sum"):
            for name in literal.locals:
                if name in changing:
                    raise NotMonotone(
                        f"{literal.op} counts rows with {plain(name)}, a value that changes as the recursion goes on",
                        literal.span,
                    )
        else:
            for inner in directions:
                if inner is not direction:
                    raise NotMonotone(
                        f"a {literal.op} of a value that {inner.value} as the recursion goes on is not monotone",
                        literal.span,
                    )
        if not isinstance(literal.target, Var) or literal.target.name in seen:
            raise NotMonotone(f"the result of {literal.op} is compared for equality", literal.span)
        self.values[literal.target.name] = direction

    # -- terms

    def _direction(self, term: Term, span: Span) -> Direction | None:
        match term:
            case Var(name=name):
                return self.values.get(name)
            case Apply(functor=functor, args=args):
                return self._apply(functor, args, span)
            case Make(args=args):
                for arg in args:
                    self._refuse_directed(arg, "is put into a structure", span)
                return None
            case Cons(items=items, rest=rest):
                for part in (*items, rest):
                    self._refuse_directed(part, "is put into a list", span)
                return None
            case _:
                return None

    def _apply(self, functor: str, args: tuple[Term, ...], span: Span) -> Direction | None:
        directions = [self._direction(arg, span) for arg in args]
        present = {direction for direction in directions if direction is not None}
        if not present:
            return None
        if functor == "-":
            directions[-1] = None if directions[-1] is None else directions[-1].flipped()
            present = {direction for direction in directions if direction is not None}
        elif functor == "*":
            for arg, direction in zip(args, directions, strict=True):
                if direction is None and not self._is_non_negative(arg):
                    name = next(iter(_term_names(arg)), "the factor")
                    raise NotMonotone(
                        f"multiplying by {plain(name)} is monotone only if it is not negative: "
                        f"add {plain(name)} >= 0 to the rule",
                        span,
                    )
            if len(present) == 1 and None not in directions:
                raise NotMonotone(
                    "a product of two values that change as the recursion goes on may not be monotone", span
                )
        elif functor == "/":
            if directions[1] is not None or not (isinstance(args[1], Const) and _is_positive(args[1])):
                raise NotMonotone("dividing is monotone only by a positive constant", span)
        elif functor not in ("+", "min", "max", "itof", "utof", "to_float", "as"):
            raise NotMonotone(f"{functor} of a value that changes as the recursion goes on may not be monotone", span)
        if len(present) > 1:
            raise NotMonotone(f"{functor} combines a value that rises with one that falls", span)
        return present.pop()

    def _is_non_negative(self, term: Term) -> bool:
        if isinstance(term, Const):
            return isinstance(term.value, int | float) and term.value >= 0
        return term.kind == UNSIGNED or (isinstance(term, Var) and term.name in self.bounds)

    def _refuse_directed(self, term: Term, how: str, span: Span) -> None:
        for name in _term_names(term):
            if name in self.values:
                raise NotMonotone(
                    f"{plain(name)}, which {self.values[name].value} as the recursion goes on, {how}", span
                )


def _kept_non_negative(literal: Literal) -> Iterator[str]:
    """Variables that a comparison with a constant keeps at or above zero."""
    match literal:
        case Comparison(op=">=" | ">", left=Var(name=name), right=Const(value=int() | float() as bound)) if bound >= 0:
            yield name
        case Comparison(op="<=" | "<", left=Const(value=int() | float() as bound), right=Var(name=name)) if bound >= 0:
            yield name


def _is_positive(constant: Const) -> bool:
    return isinstance(constant.value, int | float) and constant.value > 0


def _all_literals(body: tuple[Literal, ...]) -> Iterator[Literal]:
    for literal in body:
        yield literal
        if isinstance(literal, Aggregation):
            for inner in literal.bodies:
                yield from _all_literals(inner)


def _term_names(term: Term) -> set[str]:
    return set(names_in(term))


def _names(literal: Literal) -> set[str]:
    match literal:
        case Atom(args=args):
            return {name for arg in args for name in _term_names(arg)}
        case Comparison(left=left, right=right):
            return _term_names(left) | _term_names(right)
        case Generator(target=target) | Aggregation(target=target):
            return _term_names(target)
        case _:
            return set()
