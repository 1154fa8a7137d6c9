"""What an event lacked where it went no further: the rules that wait for it, and what each of them missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from whence.events.history import rows_of
from whence.events.program import EventRule
from whence.events.store import EventStore
from whence.events.walk import Hop, Walker
from whence.lang.program import Anything, Atom, Comparison, Literal, Term, Var
from whence.lang.types import Value
from whence.provenance.graph import Fact
from whence.provenance.show import show_fact, show_value
from whence.reference.solve import Environment, is_known


@dataclass(frozen=True)
class Shortfall:
    """A tuple that set nothing off: where it was, the steps up to it, and for each rule what it missed."""

    at: Fact
    way: tuple[Hop, ...]
    missed: tuple[str, ...]

    def __str__(self) -> str:
        return f"it ended with {show_fact(self.at)}: {'; '.join(self.missed) or 'no rule waits for it'}"


def shortfalls(store: EventStore, event: Fact, configuration: int | None = None) -> list[Shortfall]:
    """Where an event, or what became of it, found nothing to do: in the current configuration, or in the one given."""
    walker = store.walker
    if configuration is not None and configuration != store.history.configuration:
        walker = Walker(store.events, rows_of(store.history.rows(configuration)))
    hops = walker.run(event, hops=store.hops)
    parents = {hop.parent for hop in hops}
    ends: list[tuple[Fact, tuple[Hop, ...]]] = [] if hops else [(event, ())]
    ends += [
        (hop.firing.head, _way(hops, at))
        for at, hop in enumerate(hops)
        if at not in parents and hop.firing.head.relation not in store.events.outputs
    ]
    return [Shortfall(fact, way, tuple(_missed(walker, fact))) for fact, way in ends]


def first_shortfall(store: EventStore, event: Fact) -> str:
    found = shortfalls(store, event)
    return f"the event led to no output: {found[0]}" if found else "the event led to no output"


def _missed(walker: Walker, fact: Fact) -> Iterator[str]:
    for rule in walker.events.by_event.get(fact.relation, ()):
        yield f"{rule.name} misses {_first_missing(walker, rule, fact)}"


def _first_missing(walker: Walker, rule: EventRule, fact: Fact) -> str:
    """The first literal of the rule that no way of satisfying those before it satisfies."""
    solver = walker.solver_for(fact, rule)
    environments: list[Environment] = [{}]
    for literal in rule.body:
        extended = [found for each in environments for found in solver.solutions((literal,), each)]
        if not extended:
            return _shown(literal, environments[0])
        environments = extended
    return "a value for its head"


def _shown(literal: Literal, environment: Environment) -> str:
    match literal:
        case Atom(relation=relation, args=args):
            return f"{relation}({', '.join(_term(arg, environment) for arg in args)})"
        case Comparison(op=op, left=left, right=right):
            return f"{_term(left, environment)} {op} {_term(right, environment)}"
        case _:
            return "a condition"


def _term(term: Term, environment: Environment) -> str:
    if isinstance(term, Anything):
        return "_"
    if isinstance(term, Var):
        name = "_" if term.name.startswith("?") else term.name
        return show_value(environment[term.name]) if is_known(term, environment) else name
    value: Value | None = getattr(term, "value", None)
    return show_value(value) if value is not None else "…"


def _way(hops: list[Hop], at: int | None) -> tuple[Hop, ...]:
    found = []
    while at is not None:
        found.append(hops[at])
        at = hops[at].parent
    return tuple(reversed(found))
