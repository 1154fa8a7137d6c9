"""The way of a body from place to place: where it is evaluated first, and where it goes next.

All ways are tried, and the one is taken that ships least: tuples that come out of the rule's own recursion weigh most, then steps
count, then columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from whence.lang.diagnostics import ComputedPlace, Diagnostic, ScatteredAggregate, UnconnectedPlaces
from whence.lang.order import binds as bound_by
from whence.lang.order import is_bound, is_ready, names_in, names_met, order_body
from whence.lang.program import (
    Aggregation,
    Anything,
    Atom,
    Comparison,
    Const,
    Generator,
    Literal,
    Negation,
    Relation,
    Rule,
    Term,
    Var,
)
from whence.lang.tree import walk

RECURSIVE = 4  # what shipping a tuple of the recursion weighs, against one from outside


class Placing(Protocol):
    """What is known of the program whose rules are placed."""

    @property
    def relations(self) -> Mapping[str, Relation]: ...

    @property
    def recursive(self) -> Mapping[str, frozenset[str]]:
        """For each relation of a recursion, all of them."""
        ...

    @property
    def in_parts(self) -> bool: ...


@dataclass(frozen=True)
class Stop:
    """A place that a body comes to, and the literals that are evaluated there."""

    place: Term | None
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Way:
    stops: tuple[Stop, ...]
    weight: tuple[int, int]


class NoWay(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


@dataclass(frozen=True)
class _Journey:
    """How far a body has come: the stops so far, what is not evaluated yet, what is known, what it has cost."""

    stops: tuple[Stop, ...]
    waiting: list[Literal]
    known: frozenset[str] = frozenset()
    weight: tuple[int, int] = (0, 0)
    is_recursive: bool = False


@dataclass
class Search:
    """The best way for the body of a rule, by trying all of them."""

    localizer: Placing
    rule: Rule
    best_way: Way | None = None
    places: Mapping[int, Term | None] = field(default_factory=dict)
    # The longest way that got stuck, for the message.
    stuck: tuple[tuple[Stop, ...], list[Literal]] = field(default_factory=lambda: ((), []))

    def best(self) -> Way:
        body = list(self.rule.body)
        self.places = {id(literal): self._place(literal) for literal in body}
        named = [place for each in body if (place := self.places[id(each)]) is not None]
        if not named:
            return self._of_replicas(body, self.localizer.relations[self.rule.head.relation])
        starts = [self.places[id(each)] for each in body if isinstance(each, Atom)]
        # Without an atom that lives anywhere, relations that are everywhere name the place that something is asked at.
        possible = [
            *(each for each in starts if each is not None),
            *(each for each in named if isinstance(each, Const)),
        ]
        for start in dict.fromkeys(possible or named):
            self._visit(start, _Journey((), body))
        if self.best_way is None:
            raise NoWay(self._why_stuck())
        return self.best_way

    def _of_replicas(self, body: list[Literal], relation: Relation) -> Way:
        """A body that every node can evaluate: each derives what lives there."""
        place = None if relation.location is None else self.rule.head.args[relation.location]
        if place is None or isinstance(place, Const) or self.localizer.in_parts:
            return Way((Stop(place, tuple(body)),), (0, 0))
        if not any(place in literal.args for literal in body if isinstance(literal, Atom)):
            raise NoWay(ComputedPlace(self.rule.head.span, rule=self.rule.name, relation=relation.name))
        return Way((Stop(place, tuple(body)),), (0, 0))

    def _visit(self, place: Term, journey: _Journey) -> None:
        if self.best_way is not None and journey.weight >= self.best_way.weight:
            return
        known = set(journey.known)
        if not journey.stops and not any(
            isinstance(each, Atom) and self._is_at(each, place) for each in journey.waiting
        ):
            known |= set(names_in(place))  # the body is evaluated at this node only
        here, rest = self._take(place, journey.waiting, known)
        stops = (*journey.stops, Stop(place, tuple(here)))
        own = self.localizer.recursive.get(self.rule.head.relation, frozenset())
        is_recursive = journey.is_recursive or any(isinstance(each, Atom) and each.relation in own for each in here)
        step = RECURSIVE if is_recursive else 1
        if not rest:
            self._arrive(stops, journey.weight, step)
            return
        if not here:
            return
        if len(stops) > len(self.stuck[0]):
            self.stuck = (stops, rest)
        later = {name for literal in rest for name in names_met(literal)}
        later |= {name for arg in self.rule.head.args for name in names_in(arg)}
        weight = (journey.weight[0] + step, journey.weight[1] + step * len(known & later))
        for target in dict.fromkeys(self.places[id(each)] for each in rest):
            if target is not None and target != place and is_bound(target, known):
                self._visit(target, _Journey(stops, rest, frozenset(known), weight, is_recursive))

    def _is_at(self, literal: Literal, place: Term) -> bool:
        return self.places[id(literal)] == place

    def _take(self, place: Term, waiting: list[Literal], known: set[str]) -> tuple[list[Literal], list[Literal]]:
        """The literals that can be evaluated at a place, as many as can be; `known` takes the variables that they bind."""
        here: list[Literal] = []
        rest = list(waiting)
        patient = True
        while True:
            found = next((each for each in rest if self._fits(each, place, known, patient=patient)), None)
            if found is not None:
                rest.remove(found)
                here.append(found)
                known |= set(bound_by(found))
                patient = True
            elif patient and not any(self._is_next(each, place, known) for each in rest):
                patient = False  # no way on without what is everywhere
            else:
                return here, rest

    def _is_next(self, literal: Literal, place: Term, known: set[str]) -> bool:
        target = self.places[id(literal)]
        return target is not None and target != place and is_bound(target, known)

    def _fits(self, literal: Literal, place: Term, known: set[str], *, patient: bool) -> bool:
        target = self.places[id(literal)]
        if not is_ready(literal, known):
            return False
        if target is not None:
            return target == place
        if isinstance(literal, Atom) and patient:  # without anything in common, rows would be shipped with all of it
            return any(name in known for name in names_met(literal))
        return True

    def _arrive(self, stops: tuple[Stop, ...], weight: tuple[int, int], step: int) -> None:
        if self.localizer.in_parts and not _says_where_it_is(stops[0]):
            return  # there is no list of all places
        relation = self.localizer.relations[self.rule.head.relation]
        home = None if relation.location is None else self.rule.head.args[relation.location]
        if home != stops[-1].place:
            weight = (weight[0] + step, weight[1] + step * len(self.rule.head.args))
        if self.best_way is None or weight < self.best_way.weight:
            self.best_way = Way(stops, weight)

    # -- places of literals

    def _place(self, literal: Literal) -> Term | None:
        match literal:
            case Atom():
                return place_of(literal, self.localizer.relations)
            case Negation(atom=atom):
                place = place_of(atom, self.localizer.relations)
                if isinstance(place, Anything):
                    raise NoWay(self._scattered(f"!{atom.relation}", "all nodes", literal))
                return place
            case Aggregation():
                return self._place_of_aggregate(literal)
            case Comparison() | Generator():
                return None

    def _place_of_aggregate(self, literal: Aggregation) -> Term | None:
        places = dict.fromkeys(place for atom in _atoms(literal) if (place := place_of(atom, self.localizer.relations)))
        what = f"a {literal.op}"
        if len(places) > 1:
            raise NoWay(self._scattered(what, f"several places, {_say(*places)}", literal))
        for place in places:
            if isinstance(place, Var) and place.name not in literal.outer:
                raise NoWay(self._scattered(what, "all nodes", literal))
            if not isinstance(place, Var | Const):
                raise NoWay(self._scattered(what, "all nodes", literal))
        return next(iter(places), None)

    def _scattered(self, what: str, problem: str, literal: Literal) -> Diagnostic:
        return ScatteredAggregate(literal.span, rule=self.rule.name, what=what, problem=problem)

    def _why_stuck(self) -> Diagnostic:
        stops, rest = self.stuck
        literal = next(
            (each for each in rest if self.places[id(each)] is not None), rest[0] if rest else self.rule.body[0]
        )
        place = self.places[id(literal)]
        known = [each.relation for stop in stops for each in stop.literals if isinstance(each, Atom)]
        relation = next((part.relation for part in walk(literal) if isinstance(part, Atom)), "it")
        return UnconnectedPlaces(
            literal.span,
            rule=self.rule.name,
            relation=relation,
            place=_say(place) if place is not None else "a place",
            known=" or ".join(dict.fromkeys(known)) or "another atom",
        )


def place_of(atom: Atom, relations: Mapping[str, Relation]) -> Term | None:
    column = relations[atom.relation].location
    return None if column is None else atom.args[column]


def _says_where_it_is(stop: Stop) -> bool:
    """Whether what is evaluated at a place gives the place a value."""
    ordered, bound = order_body(list(stop.literals), set())
    return len(ordered) == len(stop.literals) and stop.place is not None and is_bound(stop.place, bound)


def _atoms(literal: Aggregation) -> Iterator[Atom]:
    return (part for part in walk(literal.bodies) if isinstance(part, Atom))


def _say(*places: Term) -> str:
    return " and ".join(
        each.name.partition("#")[0] if isinstance(each, Var) else repr(each.value) if isinstance(each, Const) else "_"
        for each in places
    )
