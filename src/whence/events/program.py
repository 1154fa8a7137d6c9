"""Event programs: each rule takes one event, looks up slow relations at the place of the event, and makes the next event.

`event_program` checks that a program is one, and says exactly why it is not: which rule, which atom, which condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from whence.events.problems import (
    AnotherPlace,
    DerivedCondition,
    MayFork,
    MayNotEnd,
    NeverReached,
    NoEvent,
    NoPlace,
    NotInEvents,
    NotOneEvent,
)
from whence.lang.diagnostics import Diagnostic, Diagnostics
from whence.lang.program import (
    Aggregation,
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
    counter_in,
)
from whence.lang.tree import NOWHERE, FunctorDecl, walk
from whence.lang.types import FLOAT, Tuple, Value
from whence.plan.wildcards import name_wildcards


@dataclass(frozen=True)
class EventRule:
    """A rule of an event program: `event` comes first in `body`, `slow` are the other atoms, in the order of the body."""

    rule: Rule
    event: Atom
    slow: tuple[Atom, ...]
    body: tuple[Literal, ...]

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def head(self) -> Atom:
        return self.rule.head


@dataclass(frozen=True)
class EventProgram:
    """A checked event program. `event` is the relation that events come in, `outputs` are the relations of interest."""

    program: Program
    event: str
    rules: tuple[EventRule, ...]
    slow: tuple[str, ...]
    outputs: tuple[str, ...]
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)

    @cached_property
    def by_event(self) -> Mapping[str, tuple[EventRule, ...]]:
        found: dict[str, tuple[EventRule, ...]] = {}
        for rule in self.rules:
            found[rule.event.relation] = (*found.get(rule.event.relation, ()), rule)
        return found

    @cached_property
    def by_name(self) -> Mapping[str, EventRule]:
        return {rule.name: rule for rule in self.rules}

    def place_column(self, relation: str) -> int:
        """The column marked `@`, by convention the first."""
        return self.program.relations[relation].location or 0

    def place(self, relation: str, row: Tuple) -> Value:
        return row[self.place_column(relation)]

    @cached_property
    def description(self) -> str:
        """What the rules say, whatever the layout of their text: the same description, the same trees."""
        relations = sorted({self.event, *self.slow, *(rule.head.relation for rule in self.rules)})
        columns = [(name, [str(each.kind) for each in self.program.relations[name].fields]) for name in relations]
        rules = [(rule.name, _plain(rule.head), [_plain(each) for each in rule.body]) for rule in self.rules]
        places = [self.place_column(name) for name in relations]
        return repr((self.event, columns, places, rules))


def event_program(program: Program) -> EventProgram:
    """The program as an event program. Raises ProgramError with everything that keeps it from being one."""
    found = Diagnostics(program.source)
    event = _event_of(program, found)
    found.raise_if_errors()
    assert event is not None
    _refuse_the_rest(program, found)
    derived = {rule.head.relation for rule in program.rules if not rule.is_fact}
    rules = [each for rule in program.rules if (each := _event_rule(rule, program, event, derived, found))]
    _check_reach(rules, event, found)
    outputs = tuple(name for name in program.outputs if name in derived)
    if not outputs:
        problem = "no derived relation is of interest: there is no .output of one"
        found.add(
            NoEvent(NOWHERE, problem=problem, advice="name the relations whose trees are to be kept: .output recv")
        )
    found.raise_if_errors()
    slow = tuple(
        name for name in program.relations if any(name == atom.relation for rule in rules for atom in rule.slow)
    )
    for caution in _cautions(rules):
        found.add(caution)
    return EventProgram(program, event, tuple(rules), slow, outputs, tuple(found.warnings))


def _event_of(program: Program, found: Diagnostics) -> str | None:
    events = [name for name, relation in program.relations.items() if relation.role == "event"]
    if len(events) == 1:
        return events[0]
    if events:
        problem = f"{', '.join(events)} are all .event; a program has one relation that events come in"
        span = program.relations[events[1]].span
        found.add(NoEvent(span, problem=problem, advice="derive one of them from the other, or write two programs"))
    else:
        problem = "this is not an event program: no relation is marked .event"
        found.add(NoEvent(NOWHERE, problem=problem, advice="name the relation that events come in: .event packet"))
    return None


def _refuse_the_rest(program: Program, found: Diagnostics) -> None:
    for subsumption in program.subsumptions:
        found.add(NotInEvents(subsumption.span, what="subsumption", advice="an event never takes another one away"))
    for name, relation in program.relations.items():
        if not relation.fields:
            found.add(NoPlace(relation.span, relation=name))
        if relation.equivalence or relation.choices:
            what = "eqrel" if relation.equivalence else "choice-domain"
            found.add(NotInEvents(relation.span, what=what, advice=f"declare {name} without it"))
    for statement in program.module.statements:
        if isinstance(statement, FunctorDecl) and statement.stateful:
            what = f"the stateful function {statement.name}"
            found.add(NotInEvents(statement.span, what=what, advice="trees are made again by running the rules again"))


def _event_rule(rule: Rule, program: Program, event: str, derived: set[str], found: Diagnostics) -> EventRule | None:
    if rule.is_fact:
        if rule.head.relation == event or rule.head.relation in derived:
            advice = "events come from outside: put it into the file of events"
            found.add(NotInEvents(rule.span, what=f"a fact of the event relation {rule.head.relation}", advice=advice))
        return None
    before = len(found.found)
    for problem in _unfit(rule):
        found.add(problem)
    rule = replace(rule, body=name_wildcards(rule.body))
    atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
    events = [atom for atom in atoms if atom.relation == event or atom.relation in derived]
    if len(events) != 1:
        found.add(_not_one(rule, events, program, event))
        return None
    slow = tuple(atom for atom in atoms if atom is not events[0])
    for atom in slow:
        _check_place(rule, events[0], atom, program, found)
    if program.relations[rule.head.relation].role == "slow":
        found.add(DerivedCondition(rule.head.span, relation=rule.head.relation, rule=rule.name))
    if len(found.found) > before:
        return None
    rest = tuple(literal for literal in rule.body if literal is not events[0])
    return EventRule(rule, events[0], slow, (events[0], *rest))


def _unfit(rule: Rule) -> Iterator[Diagnostic]:
    for literal in rule.body:
        if isinstance(literal, Negation):
            advice = f"that {literal.atom.relation} lacks a row is not kept; keep the opposite as a slow relation"
            yield NotInEvents(literal.span, what="negation", advice=advice)
        elif isinstance(literal, Aggregation):
            yield NotInEvents(literal.span, what="an aggregate", advice="events are looked at one by one")
        elif isinstance(literal, Generator):
            yield NotInEvents(literal.span, what="range", advice="make the numbers a slow relation")
    if counter := counter_in(rule):
        yield NotInEvents(rule.span, what=f"{counter}()", advice="trees are made again by running the rules again")


def _not_one(rule: Rule, events: list[Atom], program: Program, event: str) -> Diagnostic:
    if not events:
        advice = f"let it wait for {event} or for a relation that a rule derives"
        return NotOneEvent(rule.span, rule=rule.name, found="no event atom", advice=advice)
    names = " and ".join(atom.relation for atom in events)
    condition = next((atom.relation for atom in events if atom.relation != event), event)
    advice = (
        f"{condition} is derived by rules, so it is an event too: split the rule, or make {condition} a base relation"
    )
    wanted = [atom for atom in events if program.relations[atom.relation].role == "slow"]
    if wanted:
        advice = f"{wanted[0].relation} is .slow and derived by rules: derive it in a program of its own"
    found = f"{len(events)} event atoms, {names}"
    return NotOneEvent(events[1].span, rule=rule.name, found=found, advice=advice)


def _check_place(rule: Rule, event: Atom, atom: Atom, program: Program, found: Diagnostics) -> None:
    at = event.args[program.relations[event.relation].location or 0]
    place = atom.args[program.relations[atom.relation].location or 0]
    if place != at:
        found.add(AnotherPlace(atom.span, relation=atom.relation, rule=rule.name, place=_shown(place), at=_shown(at)))


def _check_reach(rules: Iterable[EventRule], event: str, found: Diagnostics) -> None:
    reached = {event}
    waiting = list(rules)
    while ready := [rule for rule in waiting if rule.event.relation in reached]:
        reached |= {rule.head.relation for rule in ready}
        waiting = [rule for rule in waiting if rule not in ready]
    for rule in waiting:
        found.add(NeverReached(rule.event.span, event=event, relation=rule.event.relation, rule=rule.name))


def _cautions(rules: list[EventRule]) -> Iterator[Diagnostic]:
    for at, rule in enumerate(rules):
        others = [each.name for each in rules[:at] if each.event.relation == rule.event.relation]
        if others:
            reason = f"rules {others[0]} and {rule.name} take the same events"
            yield MayFork(rule.rule.span, reason=reason)
        known = {part.name for part in walk(rule.event.args) if isinstance(part, Var)}
        for atom in rule.slow:
            if any(isinstance(part, Var) and part.name not in known for part in walk(atom.args)):
                yield MayFork(atom.span, reason=f"several rows of {atom.relation} may match")
    heads: dict[str, set[str]] = {}
    for rule in rules:
        heads.setdefault(rule.event.relation, set()).add(rule.head.relation)
    for rule in rules:
        if _leads_to(heads, rule.head.relation, rule.event.relation):
            cycle = f"rule {rule.name} makes {rule.head.relation}, which may become {rule.event.relation} again"
            yield MayNotEnd(rule.rule.span, cycle=cycle)


def _leads_to(heads: Mapping[str, set[str]], start: str, goal: str) -> bool:
    met, pending = {start}, [start]
    while pending:
        for each in heads.get(pending.pop(), set()) - met:
            met.add(each)
            pending.append(each)
    return goal in met


def may_be_undefined(term: Term) -> bool:
    """Whether some functor in the term has no value for some arguments."""
    return any(
        isinstance(part, Apply) and (part.functor in _PARTIAL or (part.kind == FLOAT and part.functor not in _EXACT))
        for part in walk(term)
    )


_PARTIAL = frozenset(
    "/ % ^ to_number to_unsigned to_float ftoi ftou last exp log sqrt tan acos asin atanh acosh".split()
)
_EXACT = frozenset(("itof", "utof", "min", "max"))  # floats that are never "not a number"


def _plain(node: object) -> object:
    """A literal or term without the places it was written at."""
    match node:
        case Atom(relation=relation, args=args):
            return (relation, *map(_plain, args))
        case Comparison(op=op, left=left, right=right):
            return (op, _plain(left), _plain(right))
        case _:
            return repr(node)


def _shown(term: Term) -> str:
    return term.name if isinstance(term, Var) else repr(getattr(term, "value", term))
