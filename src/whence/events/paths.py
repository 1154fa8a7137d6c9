"""The way of a class of events: what comes out of any event of the class, as terms over the attributes of the event.

All events of a class take the same steps with the same slow tuples. So their outputs are known up to the attributes that no
rule asks about, and those are carried through the rules as they stand: an output is a constant, an attribute of the event, or
functors over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from whence.events.program import EventProgram, EventRule
from whence.lang.program import Anything, Apply, Comparison, Cons, Const, Make, Term, Var
from whence.lang.types import Tuple, Value
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof
from whence.reference.solve import Solver


@dataclass(frozen=True)
class Path:
    """An output of a class: its columns as terms, in which the variable `#n` is column n of the event."""

    relation: str
    columns: tuple[Term, ...]

    def output(self, event: Tuple, solver: Solver) -> Fact:
        return Fact(self.relation, tuple(_value(term, event, solver) for term in self.columns))


def path_of(tree: Proof, events: EventProgram) -> Path:
    """The path that the run behind a tree took."""
    steps = list(_steps(tree))
    event = steps[0].premises[0].fact
    relation = events.program.relations[event.relation]
    current: tuple[Term, ...] = tuple(Var(f"#{at}", each.kind) for at, each in enumerate(relation.fields))
    for step in steps:
        assert step.firing is not None
        rule = events.by_name[step.firing.rule]
        slow = [premise.fact for premise in step.premises[1:]]
        known = _bound(rule, current, slow)
        current = tuple(_substitute(arg, known) for arg in rule.head.args)
    return Path(tree.fact.relation, current)


def _steps(tree: Proof) -> Iterator[Proof]:
    """The steps of a tree, the first one first."""
    found = []
    while tree.premises:
        found.append(tree)
        tree = tree.premises[0]
    return reversed(found)


def _bound(rule: EventRule, event: tuple[Term, ...], slow: Iterable[Fact]) -> dict[str, Term]:
    known: dict[str, Term] = {}
    for pattern, term in zip(rule.event.args, event, strict=True):
        if isinstance(pattern, Var):
            known.setdefault(pattern.name, term)
        elif not isinstance(pattern, Anything | Const):
            # What is taken apart is a key, so it is the same for all events of the class: but it is not known here.
            raise NotCarried
    for atom, fact in zip(rule.slow, slow, strict=True):
        for pattern, value in zip(atom.args, fact.tuple, strict=True):
            if isinstance(pattern, Var):
                known.setdefault(pattern.name, Const(value, pattern.kind))
            elif not isinstance(pattern, Anything | Const | Apply):
                raise NotCarried
    for literal in rule.body:
        if isinstance(literal, Comparison) and literal.op == "=":
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(side, Var) and side.name not in known and _is_known(other, known):
                    known[side.name] = _substitute(other, known)
                    break
    return known


class NotCarried(Exception):
    """A rule takes a value apart: its events are walked one by one."""


def _is_known(term: Term, known: dict[str, Term]) -> bool:
    match term:
        case Var(name=name):
            return name in known
        case Apply(args=args) | Make(args=args):
            return all(_is_known(arg, known) for arg in args)
        case Cons(items=items, rest=rest):
            return all(_is_known(arg, known) for arg in (*items, rest))
        case _:
            return True


def _substitute(term: Term, known: dict[str, Term]) -> Term:
    match term:
        case Var(name=name):
            if name not in known:
                raise NotCarried
            return known[name]
        case Apply(args=args) | Make(args=args):
            return replace(term, args=tuple(_substitute(arg, known) for arg in args))
        case Cons(items=items, rest=rest):
            return replace(term, items=tuple(_substitute(arg, known) for arg in items), rest=_substitute(rest, known))
        case _:
            return term


def _value(term: Term, event: Tuple, solver: Solver) -> Value:
    match term:
        case Const(value=value):
            return value
        case Var(name=name):
            return event[int(name[1:])]
        case _:
            return solver.value(term, {f"#{at}": value for at, value in enumerate(event)})
