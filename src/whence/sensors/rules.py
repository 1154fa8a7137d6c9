"""Rules as a node runs them: atoms that take turns in any order, and tests that wait until their variables are bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from whence.lang.order import is_ready, names_met
from whence.lang.program import (
    Anything,
    Apply,
    Atom,
    Comparison,
    Generator,
    Literal,
    Negation,
    Program,
    Rule,
    Term,
    Var,
)
from whence.lang.tree import walk
from whence.lang.types import Tuple, Value
from whence.reference.solve import Solver

Environment = dict[str, Value]


class NotForSensors(Exception):
    """A program, or a choice, that cannot run on a field. `hint` says what to do."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(frozen=True)
class Body:
    """A rule: `atoms` have to hold, `negated` must not, `tests` are whatever else it asks.

    Computed arguments of atoms are variables of their own, with a test that says what they are: partners may come in
    any order, and only then everything is bound.
    """

    rule: Rule
    atoms: tuple[Atom, ...]
    negated: tuple[Atom, ...]
    tests: tuple[Comparison | Generator, ...]

    @cached_property
    def reads(self) -> tuple[Atom, ...]:
        """Everything it reads: an *occurrence* is a place in this list."""
        return (*self.atoms, *self.negated)

    @cached_property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """For each occurrence, in which order atoms are best joined one by one: those first that a condition ties to the rest."""
        return tuple(self._order(at) for at in range(len(self.reads)))

    def _order(self, occurrence: int) -> tuple[int, ...]:
        known = set(names_met(self.reads[occurrence]))
        waiting = [at for at in range(len(self.atoms)) if at != occurrence]
        order = []
        while waiting:
            best = next((at for at in waiting if self._is_tied(at, known)), waiting[0])
            waiting.remove(best)
            order.append(best)
            known |= set(names_met(self.atoms[best]))
        return tuple(order)

    def _is_tied(self, at: int, known: set[str]) -> bool:
        """Whether a condition can be asked of an atom that could not without it."""
        own = set(names_met(self.atoms[at]))
        tests = (set(names_met(test)) for test in self.tests)
        return bool(own & known) or any(each & own and each & known and each <= own | known for each in tests)

    @cached_property
    def _ties(self) -> dict[tuple[int, frozenset[str]], bool]:
        return {}

    def is_tied_to(self, at: int, known: frozenset[str]) -> bool:
        """Whether an atom has a condition in common with what is known: others would be joined with everything."""
        found = self._ties.get((at, known))
        if found is None:
            found = self._ties[at, known] = self._is_tied(at, set(known))
        return found

    @property
    def is_all_tied(self) -> bool:
        """Whether any two atoms have a condition in common, so that partners can come in any order without piling up."""
        names = [set(names_met(atom)) for atom in self.reads]
        return all(
            self._is_tied(at, names[other])
            for other in range(len(self.reads))
            for at in range(len(self.atoms))
            if at != other
        )


def body_of(rule: Rule) -> Body:
    atoms: list[Atom] = []
    negated: list[Atom] = []
    tests: list[Comparison | Generator] = []
    for literal in rule.body:
        match literal:
            case Atom():
                atoms.append(_plain(literal, len(tests), tests))
            case Negation(atom=atom):
                negated.append(_plain(atom, len(tests), tests))
            case Comparison() | Generator():
                tests.append(literal)
            case _:
                raise AssertionError("aggregates have relations of their own")
    return Body(rule, tuple(atoms), tuple(negated), tuple(tests))


def _plain(atom: Atom, number: int, tests: list[Comparison | Generator]) -> Atom:
    args: list[Term] = []
    for at, arg in enumerate(atom.args):
        if any(isinstance(part, Apply) for part in walk(arg)):
            own = Var(f"{number}!{at}", arg.kind)
            tests.append(Comparison("=", own, arg, atom.span))
            args.append(own)
        else:
            args.append(arg)
    return replace(atom, args=tuple(args))


class Matcher:
    """Extends environments by rows and tests, as the reference does."""

    def __init__(self, program: Program) -> None:
        self.solver = Solver(program, {})

    def fit(self, atom: Atom, row: Tuple, environment: Environment) -> Environment | None:
        """The environment with the atom's variables bound to a row; None if they do not fit."""
        extended = environment.copy()
        fits = self.solver.fits
        for arg, value in zip(atom.args, row, strict=True):
            if isinstance(arg, Var):
                if extended.setdefault(arg.name, value) != value:
                    return None
            elif not fits(arg, value, extended):
                return None
        return extended

    def test(
        self, body: Body, environment: Environment, left: frozenset[int]
    ) -> Iterator[tuple[Environment, frozenset[int]]]:
        """Every way to satisfy the tests that can be asked by now, of those that are left; with those that still are."""
        ready = next((at for at in sorted(left) if is_ready(body.tests[at], environment.keys())), None)
        if ready is None:
            yield environment, left
            return
        self.solver.rule = body.rule
        literals: tuple[Literal, ...] = (body.tests[ready],)
        for extended in self.solver.solutions(literals, environment):
            yield from self.test(body, extended, left - {ready})

    def is_blocked_by(self, atom: Atom, row: Tuple, environment: Environment) -> bool:
        return self.fit(atom, row, environment) is not None

    def head(self, rule: Rule, environment: Environment) -> Tuple:
        return tuple(self.solver.value(arg, environment) for arg in rule.head.args)


def columns_of(atom: Atom, names: tuple[str, ...]) -> tuple[int, ...] | None:
    """In which columns an atom has some variables; None if it does not have all of them."""
    found = []
    for name in names:
        at = next((at for at, arg in enumerate(atom.args) if isinstance(arg, Var) and arg.name == name), None)
        if at is None:
            return None
        found.append(at)
    return tuple(found)


def variables_of(atom: Atom) -> dict[str, None]:
    """The variables that are arguments themselves."""
    return dict.fromkeys(arg.name for arg in atom.args if isinstance(arg, Var))


def place_in(atom: Atom, locations: Mapping[str, int | None]) -> Term | None:
    """The argument that names the node, if it is a variable or a constant."""
    at = locations[atom.relation]
    return None if at is None or isinstance(atom.args[at], Anything) else atom.args[at]
