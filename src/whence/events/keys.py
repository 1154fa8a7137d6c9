"""Equivalence keys: which attributes of an event decide its tree.

Two events that agree on the keys take the same rules at the same places with the same slow tuples. An attribute is *critical*
where a rule asks something of it: a slow relation or a condition that it reaches, a constant or a second occurrence in the event
atom, a functor that may have no value, the place where the next event is. It is a key if it, or what is made of it later on, is
critical somewhere. The place of the event is always a key.

`printed_keys` are the two analyses as they were published, for comparison only: both miss keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from whence.events.problems import AllKeys
from whence.events.program import EventProgram, EventRule, may_be_undefined
from whence.lang.diagnostics import Diagnostic
from whence.lang.program import Anything, Atom, Comparison, Term, Var
from whence.lang.tree import walk


class Attribute(NamedTuple):
    relation: str
    column: int


@dataclass(frozen=True)
class Reason:
    """Why an attribute is critical: the rule, and what of the rule asks for it."""

    rule: str
    text: str


@dataclass(frozen=True)
class Key:
    """A key of the event relation, with the attributes it passes through and what asks for the last of them."""

    column: int
    name: str
    path: tuple[tuple[Attribute, str], ...]  # each attribute with the rule that leads to it
    reason: Reason


@dataclass(frozen=True)
class Keys:
    event: str
    keys: tuple[Key, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(key.column for key in self.keys)


def equivalence_keys(events: EventProgram) -> Keys:
    critical: dict[Attribute, Reason] = {}
    edges: dict[Attribute, list[tuple[Attribute, str]]] = {}
    for rule in events.rules:
        for attribute, reason in _critical(rule, events):
            critical.setdefault(attribute, reason)
        for source, target in _edges(rule):
            edges.setdefault(source, []).append((target, rule.name))
    relation = events.program.relations[events.event]
    place = events.place_column(events.event)
    keys = []
    for column, each in enumerate(relation.fields):
        start = Attribute(events.event, column)
        found = _search(start, critical, edges)
        if column == place:
            keys.append(Key(column, each.name, (), Reason("", "it is the place of the event")))
        elif found is not None:
            keys.append(Key(column, each.name, found, critical[found[-1][0] if found else start]))
    warnings = []
    if len(keys) == len(relation.fields) > 1:
        warnings.append(AllKeys(relation.span, event=events.event))
    return Keys(events.event, tuple(keys), tuple(warnings))


def _critical(rule: EventRule, events: EventProgram) -> Iterator[tuple[Attribute, Reason]]:
    seen: dict[str, int] = {}
    for part in walk(rule.event.args):
        if isinstance(part, Var):
            seen[part.name] = seen.get(part.name, 0) + 1
    for column, term in enumerate(rule.event.args):
        attribute = Attribute(rule.event.relation, column)
        if isinstance(term, Anything):
            continue
        if not isinstance(term, Var):
            yield attribute, Reason(rule.name, f"{rule.event.relation} is matched with {_text(term)} there")
            continue
        if seen[term.name] > 1:
            yield attribute, Reason(rule.name, f"{term.name} occurs twice in {rule.event.relation}")
        if reason := _asked(rule, term.name, events):
            yield attribute, Reason(rule.name, reason)


def _asked(rule: EventRule, name: str, events: EventProgram) -> str | None:
    """What of the rule asks something of the variable or of what is made of it."""
    made = _made_of(rule, name)
    for atom in rule.slow:
        if made & _names(atom.args):
            return f"{atom.relation} is looked up by {_by(made & _names(atom.args), name)}"
    for test, target in _conditions(rule):
        used = made & _names((test.left, test.right))
        if used and target is None:
            return f"the condition on {_by(used, name)}"
        value = test.right if target == test.left else test.left
        if made & _names((value,)) and may_be_undefined(value):
            return f"{_text(target) if target else 'a value'} may have no value for some {name}"
    for column, arg in enumerate(rule.head.args):
        if made & _names((arg,)) and may_be_undefined(arg):
            return f"column {column} of {rule.head.relation} may have no value for some {name}"
    place = rule.head.args[events.place_column(rule.head.relation)]
    at = rule.event.args[events.place_column(rule.event.relation)]
    if made & _names((place,)) and Var(name, place.kind) != at:
        return f"{rule.head.relation} goes to the place {_text(place)}"
    return None


def _edges(rule: EventRule) -> Iterator[tuple[Attribute, Attribute]]:
    for column, term in enumerate(rule.event.args):
        made = {name for part in walk(term) if isinstance(part, Var) for name in _made_of(rule, part.name)}
        for at, arg in enumerate(rule.head.args):
            if made & _names((arg,)):
                yield Attribute(rule.event.relation, column), Attribute(rule.head.relation, at)


def _conditions(rule: EventRule) -> Iterator[tuple[Comparison, Var | None]]:
    """The comparisons of a rule, each with the variable that it gives a value to, if it does."""
    known = {name for atom in (rule.event, *rule.slow) for name in _names(atom.args)}
    for literal in rule.body:
        if not isinstance(literal, Comparison):
            continue
        target = None
        if literal.op == "=":
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(side, Var) and side.name not in known and _names((other,)) <= known:
                    target = side
                    break
        if target is not None:
            known.add(target.name)
        yield literal, target


def _made_of(rule: EventRule, name: str) -> set[str]:
    """The variable and all that get a value from it."""
    made = {name}
    grown = True
    while grown:
        grown = False
        for test, target in _conditions(rule):
            if target is not None and target.name not in made and made & _names((test.left, test.right)):
                made.add(target.name)
                grown = True
    return made


def _search(
    start: Attribute, critical: Mapping[Attribute, Reason], edges: Mapping[Attribute, Iterable[tuple[Attribute, str]]]
) -> tuple[tuple[Attribute, str], ...] | None:
    """The shortest way from an attribute to a critical one."""
    ways: dict[Attribute, tuple[tuple[Attribute, str], ...]] = {start: ()}
    pending = [start]
    for at in pending:  # it grows while it is gone through
        if at in critical:
            return ways[at]
        for target, rule in edges.get(at, ()):
            if target not in ways:
                ways[target] = (*ways[at], (target, rule))
                pending.append(target)
    return None


# -- as printed -------------------------------------------------------------------------------------------------------


def printed_keys(events: EventProgram) -> dict[str, tuple[int, ...]]:
    """The keys by the two published analyses: undirected reachability (section 5.2) and the formal one (appendix B)."""
    return {"section-5.2": _by_reachability(events), "appendix-b": _by_joins(events)}


def _by_reachability(events: EventProgram) -> tuple[int, ...]:
    edges: dict[Attribute, set[Attribute]] = {}
    slow: set[Attribute] = set()

    def connect(one: Attribute, other: Attribute) -> None:
        edges.setdefault(one, set()).add(other)
        edges.setdefault(other, set()).add(one)

    for rule in events.rules:
        own = _places(rule.event)
        for atom in (*rule.slow, rule.head):
            for name, columns in _places(atom).items():
                for column in columns:
                    if atom is not rule.head:
                        slow.add(Attribute(atom.relation, column))
                    for mine in own.get(name, ()):
                        connect(Attribute(rule.event.relation, mine), Attribute(atom.relation, column))
        _connect_conditions(rule, own, connect)
    return _reaching(events, slow, edges)


def _connect_conditions(rule: EventRule, own: Mapping[str, list[int]], connect: object) -> None:
    assert callable(connect)
    everywhere: dict[str, list[Attribute]] = {}
    for atom in (rule.event, *rule.slow, rule.head):
        for name, columns in _places(atom).items():
            everywhere.setdefault(name, []).extend(Attribute(atom.relation, column) for column in columns)
    for test, target in _conditions(rule):
        names = _names((test.left, test.right))
        for mine in names:
            for column in own.get(mine, ()):
                others = [target.name] if target is not None else sorted(names - {mine})
                for other in others:
                    for attribute in everywhere.get(other, ()):
                        connect(Attribute(rule.event.relation, column), attribute)


def _by_joins(events: EventProgram) -> tuple[int, ...]:
    joined: set[Attribute] = set()
    edges: dict[Attribute, set[Attribute]] = {}
    for rule in events.rules:
        asked = {name for atom in rule.slow for name in _names(atom.args)}
        asked |= {name for test, _ in _conditions(rule) for name in _names((test.left, test.right))}
        heads = _places(rule.head)
        for name, columns in _places(rule.event).items():
            for column in columns:
                mine = Attribute(rule.event.relation, column)
                if name in asked:
                    joined.add(mine)
                edges.setdefault(mine, set()).update(Attribute(rule.head.relation, at) for at in heads.get(name, ()))
    return _reaching(events, joined, edges)


def _reaching(
    events: EventProgram, goals: set[Attribute], edges: Mapping[Attribute, set[Attribute]]
) -> tuple[int, ...]:
    found = []
    for column in range(events.program.relations[events.event].arity):
        met = {Attribute(events.event, column)}
        pending = list(met)
        while pending:
            new = edges.get(pending.pop(), set()) - met
            met |= new
            pending += new
        if met & goals or column == events.place_column(events.event):
            found.append(column)
    return tuple(found)


def _places(atom: Atom) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for column, term in enumerate(atom.args):
        if isinstance(term, Var):
            found.setdefault(term.name, []).append(column)
    return found


def _names(terms: Iterable[Term]) -> set[str]:
    return {part.name for term in terms for part in walk(term) if isinstance(part, Var)}


def _by(used: set[str], name: str) -> str:
    return name if name in used else f"{min(used)}, which is made of {name}"


def _text(term: Term) -> str:
    match term:
        case Var(name=name):
            return name
        case _:
            value = getattr(term, "value", None)
            return "a pattern" if value is None else f'"{value}"' if isinstance(value, str) else str(value)
